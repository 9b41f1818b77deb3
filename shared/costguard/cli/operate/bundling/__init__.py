"""How a function becomes a zip that a host runs: what goes in, pinned and hashed, the same bytes every time."""
