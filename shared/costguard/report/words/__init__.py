"""The words of every message, in each language."""
