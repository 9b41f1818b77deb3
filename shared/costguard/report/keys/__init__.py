"""What was found of keys."""
