"""Which policy a run decides by: the current one, or the last good one for at most seven days, never an empty one."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from costguard.domain.errors import CostguardError, InvalidInputError, ProviderError
from costguard.domain.reasons import Reason, ReasonCode
from costguard.engine.memory import Memory
from costguard.engine.repositories.outbox import Notice
from costguard.policy.lastgood import Usable, usable
from costguard.policy.loader import load_policy
from costguard.policy.model import Policy
from costguard.ports import PolicySource, PolicyText
from costguard.report.policy_notice import policy_notice
from costguard.report.words import Language


@dataclass(frozen=True, slots=True)
class PolicyInForce:
    """The policy to judge by. `problem` bars every action; `error` is what was wrong with the current one."""

    policy: Policy
    problem: Reason | None = None
    error: str = ""


Load = Callable[[PolicyText], Policy]
"""From files to a policy, or `InvalidInputError`."""


def policy_in_force(source: PolicySource, memory: Memory, now: datetime, load: Load = load_policy) -> PolicyInForce:
    """Read the current policy and remember it; where it is broken fall back, and say so.

    Raises:
        InvalidInputError: the current policy is broken and no good one is remembered.
        ProviderError: likewise, where it could not be read.
    """
    try:
        text = source.read()
        policy = load(text)
    except (InvalidInputError, ProviderError) as err:
        return _fallen_back(err, memory, now, load)
    memory.policies.remember(text, now)
    return PolicyInForce(policy)


def _fallen_back(err: CostguardError, memory: Memory, now: datetime, load: Load) -> PolicyInForce:
    good = memory.policies.last_good()
    if good is None:
        raise err
    policy = load(good.text)
    facts = {"read_at": good.read_at.isoformat(timespec="minutes")}
    refused = usable(good.read_at, now) is Usable.REFUSE
    return PolicyInForce(policy, Reason(ReasonCode.POLICY_STALE, facts) if refused else None, str(err))


def tell_of_broken_policy(memory: Memory, found: PolicyInForce, language: str, now: datetime) -> None:
    """One notice a day to the default channel for as long as the policy stays broken."""
    if not found.error or not found.policy.default_channel:
        return
    day = hashlib.sha256(f"{now.date()}\n{found.error}".encode()).hexdigest()[:24]
    worded = policy_notice(found.error, refused=found.problem is not None, language=Language(language))
    memory.outbox.enqueue(
        Notice(
            notice_id=f"policy-{day}",
            decision_id="",
            case_key="",
            channel=found.policy.default_channel,
            title=worded.title,
            text=worded.text,
            created_at=now,
            fields=worded.fields,
            lines=worded.lines,
        )
    )
