"""Since when addresses have been seen without use. No vendor tells when an address was taken off something."""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from costguard.domain.errors import VersionConflictError
from costguard.domain.network import AddressState, NetworkInventory
from costguard.domain.refs import ResourceRef, Shard
from costguard.engine.ledger.codec import record_of, value_of
from costguard.engine.ledger.contention import until_uncontested
from costguard.ports import Put, RecordStore

_LOG = logging.getLogger(__name__)
LONGEST_HOLE = timedelta(days=3)
"""Between two looks at a shard; after a longer one nobody can say that an address was without use all the time."""

_KIND = "network_sightings"  # key: shard; a region has some thousand addresses at most, 100 bytes each
_ADDRESSES = "addresses"


@dataclass(frozen=True, slots=True)
class Sightings:
    """The addresses of one shard that were without use at the last look, each with the first look that saw it so."""

    shard: Shard
    looked_at: datetime
    since: Mapping[str, datetime] = field(default_factory=dict)
    """By native id."""


def first_seen(sheets: Iterable[Sightings], now: datetime) -> Mapping[ResourceRef, datetime]:
    """Since when each address is known to be without use, as far as that still holds at `now`."""
    return {
        ResourceRef(sheet.shard.cloud, sheet.shard.account, sheet.shard.region, "address", native_id): since
        for sheet in sheets
        if now - sheet.looked_at <= LONGEST_HOLE
        for native_id, since in sheet.since.items()
    }


def sighted(
    inventories: Sequence[NetworkInventory], known: Mapping[ResourceRef, datetime], now: datetime
) -> Iterator[Sightings]:
    """What is to be remembered of this look; a shard whose addresses were not read in full is left as it was."""
    for read in inventories:
        if read.lacks(_ADDRESSES) is None:
            unused = (each.ref for each in read.addresses if each.state is AddressState.UNATTACHED)
            yield Sightings(read.shard, now, {ref.native_id: known.get(ref, now) for ref in unused})


class SightingsRepository:
    """One record a shard."""

    def __init__(self, store: RecordStore) -> None:
        self._store = store

    def all(self) -> tuple[Sightings, ...]:
        """What was remembered of every shard."""
        return tuple(value_of(Sightings, record) for record in self._store.query(_KIND))

    def put(self, sheets: Iterable[Sightings], known: Iterable[Sightings] = ()) -> None:
        """Remember these in the place of `known`, which the look began with; what another run wrote since stands.

        A slow run would else put back what a quicker one has seen to have ended.
        """
        before = {sheet.shard: sheet for sheet in known}
        for sheet in sheets:
            if not self._swapped(sheet, before.get(sheet.shard)):
                _LOG.info("another run looked at these addresses meanwhile", extra={"shard": str(sheet.shard)})

    def used(self, network: NetworkInventory, now: datetime) -> None:
        """Take off what a read between two looks shows in use: nothing else would know of that hour.

        Raises:
            LedgerError: it could not be written, so that the next look would not know of it.
        """
        in_use = {each.ref.native_id for each in network.addresses if each.state is not AddressState.UNATTACHED}
        until_uncontested(lambda: self._taken_off(network.shard, in_use, now), "addresses seen in use")

    def _taken_off(self, shard: Shard, in_use: Collection[str], now: datetime) -> None:
        record = self._store.get(_KIND, str(shard))
        sheet = value_of(Sightings, record) if record is not None else None
        if record is None or sheet is None or not sheet.since.keys() & in_use:
            return
        kept = {native_id: since for native_id, since in sheet.since.items() if native_id not in in_use}
        written = record_of(_KIND, str(shard), Sightings(shard, max(now, sheet.looked_at), kept))
        self._store.transact([Put(written, record.version)])

    def _swapped(self, sheet: Sightings, before: Sightings | None) -> bool:
        record = self._store.get(_KIND, str(sheet.shard))
        if (None if record is None else value_of(Sightings, record)) != before:
            return False
        written = record_of(_KIND, str(sheet.shard), sheet)
        try:
            self._store.transact([Put(written, 0 if record is None else record.version)])
        except VersionConflictError:
            return False
        return True
