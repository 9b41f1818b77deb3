"""What people say and are told."""
