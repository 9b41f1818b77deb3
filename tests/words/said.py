"""Messages as tests name them: by id and facts, so that a test does not mind how they are worded."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from tests.words.catalogues import texts

from costguard.domain.reasons import FactValue
from costguard.report.words.sentences import Language, fill

_TOKEN = re.compile(r"\[[^\[\]]*\]|\{[^{}]*\}|\s+|[^\[\]{}\s]+")


def said(key: str, group: str = "phrases", language: Language = Language.EN, /, **facts: FactValue) -> re.Pattern[str]:
    """What finds a message in whatever was printed, wrapped or not: with these facts, and any others.

    A part in brackets must be there if it names a given fact, and may be there otherwise.
    """
    forms = texts(language.value)[group, key]
    return re.compile("|".join("".join(_pattern(form, facts, language)) for form in forms))


def says(text: str, key: str, group: str = "phrases", language: Language = Language.EN, /, **facts: FactValue) -> bool:
    """Whether a text says a message, with these facts."""
    return said(key, group, language, **facts).search(text) is not None


def _pattern(text: str, facts: Mapping[str, FactValue], language: Language) -> Iterator[str]:
    for token in _TOKEN.findall(text):
        if token[0] == "[":
            part = "".join(_pattern(token[1:-1], facts, language))
            yield f"(?:{part})" if any(name in facts for name in _names(token)) else f"(?:{part})?"
        elif token[0] == "{":
            given = any(name in facts for name in _names(token))
            yield r"\s+".join(map(re.escape, fill(token, facts, language).split())) if given else r"[\s\S]*?"
        else:
            yield r"\s+" if token.isspace() else re.escape(token)


def _names(token: str) -> list[str]:
    return [name for found in re.findall(r"\{([a-z0-9_|]+)", token) for name in found.split("|")]
