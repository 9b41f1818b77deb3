"""The checks of networks, by what they look at."""
