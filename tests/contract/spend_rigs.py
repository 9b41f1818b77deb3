"""What the contract suite of `SpendSource` needs of a provider: a scene of charges, a clock, and a source over them.

A further provider writes a `WireRig` in a module of its own and adds it to `WIRES` in `spend_worlds.py`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta, timezone
from decimal import Decimal

from tests.world_ports.spend import WorldSpend

from cloudstand.clock import MovedClock
from cloudstand.fleets import PRODUCT, RESEARCH, alibaba_machine, aws_machine, tencent_machine
from cloudstand.wire.door import WorldDoor
from cloudstand.world import workload as does
from cloudstand.world.billing import day_offset
from cloudstand.world.cloud import World
from cloudstand.world.fleet import MachineSpec
from cloudstand.world.kinds import Billing
from cloudstand.world.money import ChargeCategory, Money
from cloudstand.world.prices import currency_of
from cloudstand.world.records import Operation, OtherCharge
from costguard.domain.money import SpendScope, VendorBudget
from costguard.domain.refs import provider_of
from costguard.ports import SpendSource, Target

START = datetime(2026, 3, 10, 9, 0, tzinfo=timezone.utc)
"""When every scene begins; its machines run since the middle of February."""
MEMBERS_DISCOUNT = Decimal("0.25")
"""What a contract takes off the list price of the machines of the member account; the payer's have none."""
DAY, HOUR = timedelta(days=1), timedelta(hours=1)
_LAUNCHED = datetime(2026, 2, 14, 4, 30, tzinfo=timezone.utc)
_TERM_ENDS = datetime(2026, 4, 4, 3, 0, tzinfo=timezone.utc)  # so a term of 30 days was paid for on 5 March


@dataclass(frozen=True, slots=True)
class Places:
    """Two accounts, of which the first pays for both, and two regions."""

    payer: str
    member: str
    home: str
    away: str


PLACES: Mapping[str, Places] = {
    "aws": Places(RESEARCH, PRODUCT, "us-east-1", "eu-west-1"),
    "alibaba": Places("1234567890123456", "1876543210987654", "cn-hangzhou", "cn-beijing"),
    "tencent": Places("100012345678", "100087654321", "ap-guangzhou", "ap-shanghai"),
}


@dataclass(frozen=True, slots=True)
class Scene:
    """One cloud with a fleet that is charged for, and its time."""

    cloud: str
    world: World
    clock: MovedClock
    door: WorldDoor

    @property
    def places(self) -> Places:
        return PLACES[provider_of(self.cloud)]


def scene(cloud: str) -> Scene:
    """Machines of every kind of charge in two accounts and two regions, and what is no machine beside them."""
    world, clock = World(_fleet(cloud), START), MovedClock(START)
    for other in other_charges(cloud):
        world.charge(other)
    return Scene(cloud, world, clock, WorldDoor(world, clock))


def _fleet(cloud: str) -> tuple[MachineSpec, ...]:
    at = PLACES[provider_of(cloud)]
    research, product = {"team": "research", "project": "vision"}, {"team": "product"}
    return (
        _machine(cloud, "training", at.payer, at.home, tags=research),
        _discounted(_machine(cloud, "evaluation", at.member, at.away, tags={"team": "research"})),
        _discounted(_machine(cloud, "serving", at.member, at.home, tags=product)),
        _machine(cloud, "batch", at.payer, at.home, tags=product, billing=Billing.SPOT),
        _machine(cloud, "paid-ahead", at.payer, at.away, billing=Billing.PREPAID, prepaid_until=_TERM_ENDS),
    )


def _discounted(spec: MachineSpec) -> MachineSpec:
    return replace(spec, discount=MEMBERS_DISCOUNT)


def _machine(
    cloud: str,
    name: str,
    account: str,
    region: str,
    *,
    tags: Mapping[str, str] | None = None,
    billing: Billing = Billing.ON_DEMAND,
    prepaid_until: datetime | None = None,
) -> MachineSpec:
    workload, tags = does.busy(), {**(tags or {})}
    if provider_of(cloud) == "aws":
        return aws_machine(
            name,
            "g5.xlarge",
            workload,
            _LAUNCHED,
            account=account,
            region=region,
            tags=tags,
            billing=billing,
            prepaid_until=prepaid_until,
        )
    make: Callable[..., MachineSpec] = alibaba_machine if provider_of(cloud) == "alibaba" else tencent_machine
    return make(
        name,
        workload,
        _LAUNCHED,
        account=account,
        region=region,
        cloud=cloud,
        tags=tags,
        billing=billing,
        prepaid_until=prepaid_until,
    )


