"""What the phases of one run hand to each other: values in an object store, bound by hashes that the ledger keeps.

The record binds what a part left: who can write the object store but not the ledger can make a part unreadable, which
is a gap, and nothing else.
"""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, TypeVar

from costguard.domain.errors import NotFoundError, StalePlanError, TruncatedReadError
from costguard.engine.ledger.codec import record_of, until_uncontested, value_of
from costguard.ports import ObjectStore, RecordStore
from costguard.ports.records import MOST_BYTES

if TYPE_CHECKING:
    from pydantic import TypeAdapter

VERSION = 1
"""Of what is written here. Phases of one run are deployed together: another version is refused, never upcast."""

MOST_UNPACKED = 1 << 30  # ten times a plan of 100,000 machines, and within the memory of the largest function
_LEVEL = 3  # a tenth of the size for a twentieth of the time that writing the JSON takes
_TYPE = "application/zlib"

_Value = TypeVar("_Value")
_ADAPTERS: dict[Any, TypeAdapter[Any]] = {}  # building one costs milliseconds


@dataclass(frozen=True, slots=True)
class BlobRef:
    """One value kept outside: its name in the store, the SHA-256 of its bytes, and how many there are."""

    name: str
    sha256: str
    size: int


class RunBlobs:
    """The values of one run. Its names begin with the run's own prefix, and no other name is ever read."""

    def __init__(self, objects: ObjectStore, run_id: str) -> None:
        self._objects = objects
        self.prefix = f"runs/{run_id}/"

    def put(self, name: str, value: object) -> BlobRef:
        """Keep a value; its hash is part of its name, so that two who write the same thing never disturb each other.

        Raises:
            StalePlanError: too large to be read again.
            ProviderError: not kept, or not known to be.
        """
        body = packed(value)
        if len(body) > MOST_BYTES:
            message = f"{name} of this run takes {len(body) >> 20} MiB; at most {MOST_BYTES >> 20} are ever read"
            raise StalePlanError(message)
        digest = hashlib.sha256(body).hexdigest()
        ref = BlobRef(f"{self.prefix}{name}-{digest[:16]}", digest, len(body))
        self._objects.put(ref.name, body, _TYPE)
        return ref

    def get(self, type_: type[_Value], ref: BlobRef) -> _Value:
        """The value that `ref` was given for.

        Raises:
            StalePlanError: it is another run's, altered, gone, or written by another version.
            ProviderError: it could not be read.
        """
        if not ref.name.startswith(self.prefix):
            message = f"{ref.name} is not of this run, whose names begin with {self.prefix}"
            raise StalePlanError(message)
        try:
            body = self._objects.get(ref.name)
        except (NotFoundError, TruncatedReadError) as err:
            message = f"{ref.name} is not there as it was written: {err}"
            raise StalePlanError(message) from err
        if hashlib.sha256(body).hexdigest() != ref.sha256:
            message = f"{ref.name} was altered: it does not match the hash in the ledger"
            raise StalePlanError(message)
        return unpacked(type_, body)


def packed(value: object) -> bytes:
    """A frozen dataclass as compressed JSON: the same bytes for equal values.

    Raises:
        StalePlanError: a field holds what its type does not allow, so that it could not be read again.
    """
    try:
        text = _adapter(type(value)).dump_json((type(value).__name__, VERSION, value), warnings="error")
    except ValueError as err:  # pydantic's PydanticSerializationError is one
        message = f"a {type(value).__name__} cannot be handed on: {err}"
        raise StalePlanError(message) from err
    return zlib.compress(text, _LEVEL)


