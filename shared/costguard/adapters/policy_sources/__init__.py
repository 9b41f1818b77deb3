"""Where policies are read from."""
