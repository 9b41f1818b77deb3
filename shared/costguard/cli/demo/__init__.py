"""`costguard demo`: twelve days of a made-up fleet, lived by the real engine."""
