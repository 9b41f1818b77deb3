"""Rules of a group as text and back: a before-image has to say all of a rule, and the same rule always the same way."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

from costguard.domain.errors import InvalidInputError
from costguard.domain.network import Direction, NetworkRule, Permission

_LATER = ("peer_list", "cannot_return")
"""What images of earlier versions lack: left out where it is empty, so that they stay whole."""


def rule_text(rule: NetworkRule) -> str:
    """A rule as canonical JSON."""
    told = {name: value for name, value in asdict(rule).items() if value or name not in _LATER}
    return json.dumps(told, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def read_rule(text: str) -> NetworkRule:
    """The rule that `rule_text` wrote.

    Raises:
        InvalidInputError: not such a text; nothing is guessed of what would open or close a network.
    """
    try:
        told: dict[str, Any] = json.loads(text)
        rule = NetworkRule(
            rule_id=_word(told["rule_id"]),
            direction=Direction(told["direction"]),
            permission=Permission(told["permission"]),
            protocol=_word(told["protocol"]),
            ports=tuple((_number(first), _number(last)) for first, last in told["ports"]),
            peers=tuple(_word(peer) for peer in told["peers"]),
            peer_groups=tuple(_word(group) for group in told["peer_groups"]),
            unresolved=tuple(_word(name) for name in told["unresolved"]),
            priority=_number(told["priority"]),
            description=_word(told["description"]),
            **{name: _word(told.get(name, "")) for name in _LATER},
        )
    except (ValueError, KeyError, TypeError) as err:
        message = f"not the text of a rule: {text[:200]!r}"
        raise InvalidInputError(message) from err
    if rule_text(rule) != text:
        message = f"not the whole text of one rule: {text[:200]!r}"
        raise InvalidInputError(message)
    return rule


def _word(told: object) -> str:
    if not isinstance(told, str):
        raise TypeError("not a text")
    return told


def _number(told: object) -> int:
    if not isinstance(told, int) or isinstance(told, bool):
        raise TypeError("not a whole number")
    return told
