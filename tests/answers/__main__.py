"""Writes `tencent.json` and `alibaba.json` anew: what the vendors publish of their answers, from their own packages.

    pip download --no-deps -d FOLDER PACKAGE   (each of `PACKAGES`)
    python -m tests.answers FOLDER

Only the answers of actions that the emulators have are kept. The packages are read, not installed and not run. AWS
needs no file: its models come with botocore.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from tests.answers import alibaba_packages, tencent_packages

PACKAGES = (
    *("tccli", "tccli-intl-en", *alibaba_packages.PACKAGES.values()),
    *(f"{alibaba_packages.PACKAGES[service]}=={version}" for service, version in alibaba_packages.EARLIER.items()),
)
_HERE = Path(__file__).parent


def main() -> None:
    """Read the wheels of a folder and write both files."""
    folder = Path(sys.argv[1])
    for name, found in (
        ("tencent.json", tencent_packages.published(folder)),
        ("alibaba.json", alibaba_packages.published(folder)),
    ):
        (_HERE / name).write_text(json.dumps(found, indent=1, ensure_ascii=False, sort_keys=True) + "\n", "utf-8")


if __name__ == "__main__":
    main()
