"""Keys looked at, judged and rotated."""
