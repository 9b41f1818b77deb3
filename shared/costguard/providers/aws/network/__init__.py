"""AWS: networks as they are read and set right."""
