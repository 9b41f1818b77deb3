"""The security groups of a shard with their rules: which are in use, and what the templates in rules stand for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from costguard.domain.errors import NotFoundError, ProviderError
from costguard.domain.network import RuleOrder, SecurityGroup
from costguard.domain.refs import ResourceRef, Shard
from costguard.providers.kit.core.calls import Reads
from costguard.providers.kit.core.fields import Fields, as_documented, flag, named, part, text, whole
from costguard.providers.kit.network.reading import asked_of_each, named_by_rules, ref_of, with_references
from costguard.providers.tencent.core.products import tags_of
from costguard.providers.tencent.network.answers import texts
from costguard.providers.tencent.network.rules import (
    Ports,
    Templates,
    group_rules,
    networks_of,
    policy_lists,
    service_of,
    template_ids,
)

GROUPS, POLICIES = "vpc:DescribeSecurityGroups", "vpc:DescribeSecurityGroupPolicies"
USE = "vpc:DescribeSecurityGroupAssociationStatistics"

_IDS = 100  # of one request for the use of groups, as of every list of ids in this product


@dataclass(slots=True)
class Groups:
    """What was read. `failures` are those after which `found` lacks something; `untold` those of templates only."""

    found: tuple[SecurityGroup, ...] = ()
    failures: list[ProviderError] = field(default_factory=list)
    untold: list[ProviderError] = field(default_factory=list)


def read_groups(session: Reads, shard: Shard) -> Groups:
    """Every group with its rules. One whose rules could not be read is left out, and that is a failure.

    API: VPC DescribeSecurityGroups, 100 a page; DescribeSecurityGroupAssociationStatistics for 100 at once;
    DescribeSecurityGroupPolicies for each group, some side by side: only so can one know whether it has rules;
    parameter templates where a rule names one.

    Raises:
        ProviderError: not even the list could be read.
    """
    read = Groups()
    listed: dict[str, Fields] = {}
    for page in session.pages(shard, "vpc", "DescribeSecurityGroups", "SecurityGroupSet"):
        with as_documented(GROUPS):
            listed.update({named(item, "SecurityGroupId"): item for item in page})
    used = _in_use(session, shard, list(listed), read.failures)
    policies = _policies(session, shard, list(listed), read.failures)
    templates = read_templates(session, shard, policies.values(), read.untold)
    made: list[SecurityGroup] = []
    for native_id, policy_set in policies.items():
        with as_documented(GROUPS):
            group = _to_group(shard, listed[native_id], used.get(native_id))
        with as_documented(POLICIES):
            rules = tuple(group_rules(policy_set, templates))
            made.append(replace(group, rules=rules, version=named(policy_set, "Version")))
    read.found = tuple(with_references(made, named_by_rules(made)))
    return read


def read_policies(session: Reads, group: ResourceRef) -> Fields:
    """The rules of one group as they are now.

    Raises:
        ProviderError: they could not be read.
    """
    answer = session.call(group.shard, "vpc", "DescribeSecurityGroupPolicies", SecurityGroupId=group.native_id)
    with as_documented(POLICIES):
        found = part(answer, "SecurityGroupPolicySet")
        list(policy_lists(found))
        named(found, "Version")
    return found


def read_templates(
    session: Reads, shard: Shard, policies: Iterable[Fields], failures: list[ProviderError]
) -> Templates:
    """What the templates named in these rules stand for; what cannot be read is left out.

    API: VPC DescribeAddressTemplates, DescribeAddressTemplateGroups, DescribeServiceTemplates and
    DescribeServiceTemplateGroups, each only where a rule names one of its kind; a group names templates.
    """
    with as_documented(POLICIES):
        named_by = [template_ids(policy) for each in policies for _, policy in policy_lists(each)]
    addresses = {first for first, _ in named_by if first}
    services = {second for _, second in named_by if second}
    reading = _Templates(session, shard, failures)
    networks = reading.of(addresses, "Address", "AddressSet", "ipmg-")
    lines = reading.of(services, "Service", "ServiceSet", "ppmg-")
    return Templates(
        {each: found for each, said in networks.items() if (found := _networks(said, failures)) is not None},
        {each: kinds for each, said in lines.items() if (kinds := _services(said, failures)) is not None},
    )


class _Templates:
    def __init__(self, session: Reads, shard: Shard, failures: list[ProviderError]) -> None:
        self._session = session
        self._shard = shard
        self._failures = failures

    def of(self, wanted: set[str], what: str, lines: str, group_prefix: str) -> Mapping[str, Sequence[str]]:
        """The lines of each wanted template or group of templates, by its id."""
        if not wanted:
            return {}
        key = f"{what}Template"
        single = self._listed(f"Describe{key}s", f"{key}Set", f"{key}Id", lines)
        groups: Mapping[str, Sequence[str]] = {}
        if any(each.startswith(group_prefix) for each in wanted):
            groups = self._listed(f"Describe{key}Groups", f"{key}GroupSet", f"{key}GroupId", f"{key}IdSet")
        whole_groups = {
            group: [line for member in members for line in single[member]]
            for group, members in groups.items()
            if all(member in single for member in members)
        }
        return {each: found for each, found in {**single, **whole_groups}.items() if each in wanted}

    def _listed(self, action: str, set_key: str, id_key: str, lines: str) -> Mapping[str, Sequence[str]]:
        found: dict[str, Sequence[str]] = {}
        try:
            for page in self._session.pages(self._shard, "vpc", action, set_key):
                with as_documented(f"vpc:{action}"):
                    for item in page:
                        if lines not in item:
                            message = f"{lines} is missing"
                            raise ValueError(message)
                        found[named(item, id_key)] = texts(item, lines)
        except ProviderError as err:
            self._failures.append(err)
            return {}
        return found


def _in_use(session: Reads, shard: Shard, ids: Sequence[str], failures: list[ProviderError]) -> Mapping[str, bool]:
    """Whether anything is in a group: TotalCount leaves out the groups that name it."""
    used: dict[str, bool] = {}
    try:
        for start in range(0, len(ids), _IDS):
            asked = list(ids[start : start + _IDS])
            key = "SecurityGroupAssociationStatisticsSet"
            for page in session.pages(
                shard, "vpc", "DescribeSecurityGroupAssociationStatistics", key, SecurityGroupIds=asked
            ):
                with as_documented(USE):
                    used.update({named(item, "SecurityGroupId"): whole(item, "TotalCount") > 0 for item in page})
    except ProviderError as err:
        failures.append(err)
    return used


def _policies(session: Reads, shard: Shard, ids: Sequence[str], failures: list[ProviderError]) -> Mapping[str, Fields]:
    asked = asked_of_each(ids, lambda native_id: read_policies(session, ref_of(shard, "security_group", native_id)))
    # what is not found was deleted since it was listed
    failures += [err for err in asked.failures.values() if not isinstance(err, NotFoundError)]
    return asked.answers


def _to_group(shard: Shard, item: Fields, in_use: bool | None) -> SecurityGroup:  # noqa: FBT001 - told as it is
    return SecurityGroup(
        ref_of(shard, "security_group", named(item, "SecurityGroupId")),
        None,  # of a region, not of a VPC
        RuleOrder.FIRST_MATCH,
        (),
        name=text(item, "SecurityGroupName"),
        is_default=flag(item, "IsDefault"),
        in_use=in_use,
        tags=tags_of(item, "TagSet"),
    )


def _networks(lines: Sequence[str], failures: list[ProviderError]) -> tuple[str, ...] | None:
    try:
        with as_documented("vpc:DescribeAddressTemplates"):
            return tuple(dict.fromkeys(each for line in lines for each in networks_of(line)))
    except ProviderError as err:
        failures.append(err)
        return None


def _services(lines: Sequence[str], failures: list[ProviderError]) -> tuple[tuple[str, Ports], ...] | None:
    """One entry for each protocol, with all its ports."""
    found: dict[str, Ports] = {}
    try:
        with as_documented("vpc:DescribeServiceTemplates"):
            for line in lines:
                protocol, ports = service_of(line)
                found[protocol] = tuple(dict.fromkeys((*found.get(protocol, ()), *ports)))
    except ProviderError as err:
        failures.append(err)
        return None
    return tuple(found.items())
