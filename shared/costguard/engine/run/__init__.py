"""One run: scan, plan, act, report; in one process, or in phases."""
