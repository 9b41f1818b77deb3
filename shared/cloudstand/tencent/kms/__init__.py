"""Keys and their rotation."""
