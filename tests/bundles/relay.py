"""Becomes another interpreter with the same environment: what a small host starts, where that host's Python is another.

`RELAY` is a JSON list of words: the interpreter, its options, the program.
"""

from __future__ import annotations

import json
import os

words = json.loads(os.environ.pop("RELAY"))
os.execv(words[0], words)  # noqa: S606 - an interpreter that was found, and a program of ours
