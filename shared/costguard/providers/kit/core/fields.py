"""Fields of a cloud's answers, taken at their documented type or not at all.

Clouds leave out what does not apply, so an absent field is normal. A field of another type, null among
them, means that the answer cannot be trusted: read as "none" it could lose the tag that protects.

What takes an answer apart raises ValueError or TypeError where it is not of the documented form, here and in every
cloud's folder; `as_documented` makes that the answer's fault.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from typing import Any, TypeVar

from costguard.domain.errors import OutcomeUnknownError, ProviderError, TruncatedReadError
from costguard.providers.kit.core.credentials import without_secrets

UNDOCUMENTED = "Undocumented"
"""A code of our own: the answer is not of the documented form."""

_MOST = 1e15  # of anything counted or measured; whole numbers in JSON may have any length

Fields = Mapping[str, Any]
T = TypeVar("T")


def cut_short(operation: str, what: str, code: str) -> TruncatedReadError:
    """An answer of `operation` is not all there is."""
    return TruncatedReadError(f"{operation}: {what}", operation=operation, code=code)


def texts(fields: Fields, key: str) -> list[str]:
    """A list of texts; empty where absent."""
    found = fields.get(key, [])
    if not isinstance(found, list) or not all(isinstance(each, str) for each in found):
        message = f"{key} is no list of texts"
        raise TypeError(message)
    return found


@contextmanager
def as_documented(operation: str) -> Iterator[None]:
    """What goes wrong in here while an answer of `operation` is taken apart is the answer's fault.

    Raises:
        ProviderError: something did.
    """
    try:
        yield
    except (ValueError, TypeError, LookupError, AttributeError, ArithmeticError, RecursionError) as err:
        message = f"{operation}: not as documented: {without_secrets(f'{type(err).__name__}: {err}')}"
        raise ProviderError(message, operation=operation, code=UNDOCUMENTED) from err


@contextmanager
def after_sending(operation: str) -> Iterator[None]:
    """The change was sent: an answer that cannot be read leaves its outcome unknown.

    Raises:
        OutcomeUnknownError: it could not.
    """
    try:
        with as_documented(operation):
            yield
    except ProviderError as err:
        message = f"{err}; it may have taken effect"
        raise OutcomeUnknownError(message, operation=operation, code=err.code) from err


def text(fields: Fields, key: str) -> str:
    """A text; empty where absent."""
    return str(_of(fields, key, str, ""))


def named(fields: Fields, key: str) -> str:
    """A text that must be there: an id, a name."""
    found = text(fields, key)
    if not found:
        message = f"{key} is missing"
        raise ValueError(message)
    return found


def flag(fields: Fields, key: str) -> bool:
    """A truth value; False where absent."""
    return bool(_of(fields, key, bool, default=False))


def present(found: T | None, key: str) -> T:
    """What was found under `key`, which must be there."""
    if found is None:
        message = f"{key} is missing"
        raise ValueError(message)
    return found


def whole(fields: Fields, key: str) -> int:
    """A whole number from 0 up, which must be there."""
    if amount(fields, key) is None or not isinstance(fields[key], int):
        message = f"{key} is no whole number"
        raise ValueError(message)
    return int(fields[key])


def moment(fields: Fields, key: str) -> datetime | None:
    """A time with its offset."""
    found: datetime | None = _of(fields, key, datetime, None)
    if found is not None and found.utcoffset() is None:
        message = f"{key} is a time without offset"
        raise ValueError(message)
    return found


def amount(fields: Fields, key: str) -> float | None:
    """A finite number from 0 up."""
    found = fields.get(key)
    if found is None and key not in fields:
        return None
    if isinstance(found, bool) or not isinstance(found, (int, float)) or not 0 <= found < _MOST:
        message = f"{key} is no number from 0 up"
        raise ValueError(message)
    return float(found)


def part(fields: Fields, key: str) -> Fields:
    """A structure; empty where absent."""
    found: Fields = _of(fields, key, Mapping, {})
    return found


def parts(fields: Fields, key: str) -> list[Fields]:
    """A list of structures; empty where absent."""
    found = list(_of(fields, key, (list, tuple), ()))
    if not all(isinstance(each, Mapping) for each in found):
        message = f"{key} is no list of structures"
        raise TypeError(message)
    return found


def tags_of(fields: Fields) -> dict[str, str]:
    """`Tags` as names and values; a name twice is no answer of a cloud, and one of the two may protect."""
    tags = parts(fields, "Tags")
    found = {named(tag, "Key"): text(tag, "Value") for tag in tags}
    if len(found) != len(tags):
        message = "a tag is there twice"
        raise ValueError(message)
    return found


def tag_value(pattern: str, tags: Mapping[str, str]) -> str | None:
    """What a tag says, or its name where it is empty; `pattern` ending in `*` stands for what follows; None without."""
    if not pattern.endswith("*"):
        value = tags.get(pattern)
        return None if value is None else value or pattern
    prefix = pattern[:-1]
    found = sorted(tag for tag in tags if tag.startswith(prefix))
    return (found[0][len(prefix) :] or prefix) if found else None


def account_id(fields: Fields, key: str) -> str:
    """The number of an account, which must be there."""
    found = named(fields, key)
    if not (found.isascii() and found.isdigit()):
        message = f"{key} is no account number"
        raise ValueError(message)
    return found


def _of(fields: Fields, key: str, kind: Any, default: Any) -> Any:
    if key not in fields:
        return default
    found = fields[key]
    if not isinstance(found, kind):
        message = f"{key} is of type {type(found).__name__}"
        raise TypeError(message)
    return found
