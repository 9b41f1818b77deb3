"""`python -m tests.canaries`: plant secrets everywhere, run everything, and search all that left."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

if __name__ == "__main__":
    sys.exit(pytest.main([str(Path(__file__).with_name("everything.py")), "-p", "no:cacheprovider", *sys.argv[1:]]))
