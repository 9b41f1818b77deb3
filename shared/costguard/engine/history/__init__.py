"""Recorded use, read from files and written to them."""
