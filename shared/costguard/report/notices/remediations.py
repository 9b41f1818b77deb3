"""What people are told of a setting that is not as the policy asks: that it will be changed, was, or why not."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import Enum

from costguard.domain.keys import CostKind, RotationCost
from costguard.domain.reasons import FactValue, Reason
from costguard.domain.refs import ResourceRef
from costguard.domain.remediations import FINAL, Remediation, RemediationKind
from costguard.report.notices.machines import Notice, local_time
from costguard.report.words.sentences import Language, clean, explain, label, phrase

_SAID_OF = {
    RemediationKind.ROTATE_KEY: "mend_old_material",
    RemediationKind.SET_ROTATION: "mend_old_material",
    RemediationKind.CREATE_SUCCESSOR: "mend_new_key",
    RemediationKind.MOVE_ALIAS: "mend_old_key",
}
"""What is to be known about a change of a key."""
COST, MONTHLY = "cost", "cost_monthly"
"""Facts of a finding: the kind of cost, and the list price of a key a month."""


class RemediationWord(str, Enum):
    """What is said. `TOLD`: the policy allows nothing to be done about it. `REFUSED`: its cloud did not let it be."""

    TOLD = "told"
    COMES = "comes"
    DONE = "done"
    OVER = "over"
    HELD = "held"
    REFUSED = "refused"


@dataclass(frozen=True, slots=True)
class RemediationFacts:
    """What a notice about one setting says. `due_at` is the earliest moment; `action_id` what an undo would name."""

    word: RemediationWord
    subject: ResourceRef
    name: str
    owner: str
    rule: str
    reason: Reason | None
    mend: Remediation | None
    due_at: datetime | None = None
    action_id: str = ""
    zone: str = "UTC"


_WITH_REASON = frozenset({RemediationWord.COMES, RemediationWord.DONE, RemediationWord.REFUSED})
"""Whose title does not have it."""


def mend_words(mend: Remediation | None, language: Language = Language.EN) -> str:
    """What a mend does, as part of a sentence; empty where there is none."""
    if mend is None:
        return ""
    said = {name: clean(value) for name, value in mend.parameters.items()}
    return phrase(f"mend_{mend.kind.value}", language, **said)


def subject_words(subject: ResourceRef, language: Language = Language.EN) -> str:
    """What kind of thing it is, for the beginning of a sentence."""
    return phrase(f"mend_subject_{subject.kind}", language)


def remediation_notice(facts: RemediationFacts, language: Language = Language.EN) -> Notice:
    """The notice that these facts make."""
    why = explain(facts.reason, language) if facts.reason is not None else ""
    title = phrase(
        f"mend_{facts.word.value}",
        language,
        what=subject_words(facts.subject, language),
        name=clean(facts.name) or clean(facts.subject.native_id),
        mend=mend_words(facts.mend, language),
        why=why,
    )
    due = local_time(facts.due_at, facts.zone, language) if facts.due_at is not None else ""
    fields = (
        (label("why", language), why if facts.word in _WITH_REASON else ""),
        (label("resource", language), str(facts.subject)),
        (label("owner", language), clean(facts.owner)),
        (label("rule", language), clean(facts.rule)),
        (label("next", language), phrase("mend_when", language, at=due) if due else ""),
    )
    return Notice(
        title,
        tuple(pair for pair in fields if pair[1]),
        tuple(_closing(facts, language)),
        ": " if language is Language.EN else "：",
    )


def _closing(facts: RemediationFacts, language: Language) -> list[str]:
    lines = []
    if facts.mend is not None and facts.word in {RemediationWord.COMES, RemediationWord.DONE}:
        known = _SAID_OF.get(facts.mend.kind)
        if known is not None:
            lines.append(phrase(known, language))
        elif facts.mend.kind in FINAL:
            lines.append(phrase("mend_final", language))
        if facts.mend.kind not in FINAL and facts.word is RemediationWord.DONE and facts.action_id:
            lines.append(phrase("mend_undo", language, action_id=facts.action_id))
    if facts.word is RemediationWord.REFUSED:
        lines.append(phrase("mend_refused_again", language))
    note = facts.mend.parameters.get("note", "") if facts.mend is not None else ""
    if facts.word is RemediationWord.COMES and note:
        lines.append(phrase("mend_note", language, note=clean(note)))
    cost = told_cost_words(facts.reason.facts, language) if facts.reason is not None else ""
    if facts.word is RemediationWord.COMES and cost:
        lines.append(phrase("mend_cost", language, cost=cost))
    if facts.word is RemediationWord.COMES:
        lines.append(phrase("mend_keep", language, subject=str(facts.subject)))
    return lines


def rotation_cost_words(cost: RotationCost, language: Language = Language.EN) -> str:
    """What a rotation costs, or that it is not known."""
    return _cost_words(cost.kind.value, "" if cost.monthly is None else str(cost.monthly), language)


def told_cost_words(facts: Mapping[str, FactValue], language: Language = Language.EN) -> str:
    """The same of what a finding says; empty where it says nothing of a rotation's cost."""
    kind = str(facts.get(COST, ""))
    return (
        _cost_words(kind, clean(facts.get(MONTHLY, "")), language) if kind in {each.value for each in CostKind} else ""
    )


def _cost_words(kind: str, monthly: str, language: Language) -> str:
    return phrase(f"key_cost_{kind}", language, monthly=monthly)
