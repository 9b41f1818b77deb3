"""What every mend of a network on AWS holds to before anything is sent."""

from __future__ import annotations

from dataclasses import replace

from costguard.domain.network import NetworkRule
from costguard.providers.kit.core.fields import Fields, part, text


def same(rule: NetworkRule, other: NetworkRule) -> bool:
    """Whether two rules match and say the same, whatever they are called."""
    return _bare(rule) == _bare(other)


def by_its_list(rule: NetworkRule) -> NetworkRule:
    """The rule as EC2 has it: where it names a prefix list it is about that, whatever networks are in it now."""
    return replace(rule, peers=(), unresolved=(rule.peer_list,)) if rule.peer_list else rule


def _bare(rule: NetworkRule) -> NetworkRule:
    return replace(by_its_list(rule), rule_id="", priority=0, description="")


def request_id(answer: Fields) -> str:
    """What AWS calls the request that it answers."""
    return text(part(answer, "ResponseMetadata"), "RequestId")
