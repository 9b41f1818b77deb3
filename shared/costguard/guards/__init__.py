"""The questions Costguard asks, one module each, and what their rules say. Pure."""

IDLE_GPU, BUDGET, KMS_ROTATION, NETWORK_AUDIT = "idle_gpu", "budget", "kms_rotation", "network_audit"
"""The names of guards, without their modules: whoever names one loads none. `engine/guards/registry.py` has what each
guard is; nothing compares these names but to look something up in a table."""

OF_MACHINES = (IDLE_GPU, BUDGET)
"""The guards whose cases are about machines, with rules of the one shape that machines are stopped by."""
