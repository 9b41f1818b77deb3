"""Costguard stops the GPU bill from burning money while nobody looks."""

import logging

logging.getLogger(__name__).addHandler(logging.NullHandler())  # a library is silent until somebody sets logging up
