"""One rule of a security group: taken away, made narrower, put back. The group is read anew right before.

A rule is named by its id, never by its terms: those would name whatever fits them. Only rules of the way in that could
be put back as they are: what a before-image cannot say (source ports, prefix and port lists) is not touched.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from ipaddress import IPv4Network, IPv6Network, ip_network

from costguard.domain.actions import Receipt
from costguard.domain.errors import OutcomeUnknownError, ProviderError
from costguard.domain.network import Direction, NetworkRule
from costguard.domain.remediations import Remediation
from costguard.guards.network.rules import rule_text
from costguard.providers.alibaba.core.session import AlibabaSession
from costguard.providers.alibaba.network.groups import RULES_API, read_rules
from costguard.providers.alibaba.network.rules import RuleLists, direction_of, to_permission, to_rule
from costguard.providers.kit.core.fields import Fields, as_documented, text
from costguard.providers.kit.network.remediation import (
    RuleRemediator,
    gone,
    imaged,
    listed,
    refusal,
    require,
    require_unmoved,
)

_ADD, _TAKE = "ecs:AuthorizeSecurityGroup", "ecs:RevokeSecurityGroup"
_MOST = 100  # rules of a call
_LOST = {
    "no_id": "it has no id",
    "more_conditions": "it asks for more than a source, a protocol and a port",
    "port_list": "it names a port list",
    "prefix_list": "it names a prefix list",
    "group_elsewhere": "it names a group of an account",
}


class AlibabaRuleRemediator(RuleRemediator[AlibabaSession]):
    """For one site of Alibaba Cloud."""

    def revoke(self, mend: Remediation, before: Mapping[str, str]) -> Receipt:
        """Take the rule away.

        API: ECS RevokeSecurityGroup by SecurityGroupRuleId, which errs where there is no such rule.
        """
        rule, _ = self._decided_on(mend, before)
        return self._take(mend, [rule.rule_id])

    def narrow(self, mend: Remediation, before: Mapping[str, str]) -> Receipt:
        """As of `RuleRemediator`; the receipt names the new rules.

        API: ECS AuthorizeSecurityGroup, whose answer names no rule, so that they are read; RevokeSecurityGroup.
        """
        rule, others = self._decided_on(mend, before)
        narrowed = [replace(rule, peers=(peer,)) for peer in _narrower(mend, rule)]
        require(mend, not _any_same(narrowed, others), "such a rule is there already")
        self._add(mend, narrowed)
        made = self._made(mend, narrowed, {each.rule_id for each in others} | {rule.rule_id}, "the wide one stands")
        return self._then_take(mend, made, [rule.rule_id], "the wide one stands")

    def restore(self, mend: Remediation) -> Receipt:
        """As of `RuleRemediator`."""
        rule = imaged(mend)
        found = self._rules(mend)
        instead = listed(mend, "instead_of")
        missing = [each for each in instead if each not in found]
        if missing:
            raise gone(mend, ", ".join(missing), RULES_API)
        strange = [each for each in instead if not _same(replace(found[each][0], peers=rule.peers), rule)]
        require(mend, not strange, f"in its place stands another rule by now: {', '.join(strange)}")
        left = [each for name, (each, _told) in found.items() if name not in instead]
        require(mend, not _any_same([rule], left), "such a rule is there already")
        added = self._add(mend, [rule])
        if not instead:
            return added
        made = self._made(mend, [rule], set(found), "those in its place stand")
        return self._then_take(mend, made, instead, "those in its place stand")

    def _decided_on(self, mend: Remediation, before: Mapping[str, str]) -> tuple[NetworkRule, list[NetworkRule]]:
        """The rule as it is now, where that is what the mend was decided on; and the group's others."""
        direction = mend.parameters.get("direction")
        require(mend, direction == Direction.INGRESS.value, "only rules of the way in are mended")
        require(mend, not mend.parameters.get("version"), "groups have no versions here")
        rule_id = mend.parameters.get("rule_id", "")
        found = self._rules(mend)
        if not rule_id or rule_id not in found:
            raise gone(mend, rule_id or "a rule without an id", RULES_API)
        rule, told = found.pop(rule_id)
        with as_documented(RULES_API):
            require(mend, direction_of(told) is Direction.INGRESS, "it is a rule of the way out")
        why = _LOST.get(rule.cannot_return, rule.cannot_return)
        require(mend, not why, f"it could not be put back: {why}")
        require_unmoved(mend, {"rule": rule_text(rule), "version": ""}, before)
        return rule, [each for each, _ in found.values()]

    def _rules(self, mend: Remediation) -> dict[str, tuple[NetworkRule, Fields]]:
        """The group's rules by id, with what was told of them; lists that rules name are not looked into."""
        permissions = read_rules(self._session, mend.subject.shard, mend.subject.native_id).permissions
        with as_documented(RULES_API):
            return {text(told, "SecurityGroupRuleId"): (to_rule(told, RuleLists()), told) for told in permissions}

    def _add(self, mend: Remediation, rules: Sequence[NetworkRule]) -> Receipt:
        require(mend, 0 < len(rules) <= _MOST, f"{len(rules)} rules are not from 1 to {_MOST}")
        try:
            permissions = [to_permission(rule) for rule in rules]
        except ValueError as err:
            raise refusal(mend, str(err)) from err
        return self._session.change(
            mend.subject.shard,
            "ecs",
            "AuthorizeSecurityGroup",
            SecurityGroupId=mend.subject.native_id,
            Permissions=permissions,
        )

    def _made(self, mend: Remediation, rules: Sequence[NetworkRule], earlier: set[str], left: str) -> list[str]:
        """The ids of the rules that were just added.

        Raises:
            OutcomeUnknownError: they are not seen.
        """
        added = "rules were added"
        try:
            found = self._rules(mend)
        except ProviderError as err:
            raise _half_done(added, left, err, _ADD) from err
        made = [
            name for rule in rules for name, (each, _) in found.items() if name not in earlier and _same(each, rule)
        ]
        if len(made) != len(rules):
            seen = f"{added} and {len(made)} of {len(rules)} are seen"
            raise _half_done(seen, left, None, _ADD)
        return made

    def _then_take(self, mend: Remediation, made: Sequence[str], rule_ids: Sequence[str], left: str) -> Receipt:
        try:
            return self._take(mend, rule_ids, ",".join(made))
        except ProviderError as err:
            added = f"{', '.join(made)} were added"
            raise _half_done(added, left, err, _TAKE) from err

    def _take(self, mend: Remediation, rule_ids: Sequence[str], made: str = "") -> Receipt:
        return self._session.change(
            mend.subject.shard,
            "ecs",
            "RevokeSecurityGroup",
            lambda _: made,
            SecurityGroupId=mend.subject.native_id,
            SecurityGroupRuleId=list(rule_ids),
        )


