"""A plan in a file: what `plan --out` writes, what `apply` reads, and every reason not to trust it."""

from __future__ import annotations

import hashlib
import json
import os
import re
import tempfile
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

from costguard.cases import Case, CaseStatus
from costguard.domain.errors import InvalidInputError, LedgerError, StalePlanError
from costguard.engine.ledger.codec import from_body, to_body
from costguard.engine.ledger.memory import Memory
from costguard.planning import Plan
from costguard.policy.model.policy import Policy
from costguard.report.plan.to_json import plan_json
from costguard.report.words.sentences import Language, clean

if TYPE_CHECKING:
    from costguard.report.plan import shapes

VALID_FOR = timedelta(hours=1)  # long enough to be read and agreed to, short enough that idle is still idle
_CLOCK_SKEW = timedelta(minutes=5)
_BY_HAND = re.compile(r"cli-[0-9a-f]{16}")
_BODY, _LANGUAGE = "plan", "language"
_FIRST_YEAR, _LAST_YEAR = 2000, 2999  # other years overflow once an offset or a wait is added
_MOST_DIGITS = 40  # of an amount; exact quotients have 28
_AT_MOST_BYTES = 100_000_000  # a plan for 10,000 accelerators takes 25 MB


def plan_hash(body: Mapping[str, Any]) -> str:
    """What binds a plan: the SHA-256 of its body as canonical JSON."""
    canonical = json.dumps(body, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    return hashlib.sha256(canonical.encode()).hexdigest()


def plan_answer(plan: Plan, language: Language) -> shapes.Plan:
    """The documented JSON of a plan."""
    return plan_json(plan, plan_hash=plan_hash(to_body(plan)), language=language)


def write_plan(path: Path, plan: Plan, language: Language) -> None:
    """The documented JSON, and beside it the plan's body, which `apply` compares with what follows then.

    The file is its owner's alone (0600), and is there as a whole or not at all: what stood in its place is replaced.

    Raises:
        InvalidInputError: the file cannot be written, or a link or something else than a file stands in its place.
    """
    document = {**plan_answer(plan, language), _LANGUAGE: language.value, _BODY: to_body(plan)}
    text = json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False) + "\n"
    try:
        if path.is_symlink() or (path.exists() and not path.is_file()):
            message = f"{path}: cannot be written: it is a link, or something else than a file"
            raise InvalidInputError(message)
        _replace(path, text)
    except (OSError, ValueError) as err:  # ValueError: a NUL in the name
        message = f"{clean(path)}: cannot be written: {getattr(err, 'strerror', None) or err}"
        raise InvalidInputError(message) from err


def _replace(path: Path, text: str) -> None:
    """Put a file in this place that nobody else may read or write, from its first byte on."""
    made, name = tempfile.mkstemp(prefix=".plan-", dir=path.parent)  # 0600, and never one that is there
    try:
        with os.fdopen(made, "w", encoding="utf-8") as file:
            file.write(text)
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink()
        raise


def read_plan(path: Path) -> Plan:
    """The plan in a file.

    Raises:
        InvalidInputError: nothing there, or not the file of a plan.
        StalePlanError: it was altered since it was written.
    """
    document = _document(path)
    body, language = document.pop(_BODY, None), document.pop(_LANGUAGE, None)
    if not isinstance(body, dict) or language not in [known.value for known in Language]:  # it may have no hash
        message = (
            f"{path}: not a plan that can be applied; write one with `costguard plan --out FILE` "
            "(what --json prints is for reading only)"
        )
        raise InvalidInputError(message)
    if not _bound(body, document.get("plan_hash")):
        message = f"{path}: the plan was altered: it does not match its plan_hash; plan again"
        raise StalePlanError(message)
    try:
        plan = from_body(Plan, body)
        shown = plan_answer(plan, Language(language)) if _believable(plan) else None
    except (LedgerError, ArithmeticError, AttributeError, ValueError, RecursionError) as err:
        message = f"{path}: this version of costguard cannot read the plan; plan again"
        raise StalePlanError(message) from err
    if shown != document:
        message = f"{path}: what it shows to people is not what its plan would do; plan again"
        raise StalePlanError(message)
    return plan


