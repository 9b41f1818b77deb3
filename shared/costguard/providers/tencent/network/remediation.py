"""What every mend of a network on Tencent Cloud holds to before anything is sent."""

from __future__ import annotations

from costguard.domain.actions import Receipt
from costguard.providers.kit.core.changes import after_sending
from costguard.providers.kit.core.fields import Fields, named


def receipt_of(operation: str, answer: Fields, made: str = "") -> Receipt:
    """The change was sent: an answer that cannot be read leaves its outcome unknown."""
    with after_sending(operation):
        return Receipt(request_id=named(answer, "RequestId"), native_id=made)
