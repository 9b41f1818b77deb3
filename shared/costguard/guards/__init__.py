"""The questions Costguard asks, one module each, and what their rules say. Pure."""

GUARDS = ("idle_gpu", "budget", "kms_rotation", "network_audit")
"""Every guard by name, without its module: a function that asks one question loads no other.
`tests/test_structure.py` fails until each has its module of this name, function, events and tests."""
