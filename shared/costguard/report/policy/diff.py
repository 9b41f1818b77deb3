"""What a changed policy means, as tables, JSON and Markdown for a pull request."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from costguard.policy.diff.differences import Difference, Direction
from costguard.report.tables import Column, Table, Tone
from costguard.report.words.sentences import Language, clean, phrase

if TYPE_CHECKING:
    from costguard.report.policy import shapes

_COLUMNS = ("direction", "section", "entry", "key", "before", "after")
_ORDER = (Direction.LOOSER, Direction.TIGHTER, Direction.OTHER)  # what has to be looked at first
_TONES = {Direction.LOOSER: Tone.BAD, Direction.TIGHTER: Tone.GOOD, Direction.OTHER: Tone.WARNING}


def diff_table(differences: Iterable[Difference], language: Language = Language.EN) -> Table:
    """One row a difference, what loosens first."""
    found = _sorted(differences)
    columns = tuple(Column(key, phrase(f"policy_diff_{key}", language)) for key in _COLUMNS)
    rows = tuple(_row(each, language) for each in found)
    return Table(phrase("policy_diff", language), columns, rows, tones=tuple(_TONES[each.direction] for each in found))


def diff_summary(differences: Sequence[Difference], language: Language = Language.EN) -> str:
    """How many loosen, tighten, and do neither."""
    if not differences:
        return phrase("policy_diff_same", language)
    count = Counter(each.direction for each in differences)
    return phrase(
        "policy_diff_total",
        language,
        looser=count[Direction.LOOSER],
        tighter=count[Direction.TIGHTER],
        other=count[Direction.OTHER],
    )


def diff_json(differences: Iterable[Difference], old_digest: str, new_digest: str) -> shapes.PolicyDiff:
    """The document of `costguard policy diff --json`."""
    found = _sorted(differences)
    return {
        "schema": 1,
        "old_digest": old_digest,
        "new_digest": new_digest,
        "same": not found,
        "loosens": any(each.direction is Direction.LOOSER for each in found),
        "differences": [
            {
                "section": each.section,
                "name": each.name,
                "key": each.key,
                "before": each.before,
                "after": each.after,
                "direction": each.direction.value,
            }
            for each in found
        ],
    }


def diff_markdown(differences: Sequence[Difference], language: Language = Language.EN) -> str:
    """A comment for the pull request: the sum first, then one table."""
    return "\n".join(_markdown_lines(differences, language)) + "\n"


def _markdown_lines(differences: Sequence[Difference], language: Language) -> Iterator[str]:
    table = diff_table(differences, language)
    yield f"### {phrase('policy_diff_heading', language)}"
    yield ""
    yield diff_summary(differences, language)
    if not table.rows:
        return
    yield ""
    yield from markdown_table(table)
    if any(each.direction is Direction.LOOSER for each in differences):
        yield ""
        yield f"> {phrase('policy_diff_warning', language)}"


def markdown_table(table: Table) -> Iterator[str]:
    """The rows as a table of Markdown; what stands in them is text, never markup."""
    yield "| " + " | ".join(markdown_cell(column.title) for column in table.columns) + " |"
    yield "|" + "|".join("---:" if column.numeric else "---" for column in table.columns) + "|"
    for row in table.rows:
        yield "| " + " | ".join(map(markdown_cell, row)) + " |"


def markdown_cell(text: str) -> str:
    """Text as it is, in a cell."""
    plain = text.replace("\\", "\\\\").replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    for sign in "`*_[]|~#@!":
        plain = plain.replace(sign, f"&#{ord(sign)};" if sign == "@" else f"\\{sign}")
    return plain


def _sorted(differences: Iterable[Difference]) -> list[Difference]:
    return sorted(differences, key=lambda each: _ORDER.index(each.direction))  # stable: sections stay together


def _row(each: Difference, language: Language) -> tuple[str, ...]:
    if each.key:
        key = phrase("policy_diff_falls_to", language) if each.key == "falls_to" else each.key
    else:
        key = phrase("policy_diff_removed" if each.before else "policy_diff_added", language)
    unset = phrase("policy_diff_unset", language)
    before, after = ((clean(value) or (unset if each.key else "")) for value in (each.before, each.after))
    if each.key == "falls_to":
        before = ""
    return (
        phrase(f"policy_diff_{each.direction.value}", language),
        each.section,
        clean(each.name),
        key,
        before,
        after,
    )
