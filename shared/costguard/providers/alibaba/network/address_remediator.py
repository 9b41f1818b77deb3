"""Elastic addresses: given up, taken off what they are bound to, and put back. Each is read anew right before."""

from __future__ import annotations

from collections.abc import Mapping

from costguard.domain.actions import Receipt
from costguard.domain.errors import InvalidInputError
from costguard.domain.network import AddressState, PublicAddress
from costguard.domain.refs import ResourceRef
from costguard.domain.remediations import Remediation
from costguard.providers.alibaba.core.fields import structures_in
from costguard.providers.alibaba.core.session import AlibabaSession
from costguard.providers.alibaba.network.answers import BOUND_KINDS, to_address
from costguard.providers.kit.core.fields import Fields, as_documented, named, text
from costguard.providers.kit.network.remediation import gone, refusal, require, require_unmoved

_READ = "vpc:DescribeEipAddresses"
_PLAIN_MODES = frozenset({"", "NAT"})
_TYPES = {kind: word for word, kind in BOUND_KINDS.items() if kind in {"instance", "interface"}}
"""What an address is taken off of; of a gateway, a balancer or a virtual address it is taken off there."""


class AddressRemediator:
    """One elastic address at a time. All three changes go on after the answer."""

    def __init__(self, session: AlibabaSession) -> None:
        self._session = session

    def release(self, mend: Remediation, before: Mapping[str, str]) -> Receipt:
        """Give the address up, for good.

        API: VPC ReleaseEipAddress, which takes those that are bound to nothing and paid by use.
        """
        address, told = self._read(mend, before)
        require(mend, address.state is AddressState.UNATTACHED, f"it is {address.state.value}")
        require(mend, address.bound_to is None, f"it is bound to {address.bound_to}")
        require(mend, not address.protected_by, f"protected by {', '.join(address.protected_by)}")
        require(mend, text(told, "ChargeType") == "PostPaid", "it is not paid by use")
        return self._send(mend, "ReleaseEipAddress")

    def detach(self, mend: Remediation, before: Mapping[str, str]) -> Receipt:
        """Take the address off the instance or interface it is bound to.

        API: VPC UnassociateEipAddress, never forced.
        """
        address, told = self._read(mend, before)
        require(mend, address.state is AddressState.IN_USE, f"it is {address.state.value}")
        bound = _bound_to(mend)
        require(mend, address.bound_to == bound, f"it is bound to {address.bound_to}")
        mode = text(told, "Mode")
        require(mend, mode in _PLAIN_MODES, f"it is bound in mode {mode}, in which it could not be put back")
        return self._send(mend, "UnassociateEipAddress", **_bound(mend, bound))

    def attach(self, mend: Remediation, before: Mapping[str, str]) -> Receipt:
        """Put the address back where it was; what has a public address by now is refused by the cloud.

        API: VPC AssociateEipAddress.
        """
        address, _ = self._read(mend, before)
        require(mend, address.state is AddressState.UNATTACHED, f"it is {address.state.value}")
        return self._send(mend, "AssociateEipAddress", **_bound(mend, _bound_to(mend)))

    def _read(self, mend: Remediation, before: Mapping[str, str]) -> tuple[PublicAddress, Fields]:
        """The address as it is now, where that is what the mend was decided on."""
        native_id = mend.subject.native_id
        answer = self._session.call(mend.subject.shard, "vpc", "DescribeEipAddresses", AllocationId=native_id)
        with as_documented(_READ):
            listed = structures_in(answer, "EipAddresses.EipAddress", _READ)
            found = [each for each in listed if named(each, "AllocationId") == native_id]
            if not found:
                raise gone(mend, native_id, _READ)
            address = to_address(mend.subject.shard, found[0])
        bound_to = "" if address.bound_to is None else str(address.bound_to)
        now = {"ip": address.ip, "state": address.state.value, "bound_to": bound_to}
        require_unmoved(mend, now, before)
        require(mend, address.ip == mend.parameters.get("ip"), f"its address is {address.ip}")
        require(mend, not address.is_service_managed, "a service of the cloud keeps it")
        return address, found[0]

    def _send(self, mend: Remediation, operation: str, **parameters: str) -> Receipt:
        return self._session.change(
            mend.subject.shard, "vpc", operation, AllocationId=mend.subject.native_id, **parameters
        )


def _bound_to(mend: Remediation) -> ResourceRef:
    """What the mend says that the address is, or was, bound to."""
    try:
        bound = ResourceRef.parse(mend.parameters.get("bound_to", ""))
    except InvalidInputError as err:
        raise refusal(mend, "it does not say what the address is bound to") from err
    require(mend, bound.kind in _TYPES, f"what is bound to {bound.kind} is taken off there")
    require(mend, bound.shard == mend.subject.shard, "it is bound in another account or region")
    return bound


def _bound(mend: Remediation, bound: ResourceRef) -> dict[str, str]:
    """An instance's address leads to its primary interface; of another interface, to one of its addresses."""
    told = {"InstanceId": bound.native_id, "InstanceType": _TYPES[bound.kind]}
    if bound.kind == "instance":
        return told
    private = mend.parameters.get("private_ip", "")
    require(mend, bool(private), "it does not say which private address")
    return {**told, "PrivateIpAddress": private}
