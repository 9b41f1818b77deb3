"""From an element of DescribeAddresses to a `PublicAddress`, and what it leads to: pure, apart from any request."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from costguard.domain.network import AddressState, NetworkInterface, PublicAddress
from costguard.domain.refs import ResourceRef, Shard
from costguard.providers.kit.core.fields import Fields, flag, named, text
from costguard.providers.tencent.core.fields import moment, tags_of, told
from costguard.providers.tencent.network.answers import ref_of

PLAIN = "WanIP"
"""AddressType of a public address that belongs to its machine, and is lost with a stop: nobody keeps it."""

PREPAID = "BANDWIDTH_PREPAID_BY_MONTH"

_STATES = {
    # what counts is the status: an unbound address may still tell the machine that it was bound to
    "BIND": AddressState.IN_USE,
    "BIND_ENI": AddressState.IN_USE,
    "UNBIND": AddressState.UNATTACHED,
    "CREATING": AddressState.CHANGING,
    "BINDING": AddressState.CHANGING,
    "UNBINDING": AddressState.CHANGING,
    "OFFLINING": AddressState.CHANGING,
}
_KINDS = {"CVM": "instance", "NAT": "nat_gateway", "ENI": "interface", "CLB": "load_balancer", "HAVIP": "havip"}
_PREFIXES = {"ins-": "instance", "nat-": "nat_gateway", "eni-": "interface", "lb-": "load_balancer"}
_NULLABLE = (
    *("AddressName", "AddressIp", "InstanceId", "InstanceType", "NetworkInterfaceId", "PrivateAddressIp"),
    *("InternetChargeType", "DeadlineDate", "AntiDDoSPackageId", "CascadeRelease"),
)


@dataclass(frozen=True, slots=True)
class Binding:
    """Which private address a public one leads to. `interface` None: told by its instance only."""

    ip: str
    interface: ResourceRef | None
    instance: ResourceRef | None
    private_ip: str


def known_address(item: Fields) -> Fields:
    """An element of AddressSet, without what is null where a page says that it may be."""
    return told(item, *_NULLABLE)


def to_address(shard: Shard, item: Fields) -> PublicAddress:
    """One address that is kept, without what it costs.

    An address of a DDoS package goes with that. One in arrears is shut off, and no change of it succeeds.

    Raises:
        TypeError, ValueError: a field is not of its documented type: see `kit/core/fields.py`.
    """
    known = known_address(item)
    state = state_of(known)
    return PublicAddress(
        ref_of(shard, "address", named(known, "AddressId")),
        text(known, "AddressIp"),
        state,
        None if state is AddressState.UNATTACHED else bound_to(shard, known),
        name=text(known, "AddressName"),
        allocated_at=moment(known, "CreatedTime"),
        is_prepaid=text(known, "InternetChargeType") == PREPAID,
        is_service_managed=bool(text(known, "AntiDDoSPackageId")),
        tags=tags_of(known, "TagSet"),
    )


def state_of(known: Fields) -> AddressState:
    """Where the address is in its life; a new word is UNKNOWN, which nothing is done to.

    Raises:
        TypeError, ValueError: not as documented.
    """
    return _STATES.get(named(known, "AddressStatus"), AddressState.UNKNOWN)


def bound_to(shard: Shard, known: Fields) -> ResourceRef | None:
    """What the address leads to as far as the answer tells; an interface that no machine has stands for itself.

    Raises:
        TypeError: not as documented.
    """
    instance, interface = text(known, "InstanceId"), text(known, "NetworkInterfaceId")
    if not instance or text(known, "AddressStatus") == "BIND_ENI":
        return ref_of(shard, "interface", interface) if interface else None
    kind = next((each for start, each in _PREFIXES.items() if instance.startswith(start)), None)
    if kind is None:
        kind = _KINDS.get(text(known, "InstanceType"), "resource")
    return ref_of(shard, kind, instance)


def binding(shard: Shard, item: Fields) -> Binding | None:
    """What one address, plain or kept, leads to among interfaces; None where it leads to none.

    Raises:
        TypeError, ValueError: not as documented.
    """
    known = known_address(item)
    ip, interface = text(known, "AddressIp"), text(known, "NetworkInterfaceId")
    target = bound_to(shard, known)
    if not ip or target is None or state_of(known) is AddressState.UNATTACHED:
        return None
    if target.kind not in {"instance", "interface"}:
        return None
    return Binding(
        ip,
        ref_of(shard, "interface", interface) if interface else None,
        target if target.kind == "instance" else None,
        text(known, "PrivateAddressIp"),
    )


def is_plain(item: Fields) -> bool:
    """Whether it belongs to its machine.

    Raises:
        TypeError: not as documented.
    """
    return text(item, "AddressType") == PLAIN


def is_released_with_unbinding(known: Fields) -> bool:
    """Whether taking it off what it is bound to gives it up for good.

    Raises:
        TypeError: not as documented.
    """
    return flag(known, "CascadeRelease")


def with_public(interfaces: Sequence[NetworkInterface], bindings: Iterable[Binding]) -> Iterator[NetworkInterface]:
    """The interfaces, each with every public address that either list says leads to it."""
    by_card: dict[ResourceRef, list[tuple[str, str]]] = {}
    by_machine: dict[ResourceRef, NetworkInterface] = {}
    for card in interfaces:
        if card.instance is not None and (card.primary or card.instance not in by_machine):
            by_machine[card.instance] = card
    for each in bindings:
        card_ref = each.interface
        if card_ref is None and each.instance is not None and each.instance in by_machine:
            card_ref = by_machine[each.instance].ref
        if card_ref is not None:
            by_card.setdefault(card_ref, []).append((each.private_ip, each.ip))
    for card in interfaces:
        known = {public for _, public in card.public_ips}
        first = card.private_ips[0] if card.private_ips else ""
        more = [(private or first, public) for private, public in by_card.get(card.ref, ()) if public not in known]
        yield replace(card, public_ips=(*card.public_ips, *more)) if more else card
