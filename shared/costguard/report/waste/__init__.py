"""Day one: what idle accelerators cost, and whose they are."""
