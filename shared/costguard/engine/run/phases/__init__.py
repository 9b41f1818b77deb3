"""A run in phases: what each writes down for the next, in accounts that are entered when they are asked."""
