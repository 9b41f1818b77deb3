"""Reports and the weekly digest, from what runs left behind."""
