"""Keys, their changes, and which of them follows which."""
