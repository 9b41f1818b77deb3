"""Prices that a policy names."""

from __future__ import annotations

from collections.abc import Iterable
from fnmatch import fnmatchcase

from costguard.domain.money import Money
from costguard.domain.resources import Billing, Instance
from costguard.policy.model.policy import PriceOverride


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
