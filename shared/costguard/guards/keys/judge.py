"""Is this key rotated as often as the policy asks, and if not, what would mend it? Judged by what its vendor can do.

A setting that the cloud does not tell is unmeasured, never off. A key that its vendor cannot rotate that often is held
to the shortest period the vendor offers, and the difference is shown once, as a limit and no fault. One that nothing
rotates is as asked until its material is older than the policy allows: its owner may replace it in time.

A successor says whose it is in a tag. The tag alone moves no alias: a key must be like the one it follows, and the
engine asks the ledger whether Costguard made it.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from costguard.domain.findings import Finding, Verdict
from costguard.domain.keys import EncryptionKey, KeyManager, KeyOrigin, KeyState, MultiRegion, RotationMeans
from costguard.domain.reasons import FactValue, Reason, ReasonCode
from costguard.domain.refs import ResourceRef
from costguard.domain.remediations import Remediation, RemediationKind
from costguard.guards import KMS_ROTATION
from costguard.guards.keys.rules import KeyRule

SUCCESSOR_OF, DECISION = "costguard-successor-of", "costguard-decision"
"""Tags of a successor: the id of the key it follows, and the action that made it."""

MOVED_BACK = "the alias was moved back"
"""Words of a refusal that an intent keeps: the alias had been with the other key for a moment."""


@dataclass(frozen=True, slots=True)
class Lineage:
    """Who follows a key. `claims` are ids of the keys that say so, in whatever state they are.

    `heir` is the one among them that an alias can be moved to, None unless there is exactly one claim. `aliases` are
    those that the successors hold, and theirs after them.
    """

    claims: tuple[str, ...] = ()
    heir: EncryptionKey | None = None
    aliases: tuple[str, ...] = ()


NOBODY = Lineage()


def lineages(keys: Iterable[EncryptionKey]) -> Mapping[ResourceRef, Lineage]:
    """Who follows each key that is followed by any."""
    by_ref = {key.ref: key for key in keys}
    claims: defaultdict[ResourceRef, list[EncryptionKey]] = defaultdict(list)
    for ref, key in sorted(by_ref.items()):
        named = key.tags.get(SUCCESSOR_OF, "")
        if named and named != ref.native_id:
            claims[ref.sibling("key", named)].append(key)
    return {
        ref: Lineage(
            tuple(each.ref.native_id for each in followed),
            _heir(by_ref.get(ref), followed),
            tuple(sorted({alias for each in _after(ref, claims) for alias in each.aliases})),
        )
        for ref, followed in claims.items()
    }


def is_superseded(key: EncryptionKey, line: Lineage) -> bool:
    """Whether its successor, or one after that, has taken all its aliases."""
    return bool(line.claims) and not key.aliases and bool(line.aliases)


def next_step(key: EncryptionKey, line: Lineage) -> Remediation | None:
    """What brings a successor in the place of a key; None where Costguard cannot, or where it is not clear who follows.

    One alias at a time: each is a change, and a way back, of its own.
    """
    if not can_be_made_again(key) or not key.aliases:
        return None
    if not line.claims:
        return Remediation(RemediationKind.CREATE_SUCCESSOR, key.ref)
    if line.heir is None:
        return None
    said = {"alias": min(key.aliases).removeprefix("alias/"), "successor": line.heir.ref.native_id}
    return Remediation(RemediationKind.MOVE_ALIAS, key.ref, said)


def can_be_made_again(key: EncryptionKey) -> bool:
    """Whether a key of its kind can be made anew with material of the cloud's own, and is known to work now."""
    return (
        key.rotatability.succeeds
        and key.state is KeyState.ENABLED
        and key.manager is KeyManager.CUSTOMER
        and key.origin is KeyOrigin.CLOUD
        and key.multi_region is MultiRegion.NONE
    )


def is_alike(key: EncryptionKey, other: EncryptionKey) -> bool:
    """Whether one can do all that the other does."""
    return (key.spec, key.usage, key.ref.shard) == (other.spec, other.usage, other.ref.shard)