def check_still_true(plan: Plan, guards: tuple[str, ...], policy: Policy, memory: Memory, now: datetime) -> None:
    """Refuse a plan that no longer describes policy, ledger or time.

    Raises:
        StalePlanError: says what changed.
    """
    if plan.guard not in guards:
        message = f"this plan is not applied: it is one of guard {clean(plan.guard)!r}; there is {', '.join(guards)}"
        raise StalePlanError(message)
    if not _BY_HAND.fullmatch(plan.run_id):  # a scheduled run of that name would count as completed
        message = "this plan is not applied: its run id is not one that `costguard plan` gives; plan again"
        raise StalePlanError(message)
    if any(step.after.guard != plan.guard for step in plan.transitions):
        message = f"this plan is not applied: it has cases of another guard than {plan.guard}; plan again"
        raise StalePlanError(message)
    why = _outdated(plan, policy, now) or _overtaken(plan, memory, now)
    if why:
        message = f"this plan is not applied: {why}; nothing was changed, plan again"
        raise StalePlanError(message)


def _outdated(plan: Plan, policy: Policy, now: datetime) -> str:
    age = now - plan.planned_at
    if age > VALID_FOR:
        minutes, valid = age // timedelta(minutes=1), VALID_FOR // timedelta(minutes=1)
        return f"it was made {minutes} minutes ago, and a plan is valid for {valid} minutes"
    if age < -_CLOCK_SKEW:
        return f"it was made in the future, at {plan.planned_at.isoformat(timespec='minutes')}"
    if plan.policy_digest != policy.digest:
        return "the policy is not the one it was made under (another --policy, or the files changed)"
    return ""


def _overtaken(plan: Plan, memory: Memory, now: datetime) -> str:
    """What happened in the ledger since; a snooze set after the plan was made beats it."""
    known = memory.runs.get(plan.run_id)
    if known is not None and known.finished_at is not None:
        return f"it was applied already, at {known.finished_at.isoformat(timespec='minutes')}"
    for step in plan.transitions:
        if not _unmoved(step.before, step.after, memory):
            return f"the case of {step.after.subject} has moved since, by a run or by another plan"
    snoozed = memory.snoozes.active(now)
    for action in plan.due:
        snooze = snoozed.get(str(action.subject))
        if snooze is not None:
            return f"{action.subject} was snoozed until {snooze.until.isoformat(timespec='minutes')}"
    return ""


def _unmoved(before: Case | None, after: Case, memory: Memory) -> bool:
    current = memory.cases.get(after.key)
    if before is None:
        return current is None or current.status is CaseStatus.CLOSED
    return current is not None and (current.case_id, current.version) == (before.case_id, before.version)


def _bound(body: Mapping[str, Any], said: object) -> bool:
    """Whether `said` is the hash of `body`; what JSON cannot carry has none."""
    try:
        return plan_hash(body) == said
    except (ValueError, RecursionError):
        return False


def _believable(value: object) -> bool:
    """Whether every time is one of ours with its offset, and every amount is one of money.

    A hash is no signature: 1E+999999999 is one digit in a file, and a gigabyte once it is written out.
    """
    if isinstance(value, datetime):
        return value.utcoffset() is not None and _FIRST_YEAR <= value.year <= _LAST_YEAR
    if isinstance(value, Decimal):
        return (
            value.is_finite() and abs(value.adjusted()) < _MOST_DIGITS and len(value.as_tuple().digits) < _MOST_DIGITS
        )
    if is_dataclass(value):
        return all(_believable(getattr(value, each.name)) for each in fields(value))
    if isinstance(value, Mapping):
        return all(_believable(each) for each in value.values())
    return not isinstance(value, tuple) or all(_believable(each) for each in value)


def _document(path: Path) -> dict[str, Any]:
    try:
        raw = path.read_bytes() if path.stat().st_size <= _AT_MOST_BYTES else None
    except (OSError, ValueError) as err:  # ValueError: a NUL in the name
        message = f"{clean(path)}: cannot be read: {getattr(err, 'strerror', None) or err}"
        raise InvalidInputError(message) from err
    if raw is None:
        message = f"{path}: too large for a plan"
        raise InvalidInputError(message)
    try:
        document = json.loads(raw)
    except (ValueError, RecursionError) as err:
        message = f"{path}: not JSON ({err}); give the file that `costguard plan --out FILE` wrote"
        raise InvalidInputError(message) from err
    if not isinstance(document, dict):
        message = f"{path}: not the file of a plan; give the one that `costguard plan --out FILE` wrote"
        raise InvalidInputError(message)
    return document
