"""Which instances the internet can reach, on which ports, and by what."""