def tells_tax(cloud: str) -> bool:
    """Whether this cloud's bill has a tax of its own: prices of Tencent Cloud's China site contain it."""
    return cloud != "tencent"


def other_charges(cloud: str) -> Sequence[OtherCharge]:
    """A notebook of the vendor's platform for two days; a tax where it is told, a voucher, a refund, a support fee."""
    at = PLACES[provider_of(cloud)]
    notebook = {"team": "research"}
    return (
        *(
            _other(cloud, day, "ai_platform", ChargeCategory.USAGE, "61.20", at.member, at.home, notebook)
            for day in (6, 7)
        ),
        *((_other(cloud, 3, "tax", ChargeCategory.TAX, "18.07", at.payer),) if tells_tax(cloud) else ()),
        _other(cloud, 4, "credit", ChargeCategory.CREDIT, "-25.00", at.payer, at.home),
        _other(cloud, 7, "refund", ChargeCategory.ADJUSTMENT, "-7.31", at.member, at.home),
        _other(cloud, 2, "support", ChargeCategory.USAGE, "29.00", at.payer),
    )


def _other(
    cloud: str,
    day: int,
    service: str,
    category: ChargeCategory,
    amount: str,
    account: str,
    region: str = "",
    tags: Mapping[str, str] | None = None,
) -> OtherCharge:
    start = day_of(cloud, 2026, 3, day)
    money = Money(Decimal(amount), currency_of(cloud))
    native_id = f"{service}-{day}"
    return OtherCharge(cloud, account, region, service, category, start, start + DAY, money, native_id, tags or {})


def day_of(cloud: str, year: int, month: int, day: int) -> datetime:
    """The beginning of a day of the cloud's bill."""
    return datetime(year, month, day, tzinfo=timezone.utc) - day_offset(cloud)


class SpendRig(ABC):
    """One provider over a scene. Only the abstract part differs from vendor to vendor.

    `precision` is how far a line may be from the truth, where the vendor rounds. `most_requests` bounds what one scope
    costs, pages and what is asked once a read left out.
    """

    precision = Decimal("1e-20")  # exact but for the 28 digits that decimals are added with
    most_requests = 0

    def __init__(self, scene: Scene) -> None:
        self.scene = scene
        self.cloud = scene.cloud
        self.places = scene.places

    @property
    def world(self) -> World:
        """The truth, up to the present moment."""
        with self.scene.door.opened() as world:
            return world

    def now(self) -> datetime:
        return self.scene.clock.now()

    def advance(self, step: timedelta) -> None:
        self.scene.clock.advance(step)

    def deny(self) -> None:
        """From now on the program's own role may not read the bill."""
        self.world.deny(self.cloud, self.places.payer, Operation.BILL)

    def console_scope(self) -> SpendScope:
        """What a budget of this vendor's console can be limited to."""
        return SpendScope(clouds=(self.cloud,))

    @abstractmethod
    def source(self) -> SpendSource:
        """The adapter, with the payer's credentials."""

    @abstractmethod
    def target(self, *, organisation: bool = True) -> Target:
        """The payer's account, or all that it pays for."""

    @abstractmethod
    def set_up_budget(self, budget: VendorBudget) -> None:
        """Somebody makes this budget in the vendor's console."""


class WireRig(SpendRig):
    """A provider that speaks to its stand-in, which counts."""

    @abstractmethod
    def requests(self) -> Sequence[str]:
        """The operations that arrived so far, in order, without those that only ask who we are."""

    @abstractmethod
    def changes(self) -> Sequence[str]:
        """Those of them that change something."""

    @abstractmethod
    def throttle(self, times: int) -> None:
        """The next `times` requests for the bill are throttled in the vendor's way."""

    @abstractmethod
    def small_pages(self) -> None:
        """From now on the bill comes in more than one page."""


class WorldRig(SpendRig):
    """The bills of a world without a wire."""

    def __init__(self, scene: Scene) -> None:
        super().__init__(scene)
        self._source = WorldSpend(scene.world, scene.clock)

    def source(self) -> SpendSource:
        return self._source

    def target(self, *, organisation: bool = True) -> Target:
        return Target(self.cloud, organisation=organisation)

    def set_up_budget(self, budget: VendorBudget) -> None:
        self._source.vendor_budgets.append(budget)
