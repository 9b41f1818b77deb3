"""Who launched what, as the audit trail said: asked once for each machine, since trails are slow and forget."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from costguard.domain.errors import VersionConflictError
from costguard.domain.refs import ResourceRef
from costguard.domain.resources import Instance, Launch
from costguard.engine.ledger.codec import record_of, value_of
from costguard.ports import RecordStore

_KIND = "launch"
ASKED_AGAIN_AFTER = timedelta(days=1)
"""How long a trail that knew nothing is believed: its events come up to a quarter of an hour late, and some later."""


@dataclass(frozen=True, slots=True)
class KnownLaunch:
    """What the trail said of the machine `ref_text`; `launch` None: nothing. `asked_at` is when it was asked last."""

    ref_text: str
    launch: Launch | None
    asked_at: datetime


class LaunchRepository:
    """The trail's answer for each machine, by its id and the moment it was made: an id never comes twice."""

    def __init__(self, store: RecordStore) -> None:
        self._store = store

    def of(self, instances: Iterable[Instance], now: datetime) -> Mapping[ResourceRef, Launch | None]:
        """What is known of these; None where the trail knew nothing lately. Others have to be asked about."""
        found: dict[ResourceRef, Launch | None] = {}
        by_key = {_key(instance): instance.ref for instance in instances}
        for key, record in self._store.get_many(_KIND, by_key).items():
            known = value_of(KnownLaunch, record)
            if known.launch is not None or now - known.asked_at < ASKED_AGAIN_AFTER:
                found[by_key[key]] = known.launch
        return found

    def remember(self, instance: Instance, launch: Launch | None, now: datetime) -> None:
        """Keep an answer; one that names somebody is never forgotten for one that names nobody."""
        key = _key(instance)
        record = self._store.get(_KIND, key)
        told = KnownLaunch(str(instance.ref), launch, now)
        if record is not None and launch is None:
            told = replace(told, launch=value_of(KnownLaunch, record).launch)
        try:
            self._store.put(record_of(_KIND, key, told), record.version if record is not None else 0)
        except VersionConflictError:
            return  # another run asked meanwhile, and the same trail


def _key(instance: Instance) -> str:
    made = instance.created_at.isoformat() if instance.created_at is not None else instance.run_epoch
    return f"{instance.ref}@{made}"
