"""The compiled policy: frozen values that the engine reads."""
