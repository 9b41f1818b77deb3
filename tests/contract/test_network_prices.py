"""What addresses and gateways cost, through each wire: asked for once, said with its reason where it is not known."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from decimal import Decimal

import pytest
from tests.contract.alibaba_network import AlibabaNetworkRig, alibaba_network
from tests.contract.network_fleet import IDLE_NAT, NOTEBOOK, SPARE, TRAINER
from tests.contract.network_rigs import NetworkRig
from tests.contract.network_worlds import NETWORKS, WIRED
from tests.contract.tencent_network import TencentNetworkRig, tencent_network
from tests.world_ports.translate import to_world

from cloudstand.wire.faults import Fault, FaultKind
from costguard.domain.network import NatGateway, NetworkInventory, PublicAddress, Unpriced
from costguard.providers.alibaba.iam.policy_documents import policy_document
from costguard.providers.kit.iam.permissions import Feature

QUOTES = ("bss:GetPayAsYouGoPrice", "bss:DescribePricingModule", "vpc:InquiryPriceAllocateAddresses")


@pytest.fixture(scope="module")
def alibaba_cloud() -> Iterator[AlibabaNetworkRig]:
    with alibaba_network() as made:
        yield made


@pytest.fixture(scope="module")
def tencent_cloud() -> Iterator[TencentNetworkRig]:
    with tencent_network() as made:
        yield made


@pytest.fixture
def alibaba(alibaba_cloud: AlibabaNetworkRig) -> AlibabaNetworkRig:
    alibaba_cloud.reset()
    return alibaba_cloud


@pytest.fixture
def tencent(tencent_cloud: TencentNetworkRig) -> TencentNetworkRig:
    tencent_cloud.reset()
    return tencent_cloud


def priced(rig: NetworkRig, found: NetworkInventory, name: str) -> tuple[str, str] | Unpriced | None:
    """An address's price and where it is from, or why there is none; of a gateway where no address has the name."""
    parts: list[PublicAddress | NatGateway] = [*found.addresses, *found.nat_gateways]
    kind = "nat_gateway" if name == IDLE_NAT else "address"
    (one,) = (each for each in parts if each.ref == rig.ref(kind, name))
    if one.rate is None:
        return one.unpriced
    assert one.unpriced is None
    amount = one.rate.money.amount.quantize(Decimal("0.0001")).normalize()
    return f"{amount:f} {one.rate.money.currency}", one.rate.source


def quotes(rig: NetworkRig) -> list[str]:
    return [each for each in rig.requests() if each in QUOTES]


def crowded(rig: NetworkRig, count: int) -> list[str]:
    """Many more addresses that are bound to nothing; their ids."""
    there = rig.truth()
    model = next(each for each in there.addresses if each.ref == rig.ref("address", SPARE))
    more = [replace(model, ref=model.ref.sibling("address", f"eip-crowd{number:04}")) for number in range(count)]
    rig.world.networks.place(to_world(replace(there, addresses=(*there.addresses, *more))))
    return [each.ref.native_id for each in more]


# Alibaba Cloud


def test_alibaba_quotes_what_keeping_an_address_and_a_gateway_costs(alibaba: AlibabaNetworkRig) -> None:
    found = alibaba.read()
    assert priced(alibaba, found, SPARE) == ("0.02 CNY", "alibaba-bss")
    assert priced(alibaba, found, NOTEBOOK) is Unpriced.FREE_WHILE_BOUND  # to an instance, and paid by traffic
    assert priced(alibaba, found, IDLE_NAT) == ("0.23 CNY", "alibaba-bss")


def test_alibaba_is_asked_once_for_each_kind_and_bandwidth(alibaba: AlibabaNetworkRig) -> None:
    ids = crowded(alibaba, 240)
    alibaba.emulator.networks.by_bandwidth |= dict.fromkeys(ids[:100], 10) | dict.fromkeys(ids[100:120], 2)
    alibaba.emulator.networks.by_bandwidth[alibaba.ref("address", NOTEBOOK).native_id] = 10
    source = alibaba.source()
    found = source.read(alibaba.shard)
    assert sorted(quotes(alibaba)) == ["bss:DescribePricingModule", *["bss:GetPayAsYouGoPrice"] * 4]
    source.read(alibaba.shard)
    assert len(quotes(alibaba)) == 5
    rates = {each.ref.native_id: each.rate for each in found.addresses}
    mbps = (5 * Decimal("0.96") + 5 * Decimal("3.36")) / 24
    assert {rate.money.amount for each in ids[:100] if (rate := rates[each])} == {Decimal("0.02") + mbps}
    assert priced(alibaba, found, NOTEBOOK) == ("0.9 CNY", "alibaba-bss")  # bandwidth goes on, the rent does not


