"""What things cost on every cloud: policy first, then what the cloud tells. Unknown is absent."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timezone
from decimal import Decimal
from fnmatch import fnmatchcase
from typing import Generic, TypeVar

from costguard.domain.money import HOURS_PER_MONTH, HourlyRate, Money
from costguard.domain.refs import ResourceRef
from costguard.domain.resources import Billing, Instance, InstanceDetail, Volume
from costguard.policy.model.policy import PriceOverride

_SessionT = TypeVar("_SessionT")


class CloudPrices(ABC, Generic[_SessionT]):
    """`PriceSource` for one provider. What was asked once is kept; threads may share it, and two may ask the same."""

    def __init__(self, session: _SessionT, overrides: Sequence[PriceOverride], *, now: datetime) -> None:
        self._session = session
        self._overrides = tuple(overrides)
        self._now = now.astimezone(timezone.utc)
        self._today = self._now.date().isoformat()

    def rates(self, instances: Sequence[Instance]) -> Mapping[ResourceRef, HourlyRate]:
        """Hourly price by instance: what the policy says, else what the cloud tells."""
        agreed = {each.ref: negotiated(each, self._overrides) for each in instances}
        self._read([each for each in instances if agreed[each.ref] is None])
        found: dict[ResourceRef, HourlyRate] = {}
        for instance in instances:
            own = agreed[instance.ref]
            rate = self._told(instance) if own is None else HourlyRate(own, "policy", self._today)
            if rate is not None:
                found[instance.ref] = rate
        return found

    def kept_hourly(self, detail: InstanceDetail) -> Sequence[tuple[str, Money | None]]:
        """Volumes and kept public addresses, which bill on after a stop."""
        self._read_volumes(detail.volumes)
        volumes = [("volume", self._volume_hourly(volume)) for volume in detail.volumes]
        return [*volumes, *(("public_address", self._address_hourly(ref)) for ref in detail.kept_addresses)]

    @abstractmethod
    def snapshot_hourly(self, volume: Volume) -> Money | None:
        """The whole volume as a snapshot: those hold changed blocks only, so never more. None where unknown."""

    @abstractmethod
    def _read(self, instances: Sequence[Instance]) -> None:
        """Ask for the prices of these, as far as they are not known."""

    @abstractmethod
    def _told(self, instance: Instance) -> HourlyRate | None:
        """What the cloud tells of it."""

    def _read_volumes(self, volumes: Sequence[Volume]) -> None:
        """Ask for the prices of these together, where that is faster."""

    @abstractmethod
    def _volume_hourly(self, volume: Volume) -> Money | None:
        """What bought performance costs on top is not known: a lower bound."""

    def _address_hourly(self, ref: ResourceRef) -> Money | None:
        """Unknown, where no operation tells it."""
        del ref
        return None


def gib_hourly(volume: Volume, gib_month: Decimal | None, currency: str) -> Money | None:
    """An hour of all its GiB, by the price of a GiB-month."""
    if gib_month is None:
        return None
    return Money(gib_month * Decimal(str(volume.size_gib)) / HOURS_PER_MONTH, currency)


def negotiated(instance: Instance, overrides: Iterable[PriceOverride]) -> Money | None:
    """The first override whose cloud and one of whose globs match; none of Spot.

    A policy's price is what was negotiated for on-demand use, so Spot is never priced by it.
    """
    if instance.billing is Billing.SPOT:
        return None
    return next(
        (
            override.hourly
            for override in overrides
            if override.cloud == instance.ref.cloud
            and any(fnmatchcase(instance.instance_type, pattern) for pattern in override.instance_types)
        ),
        None,
    )
