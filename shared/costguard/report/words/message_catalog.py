"""What a language must provide: one book of words each, complete by test."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from costguard.domain.actions import Verb
from costguard.domain.findings import Verdict
from costguard.domain.reasons import ReasonCode
from costguard.domain.resources import AcceleratorKind, GapKind


@dataclass(frozen=True, slots=True)
class MessageCatalog:
    """All words of one language. Values are templates, see `words.fill`.

    `reasons` says what is the case, `fixes` what somebody can do about it (absent: nothing),
    `device_fixes` how devices of one family get a metric.
    `gap_subjects` and `gap_effects` are keyed by `Gap.what`; `risks` and `kept` by the words of `Saving`;
    `choices` by the value of any closed list (`open`, `held`, `spot`, …); `labels` title columns and fields;
    `phrases` are whole sentences of reports and notices.
    """

    space: str
    list_separator: str
    reasons: Mapping[ReasonCode, str]
    fixes: Mapping[ReasonCode, str]
    device_fixes: Mapping[AcceleratorKind, str]
    verdicts: Mapping[Verdict, str]
    verbs: Mapping[Verb, str]
    gap_kinds: Mapping[GapKind, str]
    gap_subjects: Mapping[str, str]
    gap_effects: Mapping[str, str]
    risks: Mapping[str, str]
    kept: Mapping[str, str]
    choices: Mapping[str, str]
    labels: Mapping[str, str]
    phrases: Mapping[str, str]
