"""What the commands of this folder say, and how they end where something is not as it should be."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

_SHOWN = 3000


class UnexpectedError(Exception):
    """Told to whoever runs this."""

    def __init__(self, *what: object) -> None:
        super().__init__(" ".join(map(str, what)))


class NotPossibleError(Exception):
    """What has to be installed first."""


def say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def done(command: Sequence[str | Path], *, folder: Path | None = None, environ: Mapping[str, str] | None = None) -> str:
    """What a command that has to succeed printed.

    Raises:
        UnexpectedError: it did not; with the end of what it complained of.
    """
    ended = subprocess.run(  # noqa: S603 - programs that were looked for, our own arguments
        [str(word) for word in command], cwd=folder, env=environ, capture_output=True, text=True, check=False
    )
    if ended.returncode:
        raise UnexpectedError(Path(command[0]).name, f"ended with {ended.returncode}:\n{ended.stderr[-_SHOWN:]}")
    return ended.stdout
