"""The networks of AWS: VPCs with everything that stands between the internet and an interface.

Permissions: those of `Feature.NETWORK` in permissions.py.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from costguard.domain.errors import DeniedByOrganisationError, ProviderError
from costguard.domain.network import NetworkInventory
from costguard.domain.refs import Shard
from costguard.providers.aws.core.session import AwsSession, closed
from costguard.providers.aws.network.parts import LISTINGS, Answers, Listing, inventory_of
from costguard.providers.aws.network.prices import AwsNetworkPrices
from costguard.providers.aws.network.rules import network
from costguard.providers.kit.core.fields import as_documented, named, parts, text

_IN_FLIGHT = 6  # of a client's 16 connections; scans of several regions share the process
_LIST_PAGE = 100


class AwsNetwork:
    """`NetworkSource` for one partition of AWS."""

    def __init__(self, session: AwsSession) -> None:
        self._session = session
        self._prices = AwsNetworkPrices(session)

    def read(self, shard: Shard) -> NetworkInventory:
        """Everything of the shard, all pages; a part that could not be read is a gap.

        A managed prefix list that could not be read is a gap of `prefix_lists`: its rules are `unresolved`, and routes
        by it have its id for a destination.

        API: EC2 DescribeSecurityGroupRules (ids of rules are told nowhere else), DescribeSecurityGroups,
        DescribeNetworkInterfaces, DescribeVpcs, DescribeSubnets, DescribeNetworkAcls, DescribeNatGateways,
        DescribeFlowLogs and DescribeVpcPeeringConnections, 1,000 a page; DescribeRouteTables, 100; DescribeAddresses,
        all at once; GetManagedPrefixListEntries for each list that a rule or route names, 100 networks a page.
        Price list GetProducts, at most two questions a region.

        Raises:
            ClosedRegionError: the organisation denies all of it.
            ProviderError: not even a part could be read.
        """
        answers = Answers(shard)
        with ThreadPoolExecutor(_IN_FLIGHT, thread_name_prefix="network") as pool:
            ended = pool.map(lambda listing: self._list(answers, listing), LISTINGS)
            for listing, failed in zip(LISTINGS, ended, strict=True):
                if failed is not None:
                    answers.failed[listing] = failed
            if len(answers.failed) == len(LISTINGS) and not any(answers.items.values()):
                first = answers.failed[LISTINGS[0]]
                if all(isinstance(failed, DeniedByOrganisationError) for failed in answers.failed.values()):
                    raise closed(shard, first) from first
                raise first
            ids = sorted(answers.lists_named())
            answers.lists = dict(zip(ids, pool.map(lambda one: self._prefix_list(answers, one), ids), strict=True))
        addresses, gateways = answers.priced()
        answers.rates = self._prices.rates(shard, addresses=addresses, gateways=gateways)
        return inventory_of(answers)

    def _list(self, answers: Answers, listing: Listing) -> ProviderError | None:
        """Take in what there is; the error it ended in, if it did."""
        paged = {"MaxResults": listing.page} if listing.page else {}
        found = answers.items[listing]
        try:
            for page in self._session.pages(answers.shard, "ec2", listing.operation, listing.result_key, **paged):
                with as_documented(listing.api):
                    for item in parts({"page": page}, "page"):
                        # a page that shifts while it is read repeats some
                        found.setdefault(text(item, listing.id_key) or named(item, listing.or_key), item)
        except ProviderError as err:
            return err
        return None

    def _prefix_list(self, answers: Answers, native_id: str) -> tuple[str, ...] | None:
        """The networks of one list; None where they could not be read."""
        api, found = "ec2:GetManagedPrefixListEntries", []
        asked = {"PrefixListId": native_id, "MaxResults": _LIST_PAGE}
        try:
            for page in self._session.pages(answers.shard, "ec2", "GetManagedPrefixListEntries", "Entries", **asked):
                with as_documented(api):
                    found += [network(named(entry, "Cidr")) for entry in parts({"page": page}, "page")]
        except ProviderError as err:
            answers.unread[native_id] = err
            return None
        return tuple(found)
