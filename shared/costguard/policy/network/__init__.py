"""Rules for networks: what people write, and what it compiles to."""
