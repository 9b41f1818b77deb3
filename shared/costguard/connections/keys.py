"""The access key of a cloud as its provider takes it."""

from __future__ import annotations

from costguard.providers.kit.core.credentials import Keys
from costguard.settings import Access


def keys_of(access: Access) -> Keys | None:
    """The key that was set up; None where the host's own role counts."""
    key = access.key
    return None if key is None else Keys(key.key_id, key.secret.reveal(), key.token.reveal())
