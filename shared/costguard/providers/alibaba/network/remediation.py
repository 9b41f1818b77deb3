"""What every mend of a network on Alibaba Cloud holds to before and after anything is sent."""

from __future__ import annotations

from costguard.domain.actions import Receipt
from costguard.domain.errors import OutcomeUnknownError, ProviderError
from costguard.providers.kit.core.changes import after_sending
from costguard.providers.kit.core.fields import Fields, named


def half_done(done: str, left: str, err: ProviderError | None, operation: str) -> OutcomeUnknownError:
    """The error of a mend of two calls whose second one failed, or was not made."""
    because = "" if err is None else f": {err}"
    message = f"{operation}: half done: {done}, and {left}{because}"
    return OutcomeUnknownError(message, operation=operation, code="HalfDone")


def receipt_of(operation: str, answer: Fields, made: str = "") -> Receipt:
    """The change was sent: an answer that cannot be read leaves its outcome unknown."""
    with after_sending(operation):
        return Receipt(request_id=named(answer, "RequestId"), native_id=made)
