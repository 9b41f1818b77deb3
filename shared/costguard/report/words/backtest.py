"""The sentences of back-tests, in each language."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from costguard.domain.reasons import FactValue
from costguard.report.words.en.backtest import BACKTEST as ENGLISH
from costguard.report.words.sentences import MAX_OWN_TEXT, Language, fill
from costguard.report.words.zh.backtest import BACKTEST as CHINESE

PHRASES: Mapping[Language, Mapping[str, str]] = MappingProxyType({Language.EN: ENGLISH, Language.ZH: CHINESE})


def say(key: str, language: Language, /, **facts: FactValue) -> str:
    """A sentence of a back-test, filled."""
    return fill(PHRASES[language][key], facts, limit=MAX_OWN_TEXT)
