"""A policy kept in one file or one folder."""

from __future__ import annotations

import hashlib
import stat
from collections.abc import Iterator
from pathlib import Path

from costguard.adapters.policy_sources.selection import (
    MAX_FILES,
    RULES_FOLDER,
    almost_rules,
    is_hidden,
    is_yaml,
    misnamed,
    none_here,
    too_many,
)
from costguard.domain.errors import InvalidInputError, UnavailableError
from costguard.policy.syntax.problems import MAX_BYTES, decoded, invalid, too_long
from costguard.ports import PolicyText


class FilePolicySource:
    """Reads `path`: one YAML file, or a folder with costguard.yaml and what stands beside it.

    Of a folder its own YAML files and those anywhere under `policies/` are read, in order of their paths.
    Names that begin with a dot, README and everything that is not YAML are left alone. Links may lead
    to files of the same folder (a mounted ConfigMap is made of them), never out of it.
    """

    def __init__(self, path: Path | str) -> None:
        self._path = Path(path)

    def read(self) -> PolicyText:
        """All policy files, whole; the revision is a hash of their bytes.

        Raises:
            InvalidInputError: nothing there, not text, too long, or a link out of the folder.
            UnavailableError: the file system refused.
        """
        try:
            raw = dict(self._contents())
        except FileNotFoundError as err:
            message = f"{err.filename or self._path}: no such file or folder; give the path of a policy"
            raise InvalidInputError(message) from err
        except OSError as err:
            message = f"{err.filename or self._path}: cannot be read: {err.strerror}"
            raise UnavailableError(message, operation="file:read", code=type(err).__name__) from err
        if not raw:
            raise InvalidInputError(none_here(str(self._path)))
        revision = hashlib.sha256()
        files: dict[str, str] = {}
        for name in sorted(raw):
            revision.update(f"{len(name.encode())} {len(raw[name])} ".encode() + name.encode() + raw[name])
            files[name] = decoded(self._shown(name), raw[name])
        return PolicyText(files=files, revision=revision.hexdigest(), origin=str(self._path))

    def _contents(self) -> Iterator[tuple[str, bytes]]:
        if not self._path.is_dir():
            yield self._path.name, self._bytes(self._path, self._path.name)
            return
        for count, path in enumerate(self._files(self._path)):
            if count >= MAX_FILES:
                raise InvalidInputError(too_many(str(self._path)))
            name = path.relative_to(self._path).as_posix()
            yield name, self._bytes(path, name)

    def _files(self, folder: Path) -> Iterator[Path]:
        for path in sorted(folder.iterdir()):
            if is_hidden(path.name):
                continue
            if path.is_dir():
                if self._holds_rules(path, folder):
                    self._refuse_link(path)
                    yield from self._files(path)
            elif is_yaml(path.name):
                self._stays_inside(path)
                yield path

    def _holds_rules(self, path: Path, folder: Path) -> bool:
        """Everything under `policies/`; a folder called almost so is a mistake that would drop rules in silence."""
        if folder != self._path or path.name == RULES_FOLDER:
            return True
        if almost_rules(path.name) and any(is_yaml(each.name) for each in path.iterdir()):
            raise InvalidInputError(misnamed(str(path)))
        return False

    def _refuse_link(self, path: Path) -> None:
        if path.is_symlink():
            message = f"{path}: a folder of the policy may not be a link; put the files there"
            raise InvalidInputError(message)

    def _stays_inside(self, path: Path) -> None:
        if not path.is_symlink():
            return
        try:
            target = path.resolve(strict=True)
        except (OSError, RuntimeError) as err:  # RuntimeError: a loop of links, before Python 3.13
            message = f"{path}: this link leads nowhere; put the file there"
            raise InvalidInputError(message) from err
        if self._path.resolve() not in target.parents:
            message = f"{path}: this link leads out of the policy; put the file there"
            raise InvalidInputError(message)

    def _bytes(self, path: Path, name: str) -> bytes:
        if not stat.S_ISREG(path.stat().st_mode):
            message = f"{path}: not an ordinary file"
            raise InvalidInputError(message)
        with path.open("rb") as file:
            raw = file.read(MAX_BYTES + 1)
        if len(raw) > MAX_BYTES:
            raise invalid((too_long(self._shown(name)),))
        return raw

    def _shown(self, name: str) -> str:
        return str(self._path / name) if self._path.is_dir() else str(self._path)
