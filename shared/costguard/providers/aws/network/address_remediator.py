"""Public addresses of AWS: released, taken off, and bound again where they were."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from costguard.domain.actions import Receipt
from costguard.domain.errors import InvalidInputError
from costguard.domain.network import AddressState, PublicAddress
from costguard.domain.refs import ResourceRef
from costguard.domain.remediations import Remediation
from costguard.providers.aws.core.session import AwsSession
from costguard.providers.aws.network.answers import Place, to_address
from costguard.providers.kit.core.fields import Fields, as_documented, flag, named, part, parts, text
from costguard.providers.kit.network.remediation import gone, refusal, require, require_unmoved

_MACHINES_CARDS = ("interface", "efa", "efa-only", "trunk", "branch", "")
_PAGE = 1000


class AddressRemediator:
    """Changes what an address is bound to, each read anew just before; over a session for mending."""

    def __init__(self, session: AwsSession) -> None:
        self._session = session

    def release(self, mend: Remediation, before: Mapping[str, str]) -> Receipt:
        """Give an address up for good.

        In a default VPC AWS releases what is in use and takes it off first: so nothing is released before two lists,
        of addresses and of interfaces, agree that nothing uses it.

        API: EC2 DescribeAddresses, DescribeNetworkInterfaces, ReleaseAddress.
        """
        said, address = self._address(mend, before)
        require(mend, address.state is AddressState.UNATTACHED, f"it is bound to {address.bound_to}")
        using = self._cards(mend, "addresses.association.public-ip", address.ip)
        require(mend, not using, f"an interface uses it: {', '.join(using)}")
        border = text(said, "NetworkBorderGroup")  # elsewhere than the region in local zones, and then not found
        asked = {"NetworkBorderGroup": border} if border else {}
        return self._change(mend, "ReleaseAddress", AllocationId=mend.subject.native_id, **asked)

    def detach(self, mend: Remediation, before: Mapping[str, str]) -> Receipt:
        """Take an address off what it is bound to. A machine that had a plain public address before may get a new one.

        API: EC2 DescribeAddresses, DescribeNetworkInterfaces, DisassociateAddress.
        """
        said, address = self._address(mend, before)
        bound_to, private_ip = mend.parameters.get("bound_to", ""), mend.parameters.get("private_ip", "")
        require(mend, str(address.bound_to) == bound_to, f"it is bound to {address.bound_to}")
        told = text(said, "PrivateIpAddress")
        require(mend, private_ip in ("", told), f"it leads to {told}, not {private_ip}")
        cards = self._cards(mend, "network-interface-id", text(said, "NetworkInterfaceId"))
        kept = [native_id for native_id, card in cards.items() if _is_kept_by_aws(card)]
        require(
            mend, bool(cards) and not kept, f"AWS keeps the interface it leads to: {', '.join(kept) or 'not listed'}"
        )
        return self._change(mend, "DisassociateAddress", AssociationId=text(said, "AssociationId"))

    def attach(self, mend: Remediation, before: Mapping[str, str]) -> Receipt:
        """Bind an address to the private one it was taken off; never in the place of another public address.

        API: EC2 DescribeAddresses, DescribeNetworkInterfaces, AssociateAddress without AllowReassociation.
        """
        _, address = self._address(mend, before)
        require(mend, address.state is AddressState.UNATTACHED, f"it is bound to {address.bound_to}")
        bound_to, private_ip = mend.parameters.get("bound_to", ""), mend.parameters.get("private_ip", "")
        where = _parsed(mend, bound_to)
        by = {"instance": "attachment.instance-id", "interface": "network-interface-id"}
        cards = self._cards(mend, by[where.kind], where.native_id)
        found = {
            native_id: text(part(each, "Association"), "PublicIp")
            for native_id, card in cards.items()
            for each in parts(card, "PrivateIpAddresses")
            if text(each, "PrivateIpAddress") == private_ip
        }
        require(mend, len(found) == 1, f"{bound_to} has no address {private_ip}")
        ((card_id, taken),) = found.items()
        require(mend, not taken, f"{private_ip} has a public address already: {taken}")
        return self._change(
            mend,
            "AssociateAddress",
            AllocationId=mend.subject.native_id,
            NetworkInterfaceId=card_id,
            PrivateIpAddress=private_ip,
            AllowReassociation=False,
        )

    def _address(self, mend: Remediation, before: Mapping[str, str]) -> tuple[Fields, PublicAddress]:
        """The address as it is now, and as it was when this was decided on."""
        subject, api = mend.subject, "ec2:DescribeAddresses"
        answer = self._session.call(subject.shard, "ec2", "DescribeAddresses", AllocationIds=[subject.native_id])
        with as_documented(api):
            listed = [each for each in parts(answer, "Addresses") if text(each, "AllocationId") == subject.native_id]
            if not listed:
                raise gone(mend, "the address", api, "InvalidAllocationID.NotFound")
            (said,) = listed
            address = to_address(Place(subject.shard), said, {})
        require(mend, mend.parameters.get("ip", "") == address.ip, f"the address is {address.ip}")
        require(mend, not address.is_service_managed, "a service of AWS keeps it")
        bound_to = "" if address.bound_to is None else str(address.bound_to)
        now = {"ip": address.ip, "state": address.state.value, "bound_to": bound_to}
        require_unmoved(mend, now, before)
        return said, address

    def _cards(self, mend: Remediation, by: str, value: str) -> dict[str, Fields]:
        """The interfaces that one filter finds, by id; an empty value finds none."""
        if not value:
            return {}
        pages = self._session.pages(
            mend.subject.shard,
            "ec2",
            "DescribeNetworkInterfaces",
            "NetworkInterfaces",
            Filters=[{"Name": by, "Values": [value]}],
            MaxResults=_PAGE,
        )
        with as_documented("ec2:DescribeNetworkInterfaces"):
            return {named(card, "NetworkInterfaceId"): card for page in pages for card in parts({"page": page}, "page")}

    def _change(self, mend: Remediation, operation: str, **parameters: Any) -> Receipt:
        """These changes answer with nothing of note."""
        return self._session.change(mend.subject.shard, "ec2", operation, **parameters)


def _is_kept_by_aws(card: Fields) -> bool:
    """Of a NAT gateway, balancer or endpoint: its address is changed where that is."""
    return flag(card, "RequesterManaged") or text(card, "InterfaceType") not in _MACHINES_CARDS


def _parsed(mend: Remediation, bound_to: str) -> ResourceRef:
    try:
        where = ResourceRef.parse(bound_to)
    except InvalidInputError as err:
        raise refusal(mend, str(err)) from err
    fits = where.kind in ("instance", "interface") and where.shard == mend.subject.shard
    require(mend, fits, f"{bound_to} is no instance or interface of this account and region")
    return where
