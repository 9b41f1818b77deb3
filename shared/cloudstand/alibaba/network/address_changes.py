"""What can be done to an elastic address: released, taken off, bound. All of it goes on after the answer."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from cloudstand.alibaba.core.errors import BAD_REQUEST, FORBIDDEN, NOT_FOUND, ApiError, invalid, missing, not_modelled
from cloudstand.alibaba.core.site import ApiCall
from cloudstand.alibaba.network.addresses import BOUND_TYPES
from cloudstand.alibaba.network.desk import Settling
from cloudstand.alibaba.network.pages import networks_of
from cloudstand.world.cloud import World
from cloudstand.world.network.parts import AddressState, NetworkInterface, PublicAddress

_BY = "api"
_CARDS = ("EcsInstance", "NetworkInterface")


def release_eip_address(call: ApiCall, world: World) -> Mapping[str, Any]:
    """ReleaseEipAddress: one that is bound to nothing and paid by use, for good.

    Raises:
        ApiError: there is none, or it may not be released.
    """
    address = _named(call, world)
    if address.is_prepaid:
        message = "The specified EIP is a subscription instance and cannot be released."
        raise ApiError("Forbidden.ChargeTypeIsPrepaid", message, FORBIDDEN)
    if "deletion_protection" in address.protected_by:
        message = "The specified operation is not allowed as deletion protection is enabled."
        raise ApiError("InvalidOperation.DeletionProtection", message)
    if "segment" in address.protected_by:
        raise ApiError("Forbidden.ReleaseSegmentEip", "An EIP of a segment cannot be released alone.", FORBIDDEN)
    _require_state(address, AddressState.UNATTACHED)
    world.networks.release(address.ref, world.now, _BY)
    _settle(call, world, address, "Releasing")
    return {}


def unassociate_eip_address(call: ApiCall, world: World) -> Mapping[str, Any]:
    """UnassociateEipAddress; the same ClientToken does nothing again.

    Raises:
        ApiError: there is none, or it is not bound to that.
    """

    def done() -> Mapping[str, Any]:
        address = _named(call, world)
        _require_state(address, AddressState.IN_USE)
        bound, asked = address.bound_to, call.asked
        kind = asked.text("InstanceType", "EcsInstance")
        if bound is None or (asked.given("InstanceId") and asked.text("InstanceId") != bound.native_id):
            raise invalid("InstanceId", "The EIP is not associated with it.")
        if kind != BOUND_TYPES.get(bound.kind):
            raise invalid("InstanceType", "The EIP is associated with something else.")
        if kind not in _CARDS:
            raise not_modelled("taking an address off", kind)
        world.networks.detach(address.ref, world.now, _BY)
        _settle(call, world, address, "Unassociating")
        return {}

    return call.once(done)


def associate_eip_address(call: ApiCall, world: World) -> Mapping[str, Any]:
    """AssociateEipAddress; the same ClientToken does nothing again.

    Raises:
        ApiError: there is none, it is bound already, or what it is to be bound to is not there, or has one.
    """

    def done() -> Mapping[str, Any]:
        address = _named(call, world)
        _require_state(address, AddressState.UNATTACHED)
        if call.asked.text("Mode", "NAT") != "NAT":
            raise not_modelled("the mode", call.asked.text("Mode"))
        card = _card(call, world)
        private = call.asked.text("PrivateIpAddress") or card.private_ips[0]
        if private not in card.private_ips:
            raise invalid("PrivateIpAddress", "The interface does not have it.")
        if any(pair[0] == private for pair in card.public_ips):
            message = "The specified instance is already associated with a public address."
            raise ApiError("InvalidAssociation.Duplicated", message)
        world.networks.attach(address.ref, card.ref, private, world.now, _BY)
        _settle(call, world, address, "Associating")
        return {}

    return call.once(done)


def _card(call: ApiCall, world: World) -> NetworkInterface:
    asked = call.asked
    native_id, kind = asked.text("InstanceId"), asked.text("InstanceType", "EcsInstance")
    fits: Mapping[str, Callable[[NetworkInterface], bool]] = {
        "EcsInstance": lambda card: (
            card.instance is not None and card.instance.native_id == native_id and card.primary is not False
        ),
        "NetworkInterface": lambda card: card.ref.native_id == native_id and card.primary is not True,
    }
    if kind not in fits:
        raise not_modelled("binding an address to", kind)
    if kind == "NetworkInterface" and not asked.given("PrivateIpAddress"):
        raise missing("PrivateIpAddress")
    found = next((card for card in networks_of(call, world).interfaces if fits[kind](card)), None)
    if found is None:
        raise ApiError("InvalidInstanceId.NotFound", "The specified InstanceId does not exist.", NOT_FOUND)
    return found


def _named(call: ApiCall, world: World) -> PublicAddress:
    native_id = call.asked.text("AllocationId")
    settling = call.site.networks.settling.get(native_id)
    if settling is not None and settling.until > world.now:
        raise _wrong_state()
    for address in networks_of(call, world).addresses:
        if address.ref.native_id == native_id:
            return address
    raise ApiError("InvalidAllocationId.NotFound", "Specified allocation ID is not found.", NOT_FOUND)


def _require_state(address: PublicAddress, state: AddressState) -> None:
    if address.state is not state:
        raise _wrong_state()


def _wrong_state() -> ApiError:
    return ApiError("IncorrectEipStatus", "Current elastic IP status does not support this operation.", BAD_REQUEST)


def _settle(call: ApiCall, world: World, before: PublicAddress, state: str) -> None:
    desk = call.site.networks
    desk.settling[before.ref.native_id] = Settling(state, world.now + desk.settles_in, before)
