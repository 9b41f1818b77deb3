"""Rules of security groups: one revoked, replaced by narrower ones, or put back, and never the whole list.

A rule is its place, right only with the version of its list, so every request names the version that was just read: the
cloud refuses it where the list has moved meanwhile. One rule is replaced by one in one request. By several it is in
two, of which the first takes nobody's way: the narrower rules go in above it, then it becomes the last of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from ipaddress import ip_network
from typing import Any

from costguard.domain.actions import Receipt
from costguard.domain.errors import OutcomeUnknownError, ProviderError
from costguard.domain.network import Direction, NetworkRule, Permission
from costguard.domain.remediations import Remediation
from costguard.guards.network.rules import rule_text
from costguard.providers.kit.core.fields import as_documented, named
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
from costguard.providers.tencent.core.session import TencentSession
from costguard.providers.tencent.network.groups import POLICIES, read_policies
from costguard.providers.tencent.network.rules import (
    SIDES,
    Templates,
    group_rules,
    policy_lists,
    policy_of,
    same,
    template_ids,
)


@dataclass(frozen=True, slots=True)
class _List:
    """The rules of one direction from the top, and the version of the group that they are right with.

    `by_template`: the places of rules that name a template, of which an image keeps too little to put them back.
    """

    version: str
    direction: Direction
    rules: tuple[NetworkRule, ...]
    by_template: frozenset[int]


class TencentRuleRemediator(RuleRemediator[TencentSession]):
    """For one site of Tencent Cloud."""

    def revoke(self, mend: Remediation, before: Mapping[str, str]) -> Receipt:
        """Take one rule away.

        API: VPC DescribeSecurityGroupPolicies, DeleteSecurityGroupPolicies by place, with Version.
        """
        rules, place = self._decided_on(mend, before)
        return self._send(mend, "Delete", rules, [{"PolicyIndex": place}])

    def narrow(self, mend: Remediation, before: Mapping[str, str]) -> Receipt:
        """The same for fewer: never for anybody whom the rule does not let in now.

        The receipt names the places of the rules that stand there instead.

        Raises:
            OutcomeUnknownError: also where narrower rules were put in above it and it could not be replaced: then it
                still lets in whom it did.

        API: VPC DescribeSecurityGroupPolicies, ReplaceSecurityGroupPolicy; for several networks before that
        CreateSecurityGroupPolicies, and DescribeSecurityGroupPolicies again for the new version.
        """
        rules, place = self._decided_on(mend, before)
        wide = rules.rules[place]
        *first, last = [replace(wide, peers=(peer,)) for peer in _narrower(mend, wide)]
        others = [rule for number, rule in enumerate(rules.rules) if number != place]
        there = any(same(each, rule) for each in (*first, last) for rule in others)
        require(mend, not there, "one of the narrower rules is there already")
        made = ",".join(str(place + number) for number in range(len(first) + 1))
        if not first:
            return self._send(mend, "Replace", rules, [_policy(mend, last, place)], made)
        self._send(mend, "Create", rules, [_policy(mend, each, place) for each in first])
        moved = place + len(first)

        def become_the_last() -> Receipt:
            now = self._list(mend, rules.direction)
            above = now.rules[place:moved]
            as_sent = len(now.rules) > moved and all(any(same(each, rule) for rule in above) for each in first)
            require(mend, as_sent and same(now.rules[moved], wide), "the list has moved again")
            return self._send(mend, "Replace", now, [_policy(mend, last, moved)], made)

        return _second_half(mend, f"{len(first)} narrower rules were put in above it", become_the_last)

    def restore(self, mend: Remediation) -> Receipt:
        """Put a rule back at its old place as its image has it, in place of those that stand there instead.

        Raises:
            OutcomeUnknownError: also where the rule is back, and others that stood for it could not be taken away.

        API: VPC DescribeSecurityGroupPolicies; CreateSecurityGroupPolicies, or ReplaceSecurityGroupPolicy of the first
        that stands in its place, and DeleteSecurityGroupPolicies of the others, each with Version.
        """
        rule = imaged(mend)
        rules = self._list(mend, rule.direction)
        instead = [_place(mend, each) for each in listed(mend, "instead_of")]
        require(mend, not any(same(each, rule) for each in rules.rules), "such a rule is there already")
        if any(place >= len(rules.rules) for place in instead):
            raise gone(mend, "a rule that stands in its place", POLICIES)
        stand = [rules.rules[place] for place in instead]
        narrowed = all(same(replace(each, peers=rule.peers), rule) and _is_within(each, rule) for each in stand)
        peers = set(listed(mend, "peers"))
        as_made = not (instead and peers) or {peer for each in stand for peer in each.peers} == set(
            _networks(mend, peers)
        )
        require(mend, narrowed and as_made, "in its place stands another rule by now")
        if not instead:
            return self._put_in(mend, rules, rule)
        first, *others = sorted(set(instead))
        made = str(first)
        receipt = self._send(mend, "Replace", rules, [_policy(mend, rule, first)], made)
        if not others:
            return receipt

        def take_the_others_away() -> Receipt:
            now = self._list(mend, rule.direction)
            as_sent = len(now.rules) == len(rules.rules) and same(now.rules[first], rule)
            as_sent = as_sent and all(same(now.rules[each], rules.rules[each]) for each in others)
            require(mend, as_sent, "the list has moved again")
            return self._send(mend, "Delete", now, [{"PolicyIndex": each} for each in others], made)

        return _second_half(mend, "the rule is back", take_the_others_away)

    def _put_in(self, mend: Remediation, rules: _List, rule: NetworkRule) -> Receipt:
        place = min(rule.priority, len(rules.rules))
        policy = _policy(mend, rule, place)
        if place == len(rules.rules):
            del policy["PolicyIndex"]  # without a place it goes to the end
        return self._send(mend, "Create", rules, [policy], str(place))

    def _decided_on(self, mend: Remediation, before: Mapping[str, str]) -> tuple[_List, int]:
        """The list and the place of the rule that the mend is about, still as it was, such that it can be put back."""
        said = mend.parameters
        try:
            direction = Direction(said.get("direction", ""))
        except ValueError as err:
            raise refusal(mend, "it needs a direction") from err
        rules, place = self._list(mend, direction), _place(mend, said.get("rule_id", ""))
        version = said.get("version", "")
        require(mend, bool(version), "a place means nothing without the version of its list")
        require(mend, rules.version == version, f"the rules are at version {rules.version}, not {version}")
        if place >= len(rules.rules):
            raise gone(mend, f"rule {place}", POLICIES)
        templates = "it names a parameter template: what is wrong there is changed there"
        require(mend, place not in rules.by_template, templates)
        require_unmoved(mend, {"rule": rule_text(rules.rules[place]), "version": rules.version}, before)
        allows = rules.rules[place].permission is Permission.ALLOW
        require(mend, allows, "it denies: without it, or with less of it, more would get in")
        _policy(mend, rules.rules[place], place)
        return rules, place

    def _list(self, mend: Remediation, direction: Direction) -> _List:
        policies = read_policies(self._session, mend.subject)
        with as_documented(POLICIES):
            side = [policy for each, policy in policy_lists(policies) if each is direction]
            by_template = frozenset(place for place, policy in enumerate(side) if any(template_ids(policy)))
            one_each = {
                int(each.rule_id): each for each in group_rules(policies, Templates()) if each.direction is direction
            }
            rules = tuple(one_each[place] for place in range(len(side)))
            return _List(named(policies, "Version"), direction, rules, by_template)

    def _send(
        self, mend: Remediation, what: str, rules: _List, policies: Sequence[Mapping[str, Any]], made: str = ""
    ) -> Receipt:
        """One request about one direction, which the cloud refuses where the list is at another version by now."""
        action = f"{what}SecurityGroup{'Policy' if what == 'Replace' else 'Policies'}"
        return self._session.change(
            mend.subject.shard,
            "vpc",
            action,
            lambda _: made,
            SecurityGroupId=mend.subject.native_id,
            SecurityGroupPolicySet={"Version": rules.version, SIDES[rules.direction]: list(policies)},
        )


def _second_half(mend: Remediation, done: str, rest: Callable[[], Receipt]) -> Receipt:
    """Whatever goes wrong now, something has changed."""
    try:
        return rest()
    except ProviderError as err:
        message = f"{mend.kind.value} of {mend.subject}: {done}, and then: {err}"
        raise OutcomeUnknownError(message, operation=err.operation, code=err.code) from err


def _narrower(mend: Remediation, wide: NetworkRule) -> list[str]:
    """The networks that are to be let in instead, each within what is let in now."""
    said = listed(mend, "peers")
    require(mend, bool(said), "no networks to narrow it to")
    peers = _networks(mend, said)
    outside = [peer for peer in peers if not _is_within(replace(wide, peers=(peer,)), wide)]
    require(mend, not outside, f"it does not let in {', '.join(outside)} now")
    return peers


def _networks(mend: Remediation, said: Iterable[str]) -> list[str]:
    try:
        return list(dict.fromkeys(network(each) for each in said))
    except ValueError as err:
        raise refusal(mend, str(err)) from err


def _is_within(rule: NetworkRule, wide: NetworkRule) -> bool:
    """Whether every network of the one is within one of the other."""
    return all(
        any(
            inner.version == outer.version and inner.subnet_of(outer)  # type: ignore[arg-type]
            for outer in map(ip_network, wide.peers)
        )
        for inner in map(ip_network, rule.peers)
    )


def _policy(mend: Remediation, rule: NetworkRule, place: int) -> dict[str, Any]:
    policy = policy_of(rule)
    if policy is None:
        raise refusal(mend, "a rule of Tencent Cloud is about one network or group")
    return {"PolicyIndex": place, **policy}


def _place(mend: Remediation, rule_id: str) -> int:
    require(mend, rule_id.isascii() and rule_id.isdigit(), f"{rule_id!r} is no place in a list")
    return int(rule_id)