def inverse(mend: Remediation) -> Remediation | None:
    """What takes a mend of a key back; only an alias can be."""
    return (
        Remediation(RemediationKind.RESTORE_ALIAS, mend.subject, mend.parameters)
        if mend.kind is RemediationKind.MOVE_ALIAS
        else None
    )


def _heir(key: EncryptionKey | None, claims: list[EncryptionKey]) -> EncryptionKey | None:
    if key is None or len(claims) != 1:
        return None
    (heir,) = claims
    return heir if can_be_made_again(heir) and is_alike(key, heir) else None


def _after(ref: ResourceRef, claims: Mapping[ResourceRef, list[EncryptionKey]]) -> Iterable[EncryptionKey]:
    """All that follow a key, each once: tags can be made to point in a circle."""
    seen, waiting = {ref}, [ref]
    while waiting:
        for each in claims.get(waiting.pop(), ()):
            if each.ref not in seen:
                seen.add(each.ref)
                waiting.append(each.ref)
                yield each


NAME = KMS_ROTATION
ROTATION, REFERENCES, DEFAULT_KEY, VENDOR_LIMIT = "rotation", "references", "default_key", "vendor_limit"
"""The checks: one finding at most of each for a key."""
_DAY = timedelta(days=1)
_ONLY_A_SUCCESSOR = frozenset({RotationMeans.SUCCESSOR})


def judge(keys: Iterable[EncryptionKey], rules: Sequence[KeyRule], now: datetime) -> tuple[Finding, ...]:
    """Every finding about every key, by the gentlest rule that speaks of it."""
    found = tuple(keys)
    lines = lineages(found)
    return tuple(
        finding
        for key in found
        for line in [lines.get(key.ref, NOBODY)]
        for finding in judge_key(key, gentlest(key, rules, line), now, line)
    )


def gentlest(key: EncryptionKey, rules: Sequence[KeyRule], line: Lineage = NOBODY) -> KeyRule | None:
    """Of the rules that speak of a key, the one that asks the least.

    A key is still spoken of by the aliases that its successors have taken: else moving one would end its case unseen.
    """
    named = replace(key, aliases=(*key.aliases, *line.aliases))
    covering = [rule for rule in rules if rule.covers(named)]
    return min(covering, key=lambda rule: (rule.mode, -rule.rotate_every, rule.name), default=None)


def judge_key(key: EncryptionKey, rule: KeyRule | None, now: datetime, line: Lineage = NOBODY) -> Iterator[Finding]:
    """What is to be said of one key; at least one finding."""
    if rule is None:
        yield _finding(key, None, ROTATION, Verdict.EXEMPT, Reason(ReasonCode.NO_RULE))
        return
    yield from _references(key, rule)
    if rule.customer_keys and key.is_default and key.used_by:
        facts: dict[str, FactValue] = {"resources": len(key.used_by)}
        yield _finding(key, rule, DEFAULT_KEY, Verdict.VIOLATION, Reason(ReasonCode.KEY_IS_DEFAULT, facts))
    verdict, reason = _rotation(key, rule, now, line)
    yield _finding(key, rule, ROTATION, verdict, reason)
    said = verdict is Verdict.EXEMPT or reason.code is ReasonCode.KEY_CANNOT_ROTATE
    limit = None if said else _limit(key, rule)
    if limit is not None:
        yield _finding(key, rule, VENDOR_LIMIT, Verdict.EXEMPT, limit)


