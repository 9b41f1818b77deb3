"""The run: scan, plan, act, report, and what it remembers."""
