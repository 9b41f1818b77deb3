"""Shared by the readers of bills and prices."""
