"""Identities, and policies of the organisation and of groups."""
