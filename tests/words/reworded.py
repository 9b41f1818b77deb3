"""`python -m pytest -p tests.words.reworded`: a `^` before every English message, as if each had been reworded.

A test that fails names a sentence where it could name a message (`tests.words.said`). Golden files and transcripts are
made anew by one command each, and are no such tests.
"""

from __future__ import annotations

from tests.words.catalogues import compiled, packed, read

from costguard.report.words import catalogue

MARK = "^"
_AS_THEY_ARE = {"joins"}  # what stands between words is no wording


def reworded() -> bytes:
    """The English catalogue, compiled, with the mark."""
    marked = read(catalogue.ENGLISH)
    for message in marked:
        if message.id and message.context not in _AS_THEY_ARE:
            texts = message.string
            message.string = tuple(MARK + text for text in texts) if isinstance(texts, tuple) else f"{MARK}{texts}"
    return packed(marked)


_marked = reworded()
catalogue._file = lambda language: _marked if language == catalogue.ENGLISH else compiled(language)  # noqa: SLF001
