"""The page of promises names tests that exist."""

from __future__ import annotations

import re
from datetime import timedelta
from pathlib import Path

from costguard.domain.signals import SignalName, SignalSummary
from costguard.providers.alibaba.compute.metrics import DELAY
from costguard.providers.aws.compute.metrics import AGENT_DELAY as AWS_DELAY
from costguard.providers.tencent.compute.metrics import AGENT_DELAY as TENCENT_DELAY

ROOT = Path(__file__).resolve().parents[2]


def test_every_test_named_on_the_page_exists() -> None:
    page = (ROOT / "docs" / "safety.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`(test_\w+)`", page))
    code = "\n".join(path.read_text(encoding="utf-8") for path in (ROOT / "tests").rglob("test_*.py"))
    missing = sorted(name for name in named if f"def {name}(" not in code)
    assert named
    assert missing == []


def test_the_page_says_how_late_a_job_may_begin_and_not_be_seen() -> None:
    """The figures are those of the judge; the contract suite measures them on each cloud."""
    page = (ROOT / "docs" / "safety.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (\d+) minutes?\b[^|]*\|[^|\d]*(\d+) [^|]*\|[^|\d]*(\d+) [^|]*\|", page, re.MULTILINE)
    latest = max(AWS_DELAY, DELAY, TENCENT_DELAY)

    def unseen(minutes: int) -> timedelta:
        period = timedelta(minutes=minutes)
        return SignalSummary(SignalName.GPU, "0", 0.0, 1, 1, None, period, "", delay=latest).unseen

    assert [period for period, _, _ in rows] == ["1", "5"]
    for period, at_once, accepted in rows:
        assert (at_once, int(accepted)) == (period, unseen(int(period)) / timedelta(minutes=1))
