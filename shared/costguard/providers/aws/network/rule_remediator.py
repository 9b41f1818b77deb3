"""Rules of security groups: one revoked, replaced by narrower ones, or put back, and the whole group never."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from costguard.domain.actions import Receipt
from costguard.domain.errors import InvalidInputError, OutcomeUnknownError, ProviderError
from costguard.domain.network import EVERY_PORT, Direction, NetworkRule
from costguard.domain.remediations import Remediation
from costguard.guards.network.rules import read_rule, rule_text
from costguard.providers.aws.core.session import AwsSession, request_id
from costguard.providers.aws.network.answers import is_kept_by_a_service
from costguard.providers.aws.network.rules import NO_NUMBER, group_rule
from costguard.providers.kit.core.fields import after_sending, as_documented, named, parts, tags_of
from costguard.providers.kit.network.reading import network
from costguard.providers.kit.network.remediation import (
    RuleRemediator,
    gone,
    imaged,
    listed,
    refusal,
    require,
    require_unmoved,
)

_GROUPS = "DescribeSecurityGroups"
_RULES, _AUTHORIZE, _REVOKE = (
    "DescribeSecurityGroupRules",
    "AuthorizeSecurityGroupIngress",
    "RevokeSecurityGroupIngress",
)
_NO_RULE = "InvalidSecurityGroupRuleId.NotFound"
_PAGE = 1000
_NUMBERS = {"all": "-1"}
_LOST = {
    "group_elsewhere": "it lets in a group of another VPC or account",
    "icmp_kind": "it is for one kind of ICMP",
}


class AwsRuleRemediator(RuleRemediator[AwsSession]):
    """For one partition of AWS: rules of ingress alone."""

    def revoke(self, mend: Remediation, before: Mapping[str, str]) -> Receipt:
        """Take one rule away.

        API: EC2 DescribeSecurityGroups, DescribeSecurityGroupRules, RevokeSecurityGroupIngress with one id in
        SecurityGroupRuleIds: exact for a rule that names a prefix list too.
        """
        wide = self._decided_on(mend, before, self._rules(mend))
        return Receipt(self._revoke(mend, [wide.rule_id]))

    def narrow(self, mend: Remediation, before: Mapping[str, str]) -> Receipt:
        """As of `RuleRemediator`.

        API: EC2 DescribeSecurityGroups, DescribeSecurityGroupRules, AuthorizeSecurityGroupIngress,
        RevokeSecurityGroupIngress.
        """
        rules = self._rules(mend)
        wide = self._decided_on(mend, before, rules)
        peers = _networks(mend)
        require(mend, bool(peers), "no networks to narrow it to")
        narrower = [_of_one(wide, peer) for peer in dict.fromkeys(peers)]
        there = any(_same(each, found) for each in narrower for found in rules)
        require(mend, not there, "one of the narrower rules is there already")
        made = self._authorize(mend, narrower)
        return Receipt(self._half_done(mend, made, [wide.rule_id]), ",".join(made))

    def restore(self, mend: Remediation) -> Receipt:
        """As of `RuleRemediator`, under a new id.

        API: EC2 DescribeSecurityGroups, DescribeSecurityGroupRules, AuthorizeSecurityGroupIngress (a prefix list by
        IpPermission, PrefixListIds), and RevokeSecurityGroupIngress of all that stand in its place.
        """
        rule, rules = _imaged(mend), self._rules(mend)
        by_id = {found.rule_id: found for found in rules}
        instead = listed(mend, "instead_of")
        for native_id in instead:
            if native_id not in by_id:
                raise gone(mend, f"rule {native_id}", f"ec2:{_RULES}", _NO_RULE)
            stands = by_id[native_id]
            narrowed = len(stands.peers) == 1 and _same(stands, _of_one(rule, stands.peers[0]))
            require(mend, narrowed, f"{native_id} is another rule by now")
        left = [found for native_id, found in by_id.items() if native_id not in instead]
        require(mend, not any(_same(each, rule) for each in left), "such a rule is there already")
        made = self._authorize(mend, [rule])
        return Receipt(self._half_done(mend, made, instead) if instead else "", ",".join(made))

    def _rules(self, mend: Remediation) -> Sequence[NetworkRule]:
        """Every rule of the group as it is now; none of one that a service keeps."""
        group = mend.subject
        answer = self._session.call(group.shard, "ec2", _GROUPS, GroupIds=[group.native_id])
        with as_documented(f"ec2:{_GROUPS}"):
            (said,) = parts(answer, "SecurityGroups")
            kept = is_kept_by_a_service(tags_of(said))
        require(mend, not kept, "a service or cluster keeps this group")
        of_group = [{"Name": "group-id", "Values": [group.native_id]}]
        found: list[NetworkRule] = []
        for page in self._session.pages(
            group.shard, "ec2", _RULES, "SecurityGroupRules", Filters=of_group, MaxResults=_PAGE
        ):
            with as_documented(f"ec2:{_RULES}"):
                for said in parts({"page": page}, "page"):
                    if named(said, "GroupId") != group.native_id:
                        raise ValueError("a rule of another group")
                    found.append(group_rule(said, {}))
        return found

    @staticmethod
    def _decided_on(mend: Remediation, before: Mapping[str, str], rules: Sequence[NetworkRule]) -> NetworkRule:
        """The rule that the mend is about, still as it was, and such that it could be put back."""
        said = mend.parameters
        ingress = said.get("direction", "") == Direction.INGRESS.value
        require(mend, ingress, "only rules that let somebody in are changed")
        found = next((each for each in rules if each.rule_id == said.get("rule_id")), None)
        if found is None:
            raise gone(mend, f"rule {said.get('rule_id', '')}", f"ec2:{_RULES}", _NO_RULE)
        require(mend, found.direction is Direction.INGRESS, "it lets out, not in")
        require_unmoved(mend, {"rule": rule_text(found)}, _as_read_here(mend, before))
        lost = _LOST.get(found.cannot_return, found.cannot_return)
        require(mend, not lost, f"it could not be put back as it is: {lost}")
        return found

    def _authorize(self, mend: Remediation, rules: Sequence[NetworkRule]) -> list[str]:
        """The ids of the rules made; all or none."""
        api = f"ec2:{_AUTHORIZE}"
        group = mend.subject
        permissions = [_permission(mend, rule) for rule in rules]
        answer = self._session.call(group.shard, "ec2", _AUTHORIZE, GroupId=group.native_id, IpPermissions=permissions)
        with after_sending(api):
            made = [named(each, "SecurityGroupRuleId") for each in parts(answer, "SecurityGroupRules")]
        if len(made) != len(rules):
            message = f"{api}: answered with {len(made)} rules for {len(rules)}; they may be there"
            raise OutcomeUnknownError(message, operation=api, code="UnexpectedAnswer")
        return made

    def _revoke(self, mend: Remediation, ids: Sequence[str]) -> str:
        """The id of the request."""
        api = f"ec2:{_REVOKE}"
        group = mend.subject
        answer = self._session.call(
            group.shard, "ec2", _REVOKE, GroupId=group.native_id, SecurityGroupRuleIds=list(ids)
        )
        with after_sending(api):
            if answer.get("Return") is False:
                raise ValueError("Return is false")
            return request_id(answer)

    def _half_done(self, mend: Remediation, made: Sequence[str], ids: Sequence[str]) -> str:
        """Revoke after others were made: whatever goes wrong, that much is done."""
        try:
            return self._revoke(mend, ids)
        except ProviderError as err:
            message = f"made {', '.join(made)} in {mend.subject}, and could not take away {', '.join(ids)}: {err}"
            raise OutcomeUnknownError(message, operation=err.operation, code=err.code) from err


def _same(rule: NetworkRule, other: NetworkRule) -> bool:
    """Whether two rules match and say the same, whatever they are called."""
    return _bare(rule) == _bare(other)


def _by_its_list(rule: NetworkRule) -> NetworkRule:
    """The rule as EC2 has it: where it names a prefix list it is about that, whatever networks are in it now."""
    return replace(rule, peers=(), unresolved=(rule.peer_list,)) if rule.peer_list else rule


def _bare(rule: NetworkRule) -> NetworkRule:
    return replace(_by_its_list(rule), rule_id="", priority=0, description="")


def _networks(mend: Remediation) -> list[str]:
    try:
        return [network(each) for each in listed(mend, "peers")]
    except ValueError as err:
        raise refusal(mend, str(err)) from err


def _imaged(mend: Remediation) -> NetworkRule:
    rule = imaged(mend)
    require(mend, rule.direction is Direction.INGRESS, "only rules that let somebody in are changed")
    return rule


def _of_one(rule: NetworkRule, peer: str) -> NetworkRule:
    """The same for one network."""
    return replace(rule, peers=(peer,), unresolved=(), peer_list="")


def _as_read_here(mend: Remediation, before: Mapping[str, str]) -> Mapping[str, str]:
    """The image of a rule as it would be without looking into the prefix list that it names: that is its own affair."""
    if "peer_list" not in before.get("rule", ""):
        return before
    try:
        return {**before, "rule": rule_text(_by_its_list(read_rule(before["rule"])))}
    except InvalidInputError as err:
        raise refusal(mend, str(err)) from err


def _permission(mend: Remediation, rule: NetworkRule) -> dict[str, Any]:
    """One rule as EC2 wants it; one peer each, as EC2 has them. One that names a prefix list is put back by its id."""
    described = {"Description": rule.description} if rule.description else {}
    asked: dict[str, Any] = {"IpProtocol": _NUMBERS.get(rule.protocol, rule.protocol), **_ports(mend, rule)}
    if rule.peer_list:
        return {**asked, "PrefixListIds": [{"PrefixListId": rule.peer_list, **described}]}
    peers = [*rule.peers, *rule.peer_groups, *rule.unresolved]
    require(mend, len(peers) == 1 and not rule.unresolved, "a rule of AWS lets in one network or group")
    (peer,) = peers
    if rule.peer_groups:
        return {**asked, "UserIdGroupPairs": [{"GroupId": peer, **described}]}
    if ":" in peer:
        return {**asked, "Ipv6Ranges": [{"CidrIpv6": peer, **described}]}
    return {**asked, "IpRanges": [{"CidrIp": peer, **described}]}


def _ports(mend: Remediation, rule: NetworkRule) -> dict[str, int]:
    if rule.protocol == "all":
        require(mend, rule.ports == EVERY_PORT, "a rule for every protocol has no ports on AWS")
        return {}
    if not rule.ports:
        return {"FromPort": NO_NUMBER, "ToPort": NO_NUMBER}
    require(mend, len(rule.ports) == 1, "a rule of AWS has one range of ports")
    first, last = rule.ports[0]
    return {"FromPort": first, "ToPort": last}
