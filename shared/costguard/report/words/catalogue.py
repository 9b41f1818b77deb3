"""The message catalogues: gettext's own, one a language, each read when something is first said in it.

A message is found by its group (gettext's context) and its id. What a language lacks is said in English; what English
lacks is nothing, and the caller shows the id: words never stop a run.
"""

from __future__ import annotations

import gettext
import io
import pkgutil
import struct
from functools import cache

ENGLISH = "en"


class _Nothing(gettext.NullTranslations):
    """Where a search ends; gettext itself would answer with the id, which cannot be told from a text."""

    def pgettext(self, context: str, message: str) -> str:  # noqa: ARG002 - as gettext calls it
        return ""

    def npgettext(self, context: str, msgid1: str, msgid2: str, n: int) -> str:  # noqa: ARG002 - as gettext calls it
        return ""


@cache
def _read(language: str) -> gettext.NullTranslations:
    try:
        found = gettext.GNUTranslations(io.BytesIO(_file(language)))
    except (OSError, struct.error, LookupError, ValueError):  # it is not there, is no catalogue, or is damaged
        return _Nothing()
    found.add_fallback(_Nothing())
    return found


def _file(language: str) -> bytes:
    return pkgutil.get_data(__name__, f"locale/{language}/LC_MESSAGES/costguard.mo") or b""


def template(group: str, key: str, language: str, count: int | None = None) -> str:
    """The template of a message, in the plural form of `count` where it has one; empty where nobody wrote it.

    Without a `count` the form for one is taken, as gettext itself does from Python 3.11 on.
    """
    number = 1 if count is None else count
    for catalogue in map(_read, dict.fromkeys((language, ENGLISH))):
        if found := catalogue.npgettext(group, key, key, number) or catalogue.pgettext(group, key):
            return found
    return ""
