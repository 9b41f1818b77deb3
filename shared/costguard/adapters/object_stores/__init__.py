"""Places for whole files that belong to no cloud."""
