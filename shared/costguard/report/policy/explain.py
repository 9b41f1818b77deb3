"""Why a policy treats one machine as it does: rules, owner, protections, exceptions, verdict and case."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from costguard.cases import Case
from costguard.domain.findings import Finding
from costguard.domain.reasons import Reason
from costguard.domain.resources import Gap, Instance
from costguard.policy.model.matching import Restriction, RuleMatch
from costguard.policy.model.ownership import OwnerSource
from costguard.policy.model.policy import Exemption
from costguard.policy.syntax.units import ladder
from costguard.report.json_values import gap_json, moment, reason_json, resource_json
from costguard.report.plan.evidence import utc_words
from costguard.report.tables import Column, Table, Tone
from costguard.report.words.sentences import Language, choice, clean, explain, phrase, verdict

if TYPE_CHECKING:
    from costguard.report.policy import shapes


@dataclass(frozen=True, slots=True)
class Explained:
    """Everything that decides about one machine. `snoozed_until` and `case` are the ledger's, where it has them.

    `rollout`: why it is treated more gently than its rule says, where the policy is rolled out by team and account.
    """

    instance: Instance
    at: datetime
    rules: tuple[RuleMatch, ...]
    finding: Finding
    owners: tuple[tuple[str, OwnerSource], ...]
    channel: str
    exceptions: tuple[Exemption, ...]
    case: Case | None = None
    snoozed_until: datetime | None = None
    rollout: Reason | None = None
    gaps: tuple[Gap, ...] = ()


def explained_table(told: Explained, language: Language = Language.EN) -> Table:
    """One row a rule, the least destructive first."""
    columns = tuple(
        Column(key, phrase(f"policy_explain_{key}", language)) for key in ("rule", "mode", "ladder", "applies", "why")
    )
    rows = tuple(
        (
            clean(each.rule.name),
            choice(each.rule.mode.name.lower(), language),
            ladder(each.rule.ladder),
            _applies(each, language),
            _why(each, language),
        )
        for each in told.rules
    )
    tones = tuple(Tone.GOOD if each.applied else Tone.WARNING for each in told.rules)
    return Table(phrase("policy_explain_rules", language), columns, rows, tones=tones)


def explained_head(told: Explained, language: Language = Language.EN) -> str:
    """Which machine it is."""
    machine = told.instance
    words = (machine.instance_type, machine.billing.value, machine.state.value)
    what = ", ".join((clean(words[0]), *(choice(word, language) for word in words[1:])))
    return f"{clean(machine.name) or machine.ref.native_id} ({clean(machine.ref)}): {what}"


def explained_lines(told: Explained, language: Language = Language.EN) -> Iterator[str]:
    """Verdict, owner, exceptions and case, one line each."""
    finding = told.finding
    words = f"{verdict(finding.verdict, language)}. {explain(finding.reason, language)}"
    yield phrase("policy_explain_verdict", language, words=words)
    line = [
        phrase("policy_explain_by", language, name=clean(name), source=_by(by, language)) for name, by in told.owners
    ]
    owner = line[0] if line else phrase("no_owner", language)
    yield phrase("policy_explain_owner", language, owner=owner, channel=clean(told.channel))
    if line[1:]:
        yield phrase("policy_explain_then", language, owners=", ".join(line[1:]))
    for each in told.exceptions:
        key = "policy_explain_exception" if each.expires_at > told.at else "policy_explain_expired"
        facts = {"reason": clean(each.reason), "approver": clean(each.approver), "until": utc_words(each.expires_at)}
        yield phrase(key, language, where=clean(each.where), **facts)
    if told.rollout is not None:
        yield phrase("policy_explain_rollout", language, why=explain(told.rollout, language))
    if told.snoozed_until is not None:
        yield phrase("policy_explain_snoozed", language, until=utc_words(told.snoozed_until))
    if told.case is not None:
        status, why = choice(told.case.status.value, language), explain(told.case.reason, language)
        yield phrase("policy_explain_case", language, case=told.case.case_id, status=status, why=why)


def explained_json(told: Explained, language: Language = Language.EN) -> shapes.PolicyExplain:
    """The document of `costguard policy explain --json`."""
    finding, machine = told.finding, told.instance
    return {
        "schema": 1,
        "at": moment(told.at),
        "subject": resource_json(machine.ref),
        "name": clean(machine.name),
        "instance_type": machine.instance_type,
        "billing": machine.billing.value,
        "state": machine.state.value,
        "rules": [
            {
                "name": each.rule.name,
                "mode": each.rule.mode.name.lower(),
                "ladder": ladder(each.rule.ladder),
                "applies": each.applies,
                "applied": each.applied,
                "asked": [_asked_json(asked) for asked in each.asked],
                "excepted": [[_asked_json(asked) for asked in one] for one in each.excepted],
            }
            for each in told.rules
        ],
        "verdict": finding.verdict.value,
        "rule": finding.rule or None,
        **reason_json(finding.reason, language),
        "owners": [{"name": clean(name), "source": source.value} for name, source in told.owners],
        "channel": told.channel or None,
        "exceptions": [
            {
                "where": each.where,
                "owner": each.owner,
                "reason": each.reason,
                "approver": each.approver,
                "expires": moment(each.expires_at),
                "in_force": each.expires_at > told.at,
            }
            for each in told.exceptions
        ],
        "rollout": None if told.rollout is None else reason_json(told.rollout, language),
        "snoozed_until": moment(told.snoozed_until) if told.snoozed_until is not None else None,
        "case": None if told.case is None else _case_json(told.case, language),
        "gaps": [gap_json(gap, language) for gap in told.gaps],
    }


def _case_json(case: Case, language: Language) -> shapes.ExplainedCase:
    return {"case_id": case.case_id, "status": case.status.value, **reason_json(case.reason, language)}


def _asked_json(asked: Restriction) -> shapes.Asked:
    return {"key": asked.key, "wanted": asked.wanted, "found": clean(asked.found), "holds": asked.holds}


def _applies(each: RuleMatch, language: Language) -> str:
    key = "policy_explain_applied" if each.applied else "policy_explain_yields" if each.applies else "policy_explain_no"
    return phrase(key, language)


def _why(each: RuleMatch, language: Language) -> str:
    """What does not hold, or where all does what was asked."""
    if each.excepted:
        which = " | ".join(", ".join(f"{asked.key}={asked.wanted}" for asked in one) for one in each.excepted)
        return phrase("policy_explain_excepted", language, which=clean(which))
    told = [asked for asked in each.asked if not asked.holds] or each.asked
    if not told:
        return phrase("policy_explain_all", language)
    return "; ".join(_asked(asked, language) for asked in told)


def _asked(asked: Restriction, language: Language) -> str:
    facts = {"what": asked.key, "wanted": clean(asked.wanted), "found": clean(asked.found)}
    return phrase("policy_explain_holds" if asked.holds else "policy_explain_fails", language, **facts)


def _by(source: OwnerSource, language: Language) -> str:
    return phrase(f"policy_explain_source_{source.name.lower()}", language)
