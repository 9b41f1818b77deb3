"""Shared by what changes networks."""
