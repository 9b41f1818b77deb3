"""What every `NetworkRemediator` holds to: a session that can do nothing else, and only what was decided on."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from costguard.domain.errors import NotFoundError, RefusedError
from costguard.domain.mends import Mend


def require_subject(mend: Mend, kinds: Collection[str], clouds: Collection[str]) -> None:
    """The mend is about something of one of these kinds in one of these clouds, and says which.

    Raises:
        RefusedError: it is not.
    """
    subject = mend.subject
    fits = subject.kind in kinds and subject.cloud in clouds and bool(subject.native_id and subject.region)
    wanted = f"it needs {' or '.join(sorted(kinds))} of {' or '.join(sorted(clouds))}, with id and region"
    require(mend, fits, wanted)


def require_unmoved(mend: Mend, now: Mapping[str, str], before: Mapping[str, str]) -> None:
    """Refuse what was decided on something that is not there any more; words that only one of them has count nothing.

    Raises:
        RefusedError: it has moved.
    """
    moved = sorted(word for word, was in before.items() if word in now and now[word] != was)
    require(mend, not moved, f"changed since it was decided on: {', '.join(moved)}")


def require(mend: Mend, fits: bool, why: str) -> None:  # noqa: FBT001 - the question comes first, as in an assertion
    """Refuse for the reason `why` unless it `fits`.

    Raises:
        RefusedError: it does not.
    """
    if not fits:
        raise refusal(mend, why)


def refusal(mend: Mend, why: str) -> RefusedError:
    """The error of a mend of which nothing was sent."""
    message = f"{mend.kind.value} of {mend.subject}: nothing was sent: {why}"
    return RefusedError(message, code="Unfit")


def gone(mend: Mend, what: str, operation: str, code: str = "NotListed") -> NotFoundError:
    """The error of a mend whose object is not there any more; `code` is what the cloud would say, where it is asked."""
    message = f"{mend.kind.value} of {mend.subject}: nothing was sent: {what} is not there"
    return NotFoundError(message, operation=operation, code=code)
