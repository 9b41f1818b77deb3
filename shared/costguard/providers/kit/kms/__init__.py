"""Shared by what rotates and succeeds keys."""
