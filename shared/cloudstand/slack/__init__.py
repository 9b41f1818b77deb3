"""A stand-in for Slack on loopback."""
