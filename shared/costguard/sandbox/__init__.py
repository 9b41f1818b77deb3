"""Clouds, Slack and a ledger in one process, on a clock that can be moved."""
