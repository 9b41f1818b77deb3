"""What every emulator of a cloud is served through: HTTP on loopback, faults on the wire, limits of rate, one world."""
