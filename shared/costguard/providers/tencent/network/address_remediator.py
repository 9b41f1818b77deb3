"""Elastic addresses released, taken off and put back, each read anew just before."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from costguard.domain.actions import Receipt
from costguard.domain.errors import InvalidInputError
from costguard.domain.network import AddressState
from costguard.domain.refs import ResourceRef
from costguard.domain.remediations import Remediation
from costguard.providers.kit.core.fields import Fields, as_documented, flag, named, parts, text
from costguard.providers.kit.network.remediation import gone, refusal, require, require_unmoved
from costguard.providers.tencent.compute.source import ADDRESSES
from costguard.providers.tencent.core.session import TencentSession
from costguard.providers.tencent.network.addresses import (
    PREPAID,
    bound_to,
    is_plain,
    is_released_with_unbinding,
    known_address,
    state_of,
)
from costguard.providers.tencent.network.answers import to_interface

_CARDS = "vpc:DescribeNetworkInterfaces"
_TAKEN_OFF = frozenset({"instance", "interface"})


class AddressRemediator:
    """Over a session for mending. Every change is a task of the cloud's: accepted is not done."""

    def __init__(self, session: TencentSession) -> None:
        self._session = session

    def release(self, mend: Remediation, before: Mapping[str, str]) -> Receipt:
        """Give an address up for good; only one that is bound to nothing, and not paid for in advance.

        API: VPC DescribeAddresses, ReleaseAddresses with one id.
        """
        known, _ = self._address(mend, before)
        with as_documented(ADDRESSES):
            state, prepaid = state_of(known), text(known, "InternetChargeType") == PREPAID
        require(mend, state is AddressState.UNATTACHED, f"it is {state.value}")
        require(mend, not prepaid, "it is paid for in advance")
        return self._send(mend, "ReleaseAddresses", AddressIds=[mend.subject.native_id])

    def detach(self, mend: Remediation, before: Mapping[str, str]) -> Receipt:
        """Take an address off its machine or interface; not one that would be released with that, which is final.

        API: VPC DescribeAddresses, DisassociateAddress.
        """
        known, target = self._address(mend, before)
        with as_documented(ADDRESSES):
            state, cascades = state_of(known), is_released_with_unbinding(known)
            private_ip = text(known, "PrivateAddressIp")
        require(mend, state is AddressState.IN_USE, f"it is {state.value}")
        require(mend, str(target) == mend.parameters.get("bound_to", ""), f"it is bound to {target}")
        kind = "nothing" if target is None else target.kind
        require(mend, kind in _TAKEN_OFF, f"what is bound to {kind} is taken off there")
        wanted = mend.parameters.get("private_ip", "")
        require(mend, not private_ip or private_ip == wanted, f"it leads to {private_ip}")
        require(mend, not cascades, "it would be released with that, and an address released is gone (CascadeRelease)")
        return self._send(mend, "DisassociateAddress", AddressId=mend.subject.native_id)

    def attach(self, mend: Remediation, before: Mapping[str, str]) -> Receipt:
        """Bind an address to the private one that it led to.

        By the machine where that is its first address, which is what the cloud makes of it, and else by the interface.

        API: VPC DescribeAddresses, DescribeNetworkInterfaces, AssociateAddress.
        """
        known, _ = self._address(mend, before)
        with as_documented(ADDRESSES):
            state = state_of(known)
        require(mend, state is AddressState.UNATTACHED, f"it is {state.value}")
        return self._send(mend, "AssociateAddress", AddressId=mend.subject.native_id, **self._place(mend))

    def _address(self, mend: Remediation, before: Mapping[str, str]) -> tuple[Fields, ResourceRef | None]:
        """The address as it is, and what it is bound to; refused where it is not the one that was decided on."""
        subject = mend.subject
        pages = self._session.pages(
            subject.shard, "vpc", "DescribeAddresses", "AddressSet", AddressIds=[subject.native_id]
        )
        listed = [item for page in pages for item in page]
        with as_documented(ADDRESSES):
            found = [known_address(item) for item in listed if named(item, "AddressId") == subject.native_id]
        if not found:
            raise gone(mend, subject.native_id, ADDRESSES)
        known = found[0]
        with as_documented(ADDRESSES):
            plain, state, ip = is_plain(known), state_of(known), named(known, "AddressIp")
            of_a_package = text(known, "AntiDDoSPackageId")
            target = None if state is AddressState.UNATTACHED else bound_to(subject.shard, known)
        require(mend, len(found) == 1, "the cloud lists it more than once")
        require(mend, not plain, "it belongs to its machine")
        require(mend, not of_a_package, "it belongs to a package against attacks")
        require(mend, ip == mend.parameters.get("ip", ""), f"the address is {ip}")
        now = {"ip": ip, "state": state.value, "bound_to": "" if target is None else str(target)}
        require_unmoved(mend, now, before)
        return known, target

    def _place(self, mend: Remediation) -> dict[str, str]:
        """What the address is to lead to, as AssociateAddress wants it; still there, and without a public address."""
        subject, said = mend.subject, mend.parameters
        private_ip, target = said.get("private_ip", ""), said.get("bound_to", "")
        for item in self._cards(mend, target):
            with as_documented(_CARDS):
                card = to_interface(subject.shard, item)
                firsts = [
                    named(each, "PrivateIpAddress")
                    for each in parts(item, "PrivateIpAddressSet")
                    if flag(each, "Primary")
                ]
            if private_ip not in card.private_ips or target not in {str(card.ref), str(card.instance)}:
                continue
            taken = any(private == private_ip for private, _ in card.public_ips)
            require(mend, not taken, f"{private_ip} has a public address already")
            if card.instance is not None and card.primary and firsts == [private_ip]:
                return {"InstanceId": card.instance.native_id}
            return {"NetworkInterfaceId": card.ref.native_id, "PrivateIpAddress": private_ip}
        raise gone(mend, f"{private_ip} of {target}", _CARDS)

    def _cards(self, mend: Remediation, target: str) -> Iterator[Fields]:
        """The interfaces of a machine, or the one that is named."""
        try:
            ref = ResourceRef.parse(target)
        except InvalidInputError as err:
            raise refusal(mend, "bound_to names nothing") from err
        require(mend, ref.kind in _TAKEN_OFF and ref.shard == mend.subject.shard, f"{target} takes no address here")
        wanted = "attachment.instance-id" if ref.kind == "instance" else "network-interface-id"
        filters = [{"Name": wanted, "Values": [ref.native_id]}]
        for page in self._session.pages(
            ref.shard, "vpc", "DescribeNetworkInterfaces", "NetworkInterfaceSet", Filters=filters
        ):
            yield from page

    def _send(self, mend: Remediation, action: str, **parameters: Any) -> Receipt:
        return self._session.change(mend.subject.shard, "vpc", action, **parameters)
