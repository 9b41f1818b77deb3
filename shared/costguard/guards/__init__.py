"""The questions Costguard asks, one module each, and what their rules say. Pure."""
