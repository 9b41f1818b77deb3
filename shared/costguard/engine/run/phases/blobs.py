"""What the phases of one run hand to each other: whole values in an object store, each bound by its hash."""

from __future__ import annotations

import hashlib
import zlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from costguard.domain.errors import NotFoundError, StalePlanError, TruncatedReadError
from costguard.ports import ObjectStore
from costguard.ports.objects import MOST_BYTES

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
