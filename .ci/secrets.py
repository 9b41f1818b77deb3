"""What looks like a secret in any file, less what people looked at: `.secrets.baseline`. `--accept` writes that anew.

A line that moves changes nothing, as entries are compared by file, kind and hash. The tool's own hook would rewrite the
baseline for each.
"""  # noqa: INP001 - a script, no package

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

BASELINE = Path(".secrets.baseline")
LEFT_OUT = (
    r"^\.secrets\.baseline$|(^|/)(\.venv|\.git/|\.mypy_cache|\.ruff_cache|\.pytest_cache|\.hypothesis|\.terraform)"
)
WHY = (
    "Each was looked at: made-up values of tests and of stand-ins, names of settings and operations, names of "
    "secrets, not their values, hashes of files, policies and schemas, and samples of events with signatures that were "
    "never valid. None opens anything."
)


def found() -> dict[str, list[dict[str, object]]]:
    """By file, what looks like a secret: every file that is tracked or could be."""
    listed = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"]
    names = _told(listed).split("\0")
    there = [name for name in names if name and Path(name).is_file()]
    scan = [sys.executable, "-m", "detect_secrets", "scan", "--no-verify", "--all-files", "--exclude-files", LEFT_OUT]
    results: dict[str, list[dict[str, object]]] = {}
    for start in range(0, len(there), 500):
        results.update(json.loads(_told([*scan, *there[start : start + 500]]))["results"])
    return results


def _told(command: list[str]) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout  # noqa: S603 - the two above


def main() -> int:
    """0 where nothing is new."""
    results = found()
    entries = sorted(
        (name, str(one["type"]), str(one["hashed_secret"]), int(str(one["line_number"])))
        for name, several in results.items()
        for one in several
    )
    if sys.argv[1:] == ["--accept"]:
        rows = [{"file": name, "type": kind, "hash": digest} for name, kind, digest, _ in entries]
        unique = [row for place, row in enumerate(rows) if row not in rows[:place]]
        BASELINE.write_text(json.dumps({"why": WHY, "audited": unique}, indent=1) + "\n", encoding="utf-8")
        return 0
    known = {(row["file"], row["type"], row["hash"]) for row in json.loads(BASELINE.read_text("utf-8"))["audited"]}
    new = [(name, line, kind) for name, kind, digest, line in entries if (name, kind, digest) not in known]
    for name, line, kind in new:
        sys.stdout.write(f"{name}:{line}: {kind}; take it out, or look at it and run {sys.argv[0]} --accept\n")
    sys.stdout.write(f"{len(entries)} looked at, {len(new)} new\n")
    return 1 if new else 0


if __name__ == "__main__":
    sys.exit(main())
