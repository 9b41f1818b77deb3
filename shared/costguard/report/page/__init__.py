"""The report on one page that needs nothing else."""
