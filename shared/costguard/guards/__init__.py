"""The questions Costguard asks, one module each, and what their rules say. Pure."""

from costguard.guards import budget, idle_gpu, kms_rotation, network_audit

GUARDS = (idle_gpu.NAME, budget.NAME, kms_rotation.NAME, network_audit.NAME)
"""Every guard by name. `tests/test_structure.py` fails until each has its function, events and tests."""
