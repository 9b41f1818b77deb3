"""Whole files in a folder of this machine, or of a file share that is mounted: readable by their owner alone."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from tempfile import NamedTemporaryFile

from costguard.domain.errors import NotFoundError, ProviderError, RefusedError, TruncatedReadError, UnavailableError
from costguard.ports.records import MOST_BYTES, object_name

_PUT, _GET = "folder:put", "folder:get"
_FOLDER_MODE = 0o700


class FolderStore:
    """An `ObjectStore` in one folder, which is made where it is not there yet."""

    def __init__(self, folder: str | Path) -> None:
        self._folder = Path(folder)

    def put(self, name: str, body: bytes, content_type: str) -> str:
        """Write beside, then rename: a reader sees the old file or the new one, and never half of one.

        The folder keeps no content type: the name's ending says it.
        """
        del content_type
        path = self._folder / object_name(name)
        try:
            path.parent.mkdir(mode=_FOLDER_MODE, parents=True, exist_ok=True)
            with NamedTemporaryFile(dir=path.parent, prefix=".", suffix=".part", delete=False) as file:  # mode 0600
                part = Path(file.name)
                file.write(body)
                file.flush()
                os.fsync(file.fileno())
            try:
                part.replace(path)
            except OSError:
                with suppress(OSError):
                    part.unlink()
                raise
        except OSError as err:
            raise _failed(err, _PUT) from err
        return str(path.absolute())

    def get(self, name: str) -> bytes:
        """What the file holds; a link is not followed out of the folder."""
        path = self._folder / object_name(name)
        try:
            if not path.resolve().is_relative_to(self._folder.resolve()):
                message = f"{_GET}: {name} leads out of the folder"
                raise RefusedError(message, operation=_GET)
            with path.open("rb") as file:
                too_long = os.fstat(file.fileno()).st_size > MOST_BYTES
                body = b"" if too_long else file.read(MOST_BYTES)
        except FileNotFoundError as err:
            message = f"{_GET}: nothing is kept under {name}"
            raise NotFoundError(message, operation=_GET, code="NoSuchKey") from err
        except OSError as err:
            raise _failed(err, _GET) from err
        if too_long:
            message = f"{_GET}: {name} is longer than {MOST_BYTES >> 20} MiB"
            raise TruncatedReadError(message, operation=_GET)
        return body


def _failed(err: OSError, operation: str) -> ProviderError:
    return UnavailableError(
        f"{operation}: {err.strerror or type(err).__name__}", operation=operation, code=type(err).__name__
    )
