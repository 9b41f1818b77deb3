"""One folder a cloud, with the same file names in each; the only importers of vendor SDKs."""