def remediation_of(key: EncryptionKey, rule: KeyRule, finding: Finding, line: Lineage = NOBODY) -> Remediation | None:
    """What the policy allows to mend a finding; None where nothing does without people."""
    if finding.verdict is not Verdict.VIOLATION or finding.check != ROTATION:
        return None
    can = key.rotatability.means & rule.means
    if finding.reason.code in {ReasonCode.KEY_ROTATION_OFF, ReasonCode.KEY_PERIOD_LONG}:
        if RotationMeans.AUTOMATIC not in can:
            return None
        return Remediation(
            RemediationKind.SET_ROTATION, key.ref, {"days": str(wanted_days(key, rule)), **_terms_of_vendor(key)}
        )
    if finding.reason.code is ReasonCode.KEY_OVERDUE and RotationMeans.ON_DEMAND in can:
        return Remediation(RemediationKind.ROTATE_KEY, key.ref, _terms_of_vendor(key))
    if finding.reason.code is ReasonCode.KEY_OVERDUE and can == _ONLY_A_SUCCESSOR:
        return next_step(key, line)
    return None


def _terms_of_vendor(key: EncryptionKey) -> dict[str, str]:
    """What a rotation costs or takes, where its vendor says so."""
    return {"note": key.rotatability.note} if key.rotatability.note else {}


def _cost(key: EncryptionKey) -> dict[str, FactValue]:
    """What a rotation of it adds to the bill, also that it is not known."""
    cost = key.rotatability.cost
    said: dict[str, FactValue] = {"cost": cost.kind.value}
    return said if cost.monthly is None else {**said, "cost_monthly": str(cost.monthly)}


def wanted_days(key: EncryptionKey, rule: KeyRule) -> int:
    """The period asked for, within what the vendor offers for this key."""
    asked = math.floor(rule.rotate_every / _DAY)
    if key.rotatability.means & rule.means in {_ONLY_A_SUCCESSOR, frozenset[RotationMeans]()}:
        return asked  # a new key can be made whenever it is asked for
    shortest, longest = key.rotatability.shortest_days, key.rotatability.longest_days
    if longest is not None:
        asked = min(asked, longest)
    return asked if shortest is None else max(asked, shortest)


def _references(key: EncryptionKey, rule: KeyRule) -> Iterator[Finding]:
    """A key that is about to go, or is off, and that something still names."""
    codes = {
        KeyState.PENDING_DELETION: ReasonCode.KEY_DELETED_IN_USE,
        KeyState.DISABLED: ReasonCode.KEY_DISABLED_IN_USE,
    }
    code = codes.get(key.state)
    if code is None or not key.used_by:
        return
    facts: dict[str, FactValue] = {"resources": len(key.used_by), "first": key.used_by[0].native_id}
    if key.deletes_at is not None:
        facts["until"] = key.deletes_at.date().isoformat()
    yield _finding(key, rule, REFERENCES, Verdict.VIOLATION, Reason(code, facts))


def _rotation(key: EncryptionKey, rule: KeyRule, now: datetime, line: Lineage) -> tuple[Verdict, Reason]:
    kept = _kept(key)
    if kept is not None:
        return Verdict.EXEMPT, kept
    if key.state is not KeyState.ENABLED:
        return Verdict.UNMEASURED, Reason(ReasonCode.KEY_STATE, {"state": key.state.value})
    if is_superseded(key, line):
        return Verdict.EXEMPT, Reason(ReasonCode.KEY_SUPERSEDED, {"successor": line.claims[-1]})
    can = key.rotatability.means & rule.means
    if RotationMeans.AUTOMATIC not in can:
        return _by_age(key, rule, now)
    setting, wanted = key.rotation, wanted_days(key, rule)
    if setting.automatic is None:
        return Verdict.UNMEASURED, Reason(ReasonCode.KEY_ROTATION_UNTOLD)
    if not setting.automatic:
        return Verdict.VIOLATION, Reason(ReasonCode.KEY_ROTATION_OFF, {"wanted_days": wanted, **_cost(key)})
    if setting.period_days is None:
        return Verdict.UNMEASURED, Reason(ReasonCode.KEY_ROTATION_UNTOLD)
    if setting.period_days > wanted:
        facts: dict[str, FactValue] = {"period_days": setting.period_days, "wanted_days": wanted, **_cost(key)}
        return Verdict.VIOLATION, Reason(ReasonCode.KEY_PERIOD_LONG, facts)
    return _by_age(key, rule, now)


