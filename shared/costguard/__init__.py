"""Costguard stops the GPU bill from burning money while nobody looks."""
