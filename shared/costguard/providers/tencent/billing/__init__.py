"""Tencent Cloud: what was billed, budgets of the console, and prices."""
