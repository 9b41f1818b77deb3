"""`SpendSource` over a world, without any wire: what scenario tests and simulations read bills through."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timezone

from cloudstand.clock import Clock
from cloudstand.world.billing import DAY, Charge, bill, billed_until, day_offset, final_until, zone_of
from cloudstand.world.cloud import World
from cloudstand.world.records import Operation, WorldRefusalError
from costguard.domain.errors import AccessDeniedError
from costguard.domain.money import (
    ChargeCategory,
    Money,
    PricingCategory,
    SpendLine,
    SpendReport,
    SpendScope,
    VendorBudget,
)
from costguard.ports import Target

SOURCE = "world-bill"
_SOME_MIDNIGHT = datetime(2024, 1, 1, tzinfo=timezone.utc)
_ACCELERATED = frozenset({"compute", "ai_platform"})


class WorldSpend:
    """The bills of a world: as late as each cloud's, in days, one line a thing."""

    def __init__(self, world: World, clock: Clock) -> None:
        self._world = world
        self._clock = clock
        self.vendor_budgets: list[VendorBudget] = []

    def read(
        self, target: Target, scopes: Sequence[SpendScope], since: datetime, until: datetime
    ) -> Mapping[SpendScope, SpendReport]:
        """The charges of each scope; a day that is not billed in full yet is there in part.

        The day of `since` is there in whole, as the vendors' bills have it: in China it began eight hours before UTC's.

        Raises:
            AccessDeniedError: the role may not read bills.
        """
        now = self._clock.now()
        self._world.tick(now)
        payer = target.account or self._first_account(target.cloud)
        try:
            self._world.require(target.cloud, payer, Operation.BILL)
        except WorldRefusalError as err:
            raise AccessDeniedError(str(err), operation="world:bill", code=err.refusal.value) from err
        lines = [
            _line(target.cloud, payer, charge)
            for charge in bill(self._world, target.cloud, _begin_of_day(target.cloud, since), until)
            if target.organisation or charge.account == payer
        ]
        complete = billed_until(target.cloud, now)
        found = {}
        for scope in scopes:
            inside = tuple(line for line in lines if scope.holds_line(line))
            nothing = not scope.touches(target.cloud) or () in (scope.accounts, scope.regions)
            found[scope] = SpendReport(
                inside,
                until if nothing else complete,
                now,
                SOURCE,
                zone=zone_of(target.cloud),
                final_until=final_until(target.cloud, now),
            )
        return found

    def budgets(self, target: Target) -> Sequence[VendorBudget]:
        """What was put into `vendor_budgets` for this cloud."""
        return [budget for budget in self.vendor_budgets if budget.cloud == target.cloud]

    def _first_account(self, cloud: str) -> str:
        return next((spec.account for spec in self._world.fleet if spec.cloud == cloud), "")


def _begin_of_day(cloud: str, moment: datetime) -> datetime:
    return moment - (moment - _SOME_MIDNIGHT + day_offset(cloud)) % DAY


def _line(cloud: str, payer: str, charge: Charge) -> SpendLine:
    return SpendLine(
        cloud=cloud,
        billing_account_id=payer,
        sub_account_id=charge.account,
        region_id=charge.region,
        service_name=charge.service,
        charge_category=ChargeCategory(charge.category.value),
        charge_period_start=charge.start,
        charge_period_end=charge.end,
        billed_cost=Money(charge.billed.amount, charge.billed.currency),
        effective_cost=Money(charge.effective.amount, charge.effective.currency),
        pricing_category=PricingCategory(charge.pricing.value),
        instance_type=charge.instance_type,
        resource_id=charge.native_id,
        accelerated=charge.service in _ACCELERATED,
        tags=charge.tags or {},
        list_cost=_list_cost(charge),
    )


def _list_cost(charge: Charge) -> Money | None:
    """Told of what is used at a price by the hour, as every cloud's bill does."""
    if charge.category.value != "usage" or charge.pricing.value != "standard" or charge.machine is None:
        return None
    return Money(charge.list_cost.amount, charge.billed.currency)
