"""The files of images: what one has beyond another, and that nobody but root can change any."""

from __future__ import annotations

import hashlib
import os
import re
import stat
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.bundles.reporting import UnexpectedError

_ENGINES = ("dev/", "proc/", "sys/", "tmp/", "run/.containerenv", "etc/hosts", "etc/hostname", "etc/resolv.conf")
"""What is mounted into every container, or made for that, and the one folder that anybody may write to."""


@dataclass(frozen=True)
class Entry:
    """A file, folder or link."""

    mode: int
    owner: int
    size: int
    digest: str

    @property
    def is_folder(self) -> bool:
        return stat.S_ISDIR(self.mode)


def entries_of(root: Path) -> Mapping[str, Entry]:
    """Everything below `root` by its path."""
    found = {}
    for folder, folders, files in os.walk(root):
        for name in (*folders, *files):
            path = Path(folder, name)
            about = path.lstat()
            digest = ""
            if path.is_symlink():
                digest = str(path.readlink())
            elif stat.S_ISREG(about.st_mode):
                digest = hashlib.sha256(path.read_bytes()).hexdigest()
            size = about.st_size if stat.S_ISREG(about.st_mode) else 0
            found[path.relative_to(root).as_posix()] = Entry(about.st_mode, about.st_uid, size, digest)
    return found


def added_files(before: Mapping[str, Entry], after: Mapping[str, Entry], places: str) -> Mapping[str, Entry]:
    """What `after` has that `before` had not, or had otherwise.

    Raises:
        UnexpectedError: the path of something does not match `places`, something is gone, or is not for everybody to
        read and for root alone to write.
    """
    added = {
        name: entry
        for name, entry in after.items()
        if before.get(name) != entry and not f"{name}/".startswith(_ENGINES)
    }
    gone = sorted(name for name in before.keys() - after.keys() if not name.startswith(_ENGINES))
    elsewhere = sorted(name for name in added if not re.match(places, f"{name}/"))
    if gone or elsewhere:
        raise UnexpectedError("neither the base's nor the function's, or gone:", *gone[:5], *elsewhere[:5])
    for name, entry in added.items():
        wanted = 0o755 if entry.is_folder else 0o644
        if entry.owner != 0 or stat.S_IMODE(entry.mode) != wanted:
            raise UnexpectedError(name, "is of", entry.owner, "with", oct(entry.mode))
    return added
