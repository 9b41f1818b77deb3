"""A published policy as bytes: its very files in one canonical form, called by the hash of it. Pure.

The same files make the same bytes on every machine, so a bundle can be kept once and never changed, and whoever
fetches it can tell that it is the one that was asked for. The files are inside as they were written: mistakes and
explanations name their lines. And how long the last good policy may stand in for one that cannot be read or is wrong.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from datetime import datetime, timedelta
from enum import Enum

from costguard.domain.errors import InvalidInputError

SCHEMA = 1
_DIGEST = re.compile(r"[0-9a-f]{64}", re.ASCII)


def bundle_bytes(files: Mapping[str, str]) -> bytes:
    """The bundle of these files.

    Raises:
        InvalidInputError: a file holds what cannot be written as UTF-8.
    """
    body = {"schema": SCHEMA, "files": dict(files)}
    text = json.dumps(body, sort_keys=True, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    try:
        return text.encode()
    except UnicodeEncodeError as err:
        message = "a file of the policy holds half a character; save it as UTF-8"
        raise InvalidInputError(message) from err


def bundle_digest(body: bytes) -> str:
    """What a bundle is called: sha256 of its bytes, in hex."""
    return hashlib.sha256(body).hexdigest()


def bundle_name(digest: str) -> str:
    """Where a bundle is kept.

    Raises:
        InvalidInputError: no hash of a bundle.
    """
    if not _DIGEST.fullmatch(digest):
        message = f"{digest[:80]!r} is no hash of a published policy; see `costguard policy history`"
        raise InvalidInputError(message)
    return f"bundles/{digest}.json"


def bundle_files(body: bytes, digest: str) -> Mapping[str, str]:
    """The files of the bundle that is called so.

    Raises:
        InvalidInputError: these are other bytes, or a newer Costguard wrote them.
    """
    found = bundle_digest(body)
    if found != digest:
        message = (
            f"the published policy {digest[:12]} was altered where it is kept: its bytes have the hash {found[:12]}"
        )
        raise InvalidInputError(message)
    try:
        said = json.loads(body)
        schema, files = said["schema"], said["files"]
    except (ValueError, TypeError, KeyError, RecursionError) as err:
        message = f"{digest[:12]} is no published policy"
        raise InvalidInputError(message) from err
    if schema != SCHEMA:
        message = (
            f"the published policy {digest[:12]} has schema {schema}, this Costguard understands {SCHEMA}; upgrade it"
        )
        raise InvalidInputError(message)
    if not isinstance(files, dict) or not all(isinstance(text, str) for text in files.values()):
        message = f"{digest[:12]} is no published policy"
        raise InvalidInputError(message)
    return dict(sorted(files.items()))


KEPT_FOR = timedelta(days=7)  # NEVER rule 11
_CLOCK_SKEW = timedelta(minutes=5)


class Usable(str, Enum):
    """Whether a policy loaded some time ago may still decide."""

    OK = "ok"
    REFUSE = "refuse"


def usable(policy_loaded_at: datetime, now: datetime) -> Usable:
    """OK for at most seven days; a policy loaded in the future tells of a broken clock and is refused.

    Raises:
        ValueError: one of the times carries no offset.
    """
    if policy_loaded_at.utcoffset() is None or now.utcoffset() is None:
        raise ValueError("both times must carry an offset")
    age = now - policy_loaded_at
    return Usable.OK if -_CLOCK_SKEW <= age <= KEPT_FOR else Usable.REFUSE
