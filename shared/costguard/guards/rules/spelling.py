"""How selectors compare words and tags. Pure.

What brings something under a rule compares exactly: there a tag that merely looks alike must not count. What spares
something compares tags whatever their case, separators or width.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping
from fnmatch import fnmatchcase
from functools import lru_cache

_SEPARATORS = frozenset("./:")
_SEPARATING = frozenset({"Pd", "Pc", "Zs", "Cc"})  # dashes, underscores, spaces of every width, tabs and line ends
_WILD = frozenset("*?")
_CLASS = "["


@lru_cache(maxsize=8192)  # a fleet has few tag keys, and every machine is compared with every exception
def folded(text: str) -> str:
    """One form for every case and width; spaces at its ends are gone."""
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold()).strip()


@lru_cache(maxsize=8192)
def spelling(text: str) -> str:
    """One form for `Do-Not-Stop`, `do_not_stop`, `do/not/stop`, `doNotStop` and full-width letters."""
    return "".join(
        letter
        for letter in folded(text)
        if letter not in _SEPARATORS and unicodedata.category(letter) not in _SEPARATING
    )


def any_glob(patterns: tuple[str, ...] | None, *values: str) -> bool:
    """Whether one of the values matches one of the globs, with case; None does not restrict, an empty tuple does."""
    return patterns is None or any(fnmatchcase(value, pattern) for value in values for pattern in patterns)


def tags_match(tags: Mapping[str, str], wanted: Mapping[str, str] | None) -> bool:
    """Whether every wanted tag is there with a value that matches, with case; None does not restrict, `{}` does."""
    return wanted is None or (
        bool(wanted) and all(key in tags and fnmatchcase(tags[key], pattern) for key, pattern in wanted.items())
    )


def tags_spare(tags: Mapping[str, str], wanted: Mapping[str, str]) -> bool:
    """Whether every wanted tag is there in some spelling with a value that matches; without any wanted, none is."""
    return bool(wanted) and all(
        any(_same_key(key, name) and value_spares(value, pattern) for key, value in tags.items())
        for name, pattern in wanted.items()
    )


def value_spares(value: str, pattern: str) -> bool:
    """Whether a value matches a glob as written, without regard to case, or without separators on either side.

    Separators stay where they mean something to the glob: in one with a class such as `[a-c]`, and in one that would be
    nothing but wildcards without them (`*-*` is not `*`).
    """
    if fnmatchcase(value, pattern) or fnmatchcase(folded(value), folded(pattern)):
        return True
    bare = spelling(pattern)
    return _CLASS not in pattern and bool(set(bare) - _WILD) and fnmatchcase(spelling(value), bare)


def spares_no_less(kept: Mapping[str, str] | None, wider: Mapping[str, str] | None) -> bool:
    """Whether all that the wanted tags `kept` spare is certainly spared by `wider` too; None asks for no tag."""
    if wider is None or kept == {}:
        return True
    if not wider or kept is None:
        return False
    return all(
        any(_same_key(key, name) and _covers(value, pattern) for key, value in kept.items())
        for name, pattern in wider.items()
    )


def _same_key(one: str, other: str) -> bool:
    return one == other or (spelling(one) == spelling(other) != "")


def _covers(kept: str, wider: str) -> bool:
    """The same pattern, anything at all, or one plain value that the wider one matches however it is written."""
    if wider in {kept, "*"}:
        return True
    bare, plain = spelling(wider), spelling(kept)
    if set("?[") & {*wider, *kept} or not set(bare) - _WILD:
        return False  # `?` stands for a separator, too, that another spelling lacks
    return plain == bare != "" or ("*" not in kept and fnmatchcase(plain, bare))
