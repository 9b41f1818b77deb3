"""The documents users write, and the frozen policy they compile to. Pure."""
