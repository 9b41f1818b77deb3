"""Which policy is in force, who published it, and who agreed."""
