"""Durable memory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from costguard.domain.errors import ProviderError


@dataclass(frozen=True, slots=True)
class Record:
    """One remembered thing: `kind` and `key` name it, `version` counts its writes from 1.

    `body` is plain JSON (str, int, float, bool, None, list, dict); decimals and times travel as strings.
    """

    kind: str
    key: str
    body: Mapping[str, Any]
    version: int = 0
    schema: int = 1


@dataclass(frozen=True, slots=True)
class Put:
    """Write `record`; `expect_version` 0 means it must not exist yet."""

    record: Record
    expect_version: int


@dataclass(frozen=True, slots=True)
class VersionCheck:
    """Fail the transaction unless the record is at `version` (0: absent)."""

    kind: str
    key: str
    version: int


class RecordStore(Protocol):
    """Durable memory with compare-and-set. Keys sort as UTF-8 bytes; a store serves many threads."""

    @property
    def durable(self) -> bool:
        """Whether records outlive the process; enforcing refuses a store that does not."""

    def get(self, kind: str, key: str) -> Record | None:
        """The current record, strongly consistent, or None."""

    def get_many(self, kind: str, keys: Iterable[str]) -> Mapping[str, Record]:
        """Those of these records that there are, by key, a hundred a request; each as `get`, together no snapshot."""

    def put(self, record: Record, expect_version: int) -> Record:
        """Write if the stored version is `expect_version` (0: absent); returns it with its new version.

        Raises:
            VersionConflictError: someone else wrote first; nothing was changed.
        """

    def query(self, kind: str, prefix: str = "", after: str = "") -> Iterator[Record]:
        """Records of `kind` whose key starts with `prefix` and sorts after `after`, in key order, all pages."""

    def transact(self, operations: Sequence[Put | VersionCheck]) -> None:
        """All or nothing, at most 100 operations.

        Raises:
            VersionConflictError: at least one expectation failed; nothing was changed.
        """

    def close(self) -> None:
        """Release connections; the store is not used afterwards."""


class SecretStore(Protocol):
    """Where a host keeps secrets, in one region: read with the host's own role, and never written."""

    def read(self, name: str, version: str = "") -> str:
        """The text kept under `name`, as its current version; `version` where the vendor asks for one.

        Raises:
            AccessDeniedError: it may not be read.
            NotFoundError: nothing is kept there.
            RefusedError: it is binary, empty, or not to be had now.
            ProviderError: it could not be read.
        """

    def fix_for(self, error: ProviderError) -> str:
        """What a person can do about `error`; empty where that is not known."""


class ObjectStore(Protocol):
    """A place for whole files: a bucket, or a folder. Objects are private; nothing here makes one public."""

    def put(self, name: str, body: bytes, content_type: str) -> str:
        """Keep `body` under `name` (`digests/2026-W03.html`), in the place of what was there; its address for people.

        Raises:
            ProviderError: not kept, or not known to be.
        """

    def get(self, name: str) -> bytes:
        """What is kept under `name`.

        Raises:
            NotFoundError: nothing is.
            ProviderError: it could not be read, or is longer than 64 MiB.
        """
