"""What a rule does not measure may still say that a GPU which reads 0 is not idle: then nobody knows. Pure.

A card in use shows it somewhere: it draws power, and something feeds it. An exporter that is stuck at 0 shows nothing.
So where every bound was kept, and a card read exactly 0 over the whole window, the signals that the rule does not name
are asked as well. One that says otherwise makes the machine unmeasured: whether the card or its exporter is right is
for people to find out. What is missing here, incomplete or impossible says nothing, because it decides nothing.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from types import MappingProxyType

from costguard.domain.reasons import FactValue, Reason, ReasonCode
from costguard.domain.resources import Instance
from costguard.domain.signals import SignalName, SignalSummary
from costguard.guards.rules.idle import SHIPPED_CPU_PERCENT, SHIPPED_NETWORK_BYTES_PER_SECOND

IN_USE_WATTS = 150.0
"""No card up to the H200 draws so much for nothing. Bare, they idle at 15 to 80 W; an open CUDA context adds 26 to 66 W
(H100, A100 and L40S, arXiv 2605.23918), and 147 W is the highest draw reported of an A100 at 0 %."""

_SMALL_CARD_WATTS = 40.0  # boards of 60 to 75 W: idle with a context they draw up to 30
_MIDDLE_CARD_WATTS = 90.0  # boards of 150 W: idle with a context up to 60
_LARGE_CARD_WATTS = 300.0  # boards of 1,000 W and more: Blackwell idles near 150 before any context
_WATTS_BY_MODEL: Mapping[str, float] = MappingProxyType(
    {
        **dict.fromkeys(("T4", "T4G", "L4", "P4", "A2", "M4"), _SMALL_CARD_WATTS),
        **dict.fromkeys(("A10", "M60", "A16", "K80"), _MIDDLE_CARD_WATTS),
        **dict.fromkeys(("B200", "B300", "GB200", "GB300"), _LARGE_CARD_WATTS),
    }
)
_WORD = re.compile(r"[A-Z0-9]+")

_SUSTAINED: Mapping[SignalName, float] = MappingProxyType(
    {SignalName.CPU: SHIPPED_CPU_PERCENT, SignalName.NETWORK: SHIPPED_NETWORK_BYTES_PER_SECOND}
)
"""By their sustained level, not by the highest sample: a nightly job moves any CPU and network for minutes, and would
hide each idle machine that has one."""


def contradiction(
    instance: Instance, judged: Sequence[SignalSummary], others: Sequence[SignalSummary]
) -> Reason | None:
    """What says that a card which read 0 throughout is in use; None where nothing does.

    `judged` are the signals the rule names, all of them below their bounds, at which its writer is taken at their word;
    `others` is what was read beside them.
    """
    silent = [card for card in judged if card.name is SignalName.GPU and card.maximum == 0]
    if not silent:
        return None
    devices = {card.device for card in silent}
    for signal in others:
        if signal.name is SignalName.POWER and (not signal.device or signal.device in devices or "" in devices):
            level, bound = signal.maximum, in_use_watts(instance)
        elif signal.name in _SUSTAINED:
            level, bound = signal.sustained, _SUSTAINED[signal.name]
        else:
            continue
        if level is not None and math.isfinite(level) and level >= bound:
            return _reason(signal, level, bound)
    return None


def in_use_watts(instance: Instance) -> float:
    """What a card of this instance draws only in use, in watts."""
    words = _WORD.findall(instance.accelerator.model.upper())
    return next((_WATTS_BY_MODEL[word] for word in words if word in _WATTS_BY_MODEL), IN_USE_WATTS)


def _reason(signal: SignalSummary, level: float, bound: float) -> Reason:
    facts: dict[str, FactValue] = {
        "signal": signal.name.value,
        "device": signal.device,
        "maximum": round(level, 2),
        "bound": bound,
    }
    return Reason(ReasonCode.CONTRADICTED, facts)
