"""Keys over those of the world, and which of them follows which."""
