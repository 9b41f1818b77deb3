"""What is said to people who answered: one sentence for every code, in both languages."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from costguard.cases.answering import Weighed
from costguard.domain.answers import AnswerCode
from costguard.domain.reasons import FactValue
from costguard.domain.refs import ResourceRef
from costguard.report.plan.evidence import utc_words
from costguard.report.words.sentences import Language, phrase


def answer_words(weighed: Weighed, language: Language) -> str:
    """What an answer came to, and where it changed nothing that it did not."""
    return code_words(weighed.code, language, weighed.facts)


def code_words(code: AnswerCode, language: Language, facts: Mapping[str, FactValue] | None = None) -> str:
    """One code in words; facts that are not known are shown as unknown."""
    said = dict(facts or {})
    resource = str(said.get("resource", ""))
    said["what"] = said.get("name") or (ResourceRef.parse(resource).native_id if resource else "")
    if isinstance(until := said.get("until"), str):
        said["until"] = utc_words(datetime.fromisoformat(until))
    return phrase(f"answer_{code.value}", language, **said)
