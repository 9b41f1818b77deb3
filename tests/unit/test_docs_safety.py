"""The page of promises names tests that exist."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_every_test_named_on_the_page_exists() -> None:
    page = (ROOT / "docs" / "safety.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`(test_\w+)`", page))
    code = "\n".join(path.read_text(encoding="utf-8") for path in (ROOT / "tests").rglob("test_*.py"))
    missing = sorted(name for name in named if f"def {name}(" not in code)
    assert named
    assert missing == []
