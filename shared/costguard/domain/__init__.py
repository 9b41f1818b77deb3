"""The words of Costguard as frozen values: no cloud, no clock, no I/O."""
