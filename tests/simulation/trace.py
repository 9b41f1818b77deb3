"""What happened, as lines for people and as one hash for machines."""

from __future__ import annotations

from datetime import datetime
from enum import Enum
from hashlib import blake2b


class Trace:
    """Every boundary call and every happening of one simulation, in order."""

    def __init__(self, *, readable: bool = False) -> None:
        self._hash = blake2b(digest_size=16)
        self._lines: list[str] | None = [] if readable else None

    def add(self, at: datetime, who: str, number: int, what: str, subject: str, fault: Enum | None = None) -> None:
        """One call."""
        struck = f"  !! {fault.value}" if fault is not None else ""
        said = f"{number:5} {who:12} {what} {subject}{struck}\n"
        self._hash.update(f"{at.second}.{at.microsecond} {said}".encode())
        if self._lines is not None:
            self._lines.append(f"{at:%m-%d %H:%M:%S} {said}")

    def note(self, at: datetime, what: str) -> None:
        """Something that is no call: what a machine did, what people did, what an oracle found."""
        line = f"{at:%m-%d %H:%M:%S}       {what}\n"
        self._hash.update(line.encode())
        if self._lines is not None:
            self._lines.append(line)

    @property
    def digest(self) -> str:
        """The hash of the whole: equal if and only if the same happened."""
        return self._hash.hexdigest()

    @property
    def text(self) -> str:
        """The lines, if they were kept."""
        return "".join(self._lines or ())
