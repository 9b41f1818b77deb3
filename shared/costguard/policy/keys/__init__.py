"""Rules for keys: what people write, and what it compiles to."""
