"""Shared by the readers of instances and metrics, and by those of the audit logs."""
