"""A policy file in one layout: comments, order, quotes and every value stay. Imported only by `fmt`. Pure."""

from __future__ import annotations

import re
from io import StringIO

from ruamel.yaml import YAML

from costguard.policy.syntax.problems import invalid
from costguard.policy.syntax.yaml12 import read_yaml
from costguard.policy.syntax.yaml_nodes import YamlDocument, plain

_NEVER_FOLDED = 1_000_000
_REMARK = re.compile(r"(?:^|\s)(#.*)")
_ROUNDS = 3  # a layout is stable after the second at most


def formatted(path: str, text: str) -> str | None:
    """The file in its layout; None where no layout is found that says the same and stays.

    Two spaces a level, lists indented below their key, no spaces at the ends of lines, one line break at the end.

    Raises:
        InvalidInputError: it is not the YAML that policies are written in.
    """
    before = read_yaml(path, text)
    if before.root is None or before.problems:
        raise invalid(before.problems)
    now, begins = before.text, before.root.mark
    # in brackets from its first letter on, such as an empty list: there is nothing to indent
    bracketed = now.split("\n")[begins.line - 1][begins.column - 1] in "[{"
    for _ in range(_ROUNDS):
        laid_out = _trimmed(now) if bracketed else _laid_out(now)
        if laid_out == now:
            kept = _means_the_same(before, read_yaml(path, now)) and _remarks(before.text) == _remarks(now)
            return now if kept else None
        now = laid_out
    return None


def _laid_out(text: str) -> str:
    yaml = YAML(typ="rt")
    yaml.preserve_quotes = True
    yaml.width = _NEVER_FOLDED
    yaml.indent(mapping=2, sequence=4, offset=2)
    yaml.allow_unicode = True
    yaml.brace_single_entry_mapping_in_flow_sequence = True  # as everybody writes it: [{stop: {wait: 24h}}]
    out = StringIO()
    tree = yaml.load(text)
    if isinstance(tree, list):
        yaml.indent(mapping=2, sequence=2, offset=0)  # a file that is a list begins at the margin
    yaml.dump(tree, out)
    return _trimmed(out.getvalue())


def _trimmed(text: str) -> str:
    return "\n".join(line.rstrip() for line in text.split("\n")).rstrip("\n") + "\n"


def _remarks(text: str) -> list[str]:
    """Everything that may be a comment: a list in brackets over several lines loses those within it when laid out."""
    return sorted(found.strip() for line in text.split("\n") for found in _REMARK.findall(line))


def _means_the_same(before: YamlDocument, after: YamlDocument) -> bool:
    if before.root is None or after.root is None or after.problems:
        return False
    return repr(plain(before.root)) == repr(plain(after.root))  # 1 and True are equal, and not the same
