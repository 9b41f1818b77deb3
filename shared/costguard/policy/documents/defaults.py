"""What Costguard does where nobody has written a policy: watch, and change nothing. Pure."""

from __future__ import annotations

from datetime import timedelta

from costguard.domain.actions import Verb
from costguard.guards.keys.rules import KeyRule, KeySelector
from costguard.guards.network.rules import AuditRule, NetworkCheck
from costguard.guards.rules.common import Limits, Mode, Protection, Selector, Step
from costguard.guards.rules.idle import SHIPPED_BOUNDS, IdleRule
from costguard.policy.model.policy import Policy, SignalSettings, with_policy_digest
from costguard.policy.model.terms import with_digest

DEFAULT_RULE = "default"
ASKS_FOR_MORE = frozenset({NetworkCheck.REGION, NetworkCheck.WIDE_PEERING, NetworkCheck.PRIVATE_SUBNET_EXPOSED})
"""The checks of networks that cannot be made before a policy says what is allowed."""


def default_policy() -> Policy:
    """Observe; one rule for everything: running longer than 24 h and idle over that time, warn, then stop.

    Idle is GPU, CPU and network together: by the GPU alone, machines that load data, simulate or serve are idle.

    And one for every key: rotated by itself every 90 days; and one for every network, which mends nothing.
    """
    rule = IdleRule(
        name=DEFAULT_RULE,
        mode=Mode.OBSERVE,
        applies_to=Selector(),
        idle=SHIPPED_BOUNDS,
        ladder=(Step(Verb.WARN, timedelta(0)), Step(Verb.STOP, timedelta(hours=24))),
        limits=Limits(),
        digest="",
    )
    policy = Policy(
        mode=Mode.OBSERVE,
        idle_gpu=(with_digest(rule),),
        accounts=(),
        owners=(),
        exemptions=(),
        protection=Protection(),
        calendar=None,
        signals=SignalSettings(),
        prices=(),
        default_channel="",
        digest="",
        kms_rotation=(with_digest(KeyRule(DEFAULT_RULE, Mode.OBSERVE, KeySelector())),),
        network_audit=(with_digest(AuditRule(DEFAULT_RULE, Mode.OBSERVE, frozenset(NetworkCheck) - ASKS_FOR_MORE)),),
    )
    return with_policy_digest(policy)
