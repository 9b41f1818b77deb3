"""Notices on their way."""