def before_of(key: EncryptionKey) -> dict[str, str]:
    """How a key is rotated now, as an intent keeps it."""
    setting = key.rotation
    said = {"automatic": setting.automatic, "period_days": setting.period_days, "version": key.version or None}
    return {name: str(value).lower() for name, value in said.items() if value is not None}


def _by_age(key: EncryptionKey, rule: KeyRule, now: datetime) -> tuple[Verdict, Reason]:
    """Whether its material is older than asked for; of a key that was never rotated, since it was made.

    One that its vendor will rotate within the period asked for is on its way: turning rotation on counts from then.
    """
    since = key.rotation.last_at or key.created_at
    if since is None:
        return Verdict.UNMEASURED, Reason(ReasonCode.KEY_ROTATION_UNTOLD)
    wanted = wanted_days(key, rule)
    age = (now - since) // _DAY
    facts: dict[str, FactValue] = {"age_days": age, "wanted_days": wanted}
    coming = key.rotation.next_at if RotationMeans.ON_DEMAND not in key.rotatability.means & rule.means else None
    if coming is not None and now <= coming + rule.late_by and coming - now <= wanted * _DAY:
        return Verdict.COMPLIANT, Reason(ReasonCode.KEY_ROTATED, facts)
    if now - since <= wanted * _DAY + rule.late_by:
        return Verdict.COMPLIANT, Reason(ReasonCode.KEY_ROTATED, facts)
    if key.rotatability.means & rule.means:
        return Verdict.VIOLATION, Reason(ReasonCode.KEY_OVERDUE, {**facts, **_cost(key)})
    facts = {**facts, "note": key.rotatability.note, "spec": key.spec, **_cost(key)}
    return Verdict.VIOLATION, Reason(ReasonCode.KEY_CANNOT_ROTATE, facts)


def _kept(key: EncryptionKey) -> Reason | None:
    if key.multi_region is MultiRegion.REPLICA:
        primary = key.primary.region if key.primary is not None else ""
        return Reason(ReasonCode.KEY_REPLICA, {"region": primary})
    if key.manager is KeyManager.CLOUD:
        return Reason(ReasonCode.KEY_OF_SERVICE)
    if key.state is KeyState.PENDING_DELETION:
        return Reason(
            ReasonCode.KEY_GOING, {} if key.deletes_at is None else {"until": key.deletes_at.date().isoformat()}
        )
    if key.state is KeyState.DISABLED:
        return Reason(ReasonCode.KEY_STATE, {"state": key.state.value})
    return None


def _limit(key: EncryptionKey, rule: KeyRule) -> Reason | None:
    """What its vendor does not let be: any rotation, or one as often as is asked for."""
    if not key.rotatability.means - _ONLY_A_SUCCESSOR:
        facts: dict[str, FactValue] = {"spec": key.spec, "note": key.rotatability.note}
        return Reason(ReasonCode.KEY_NEVER_ROTATES, {**facts, **_cost(key)})
    shortest = key.rotatability.shortest_days
    asked = math.floor(rule.rotate_every / _DAY)
    if shortest is None or shortest <= asked or RotationMeans.AUTOMATIC not in rule.means:
        return None
    facts = {"shortest_days": shortest, "asked_days": asked, "note": key.rotatability.note}
    return Reason(ReasonCode.KEY_VENDOR_LIMIT, {**facts, **_cost(key)})


def _finding(key: EncryptionKey, rule: KeyRule | None, check: str, verdict: Verdict, reason: Reason) -> Finding:
    return Finding(
        guard=NAME,
        check=check,
        rule=rule.name if rule else "",
        rule_digest=rule.digest if rule else "",
        subject=key.ref,
        verdict=verdict,
        reason=reason,
        run_epoch=key.version,
        name=key.aliases[0].removeprefix("alias/") if key.aliases else "",
        instance_type=key.spec,
    )
