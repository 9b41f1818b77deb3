"""One neutral model of clouds: no SDK, no clock, no randomness. It serves the wires and the simulation alike."""
