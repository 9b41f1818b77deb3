"""Rules for idle instances: what people write, and what it compiles to."""
