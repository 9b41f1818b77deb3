"""Metrics backends that serve instances of any cloud."""
