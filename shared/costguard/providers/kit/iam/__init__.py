"""Shared by permissions, policy documents, preflights and launch freezes."""