def test_who_may_not_ask_alibaba_for_prices_still_sees_everything_else(alibaba: AlibabaNetworkRig) -> None:
    statements = policy_document({Feature.NETWORK})["Statement"]
    granted = {action for each in statements for action in each["Action"] if not action.startswith("bss")}
    alibaba.emulator.allowed[alibaba.shard.account] = granted
    try:
        found = alibaba.read()
    finally:
        del alibaba.emulator.allowed[alibaba.shard.account]
    assert found.gaps == ()
    assert priced(alibaba, found, SPARE) is Unpriced.NOT_READ
    assert priced(alibaba, found, IDLE_NAT) is Unpriced.NOT_READ
    assert len(quotes(alibaba)) == 2, "and does not ask again for each"


@pytest.mark.parametrize(
    "named",
    [
        {"bss:DescribePrice", "bss:DescribeProduct"},
        {"bss:DescribePrice", "bss:DescribePricingModule"},
        {"bssapi:GetPayAsYouGoPrice", "bssapi:DescribePricingModule"},
    ],
)
def test_alibaba_answers_prices_by_any_of_their_documented_names(alibaba: AlibabaNetworkRig, named: set[str]) -> None:
    statements = policy_document({Feature.NETWORK})["Statement"]
    granted = {action for each in statements for action in each["Action"] if not action.startswith("bss")}
    alibaba.emulator.allowed[alibaba.shard.account] = granted | named
    try:
        found = alibaba.read()
    finally:
        del alibaba.emulator.allowed[alibaba.shard.account]
    assert priced(alibaba, found, SPARE) == ("0.02 CNY", "alibaba-bss")
    assert priced(alibaba, found, IDLE_NAT) == ("0.23 CNY", "alibaba-bss")


# Tencent Cloud


def test_tencent_bills_nothing_for_what_is_bound_and_has_no_list_of_its_china_site(tencent: TencentNetworkRig) -> None:
    found = tencent.read()
    assert priced(tencent, found, NOTEBOOK) is Unpriced.FREE_WHILE_BOUND
    assert priced(tencent, found, SPARE) is Unpriced.UNLISTED
    assert priced(tencent, found, IDLE_NAT) is Unpriced.UNLISTED
    assert quotes(tencent) == []


def test_tencent_is_asked_once_for_each_bandwidth(tencent: TencentNetworkRig) -> None:
    ids = crowded(tencent, 120)
    billed = tencent.emulator.network_desk.billed
    billed |= dict.fromkeys(ids[:100], ("BANDWIDTH_POSTPAID_BY_HOUR", 10))
    billed[tencent.ref("address", NOTEBOOK).native_id] = ("BANDWIDTH_POSTPAID_BY_HOUR", 2)
    found = tencent.read()
    assert quotes(tencent) == ["vpc:InquiryPriceAllocateAddresses"] * 2
    assert priced(tencent, found, NOTEBOOK) == ("0.126 CNY", "tencent-vpc")
    rates = {each.rate.money.amount for each in found.addresses if each.ref.native_id in ids[:100] and each.rate}
    assert rates == {Decimal("1.565")}


def test_a_price_that_tencent_does_not_answer_is_unknown_and_no_gap(tencent: TencentNetworkRig) -> None:
    desk = tencent.emulator.network_desk
    desk.billed[tencent.ref("address", SPARE).native_id] = ("BANDWIDTH_POSTPAID_BY_HOUR", 2)
    tencent.emulator.faults.add(
        Fault(FaultKind.REFUSED, "InquiryPriceAllocateAddresses", 1_000, code="UnauthorizedOperation")
    )
    found = tencent.read()
    assert priced(tencent, found, SPARE) is Unpriced.NOT_READ
    assert found.gaps == ()


# every cloud


@pytest.mark.parametrize("cloud", WIRED)
def test_a_card_that_nothing_has_is_told_so_and_every_address_has_a_price_or_why_not(cloud: str) -> None:
    with NETWORKS[cloud]() as rig:
        rig.reset()
        there = rig.truth()
        bare = next(card for card in there.interfaces if card.ref == rig.ref("interface", TRAINER))
        bare = replace(bare, ref=bare.ref.sibling("interface", f"{bare.ref.native_id}0"), instance=None)
        ours = replace(bare, private_ips=("10.20.2.77",), unattached=True, primary=False)
        services = replace(ours, ref=ours.ref.sibling("interface", f"{ours.ref.native_id}1"), unattached=False)
        services = replace(services, private_ips=("10.20.2.78",))
        rig.world.networks.place(to_world(replace(there, interfaces=(*there.interfaces, ours, services))))
        found = rig.read()
    told = {card.ref: card.unattached for card in found.interfaces}
    assert (told[ours.ref], told[services.ref], told[rig.ref("interface", TRAINER)]) == (True, False, False)
    parts: list[PublicAddress | NatGateway] = [*found.addresses, *found.nat_gateways]
    for each in parts:
        assert (each.rate is None) != (each.unpriced is None), each
