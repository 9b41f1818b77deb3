"""The edge that knows Lambda, Function Compute and SCF."""
