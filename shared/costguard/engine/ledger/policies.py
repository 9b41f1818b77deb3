"""The last policy that was valid, kept whole: what a run falls back to while the current one is broken."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from costguard.engine.ledger.codec import record_of, value_of
from costguard.engine.ledger.contention import until_uncontested
from costguard.engine.ledger.publications import PublicationRepository
from costguard.ports import PolicyText, RecordStore

_KIND, _PLAIN, _PUBLISHED = "policy", "last_good", "last_good_published"


@dataclass(frozen=True, slots=True)
class GoodPolicy:
    """The files of a policy that passed every check, and when it was last read."""

    files: Mapping[str, str]
    revision: str
    origin: str
    read_at: datetime

    @property
    def text(self) -> PolicyText:
        """As a policy source hands it over."""
        return PolicyText(self.files, self.revision, self.origin)


class PolicyRepository:
    """Remembers one policy; of published ones another, so that no other file can ever stand in for them."""

    def __init__(self, store: RecordStore) -> None:
        self._store = store
        self.published = PublicationRepository(store)

    def remember(self, text: PolicyText, now: datetime, *, published: bool = False) -> None:
        """Keep `text` as the last good policy; safe to repeat."""
        key = _PUBLISHED if published else _PLAIN

        def attempt() -> None:
            known = self._store.get(_KIND, key)
            good = GoodPolicy(dict(text.files), text.revision, text.origin, now)
            self._store.put(record_of(_KIND, key, good), known.version if known is not None else 0)

        until_uncontested(attempt, "the last good policy")

    def last_good(self, *, published: bool = False) -> GoodPolicy | None:
        """The last one remembered, however old."""
        record = self._store.get(_KIND, _PUBLISHED if published else _PLAIN)
        return value_of(GoodPolicy, record) if record is not None else None
