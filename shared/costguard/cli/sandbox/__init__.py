"""`costguard sandbox` and `--sandbox`: the commands, and the product's one way to the emulators."""
