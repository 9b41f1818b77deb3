"""Channels that bring notices to people."""