def _half_done(done: str, left: str, err: ProviderError | None, operation: str) -> OutcomeUnknownError:
    """The error of a mend of two calls whose second one failed, or was not made."""
    because = "" if err is None else f": {err}"
    message = f"{operation}: half done: {done}, and {left}{because}"
    return OutcomeUnknownError(message, operation=operation, code="HalfDone")


def _narrower(mend: Remediation, rule: NetworkRule) -> list[str]:
    """The networks that take the place of the rule's own: each within it, and none all of it."""
    require(mend, len(rule.peers) == 1, "it lets in no network")
    wide = ip_network(rule.peers[0])
    try:
        wanted = [ip_network(each) for each in listed(mend, "peers")]
    except ValueError as err:
        raise refusal(mend, f"no networks: {err}") from err
    require(mend, bool(wanted), "no networks to narrow it to")
    outside = [str(each) for each in wanted if each == wide or not _within(each, wide)]
    require(mend, not outside, f"not narrower than {wide}: {', '.join(outside)}")
    return list(dict.fromkeys(map(str, wanted)))


def _within(network: IPv4Network | IPv6Network, other: IPv4Network | IPv6Network) -> bool:
    if isinstance(network, IPv4Network) and isinstance(other, IPv4Network):
        return network.subnet_of(other)
    return isinstance(network, IPv6Network) and isinstance(other, IPv6Network) and network.subnet_of(other)


def _any_same(rules: Sequence[NetworkRule], others: Sequence[NetworkRule]) -> bool:
    """The cloud makes no second rule of one that is there, and says nothing."""
    return any(_same(rule, other) for rule in rules for other in others)


def _same(rule: NetworkRule, other: NetworkRule) -> bool:
    return _bare(rule) == _bare(other)


def _bare(rule: NetworkRule) -> NetworkRule:
    return replace(rule, rule_id="", description="", cannot_return="")
