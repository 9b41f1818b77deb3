"""The sentences of reports and digests, in each language."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from costguard.domain.reasons import FactValue
from costguard.report.charts.values import Said
from costguard.report.words.en.digest import DIGEST as ENGLISH
from costguard.report.words.sentences import MAX_OWN_TEXT, Language, fill
from costguard.report.words.zh.digest import DIGEST as CHINESE

PHRASES: Mapping[Language, Mapping[str, str]] = MappingProxyType({Language.EN: ENGLISH, Language.ZH: CHINESE})


def say(key: str, language: Language, /, **facts: FactValue) -> str:
    """A sentence of a report or digest, filled."""
    return fill(PHRASES[language][key], facts, limit=MAX_OWN_TEXT)


def said(key: str, language: Language, /, **facts: FactValue) -> Said:
    """The same as a chart's label: in English where no font can draw it."""
    return Said(say(key, language, **facts), say(key, Language.EN, **facts))
