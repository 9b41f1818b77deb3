"""The chained journal: written, checked, pruned, and without names of people."""
