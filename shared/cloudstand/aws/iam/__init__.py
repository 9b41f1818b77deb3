"""Policies of the organisation and of groups."""