def unpacked(type_: type[_Value], body: bytes) -> _Value:
    """The value that `packed` was given: nothing missing, nothing more, nothing converted.

    Raises:
        StalePlanError: it is no such value, or of another version.
    """
    try:
        unpacking = zlib.decompressobj()
        text = unpacking.decompress(body, MOST_UNPACKED)
        if unpacking.unconsumed_tail or not unpacking.eof or unpacking.unused_data:
            raise ValueError("it does not end where it should")  # noqa: TRY301 - one place says what it was read for
        name, version, value = _adapter(type_).validate_json(text)
    except (ValueError, zlib.error, RecursionError) as err:  # pydantic's ValidationError is a ValueError
        message = f"what was handed on as {type_.__name__} cannot be read: {err}"
        raise StalePlanError(message) from err
    if (name, version) != (type_.__name__, VERSION):
        message = f"a {name} of version {version} was handed on; this phase reads {type_.__name__} of version {VERSION}"
        raise StalePlanError(message)
    if _adapter(type_).dump_json((name, version, value)) != text:
        message = f"a {name} was handed on that is not written as this phase writes it: deploy all phases together"
        raise StalePlanError(message)
    found: _Value = value
    return found


def _adapter(type_: Any) -> TypeAdapter[Any]:
    """For (name, version, value). Strict; a machine with a negative sample has an infinite maximum, and keeps it."""
    if type_ not in _ADAPTERS:
        from pydantic import ConfigDict, TypeAdapter

        config = ConfigDict(strict=True, extra="forbid", ser_json_inf_nan="constants")
        _ADAPTERS[type_] = TypeAdapter(tuple[str, int, type_], config=config)
    return _ADAPTERS[type_]


_KIND = "phase"  # key: guard / phase / number of the part


@dataclass(frozen=True, slots=True)
class PartRecord:
    """What one part of one phase left. `begun` is when its run began, `parts` how many parts the next phase has."""

    run_id: str
    begun: datetime
    at: datetime
    blob: BlobRef
    parts: int = 0


class PhaseBook:
    """The records of one run of one guard. The first to finish a part is remembered; later ones are told what it left.

    Runs take each other's places, so that there are never more records than parts of the largest run.
    """

    def __init__(self, store: RecordStore, guard: str, run_id: str, begun: datetime) -> None:
        self._store = store
        self._guard = guard
        self.run_id = run_id
        self.begun = begun

    def get(self, phase: str, part: int = 0) -> PartRecord | None:
        """What this run's part left, or None: it is not done, or another run has taken the place."""
        record = self._store.get(_KIND, self._key(phase, part))
        return self._own(value_of(PartRecord, record)) if record is not None else None

    def all(self, phase: str) -> Mapping[int, PartRecord]:
        """What the parts of this run left, by number, as far as they are done."""
        prefix = f"{self._guard}/{phase}/"
        found = {
            int(record.key.removeprefix(prefix)): self._own(value_of(PartRecord, record))
            for record in self._store.query(_KIND, prefix)
        }
        return {number: record for number, record in found.items() if record is not None}

    def done(self, phase: str, part: int, blob: BlobRef, now: datetime, parts: int = 0) -> PartRecord:
        """Remember what a part left; the record that stands, which may be that of whoever was first.

        Raises:
            StalePlanError: a later run has taken the place.
        """
        wanted = PartRecord(self.run_id, self.begun, now, blob, parts)

        def attempt() -> PartRecord:
            record = self._store.get(_KIND, self._key(phase, part))
            if record is not None:
                stands = value_of(PartRecord, record)
                if stands.run_id == self.run_id:
                    return stands
                if stands.begun > self.begun:
                    message = f"run {self.run_id} was overtaken by run {stands.run_id}"
                    raise StalePlanError(message)
            written = record_of(_KIND, self._key(phase, part), wanted)
            self._store.put(written, record.version if record is not None else 0)
            return wanted

        return until_uncontested(attempt, f"{phase} of run {self.run_id}")

    def _own(self, record: PartRecord) -> PartRecord | None:
        return record if record.run_id == self.run_id else None

    def _key(self, phase: str, part: int) -> str:
        return f"{self._guard}/{phase}/{part:05d}"
