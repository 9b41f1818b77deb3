"""The policy the demo runs under, as its user would write it."""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path

from costguard.ports import PolicyText

DEMO_POLICY = Path(__file__).with_name("demo-policy")
"""A folder like a config repository: `costguard.yaml`, `owners.yaml`, `policies/*.yaml`."""


def demo_policy() -> PolicyText:
    """The files of the demo's policy."""
    paths = sorted(DEMO_POLICY.rglob("*.yaml"))
    files = {path.relative_to(DEMO_POLICY).as_posix(): path.read_text(encoding="utf-8") for path in paths}
    revision = sha256("\0".join(text for pair in sorted(files.items()) for text in pair).encode()).hexdigest()
    return PolicyText(files, revision[:12], "the demo's policy")
