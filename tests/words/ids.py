"""Which messages the code names, by reading it: literal ids, families of ids, and the facts that go with them."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

PRODUCT = Path(__file__).parents[2] / "shared" / "costguard"
GROUP_OF = {
    "phrase": "phrases",
    "label": "labels",
    "in_digest": "digest",
    "in_backtest": "backtest",
    "on_keep_page": "keep_page",
    "about_check": "checks",
}
_FACT = re.compile(r"\{([a-z0-9_|]+)(?::([a-z_]+))?\}")
_PART = re.compile(r"\[[^\[\]]*\]")


@dataclass(frozen=True, slots=True)
class Call:
    """A call of a message function: what `names` matches is said; `facts` is None where they are unpacked."""

    where: str
    group: str
    names: str
    literal: bool
    facts: frozenset[str] | None


def named_facts(text: str) -> frozenset[str]:
    """The facts that a text names anywhere."""
    return frozenset(name for found in _FACT.finditer(text) for name in found[1].split("|"))


def needed_facts(text: str) -> Iterator[frozenset[str]]:
    """Of each fact outside brackets its names, one of which must be known."""
    yield from (frozenset(found[1].split("|")) for found in _FACT.finditer(_PART.sub("", text)))


def counted_with(text: str) -> frozenset[str]:
    """The messages of group `counts` that a text counts with."""
    return frozenset(found[2] for found in _FACT.finditer(text) if found[2])


def sources() -> Iterator[tuple[Path, ast.Module]]:
    """The product's modules, parsed."""
    for path in sorted(PRODUCT.rglob("*.py")):
        yield path, ast.parse(path.read_text(encoding="utf-8"))


def calls() -> Iterator[Call]:
    """Every call of a message function with an id, or with a text that an id is made of."""
    for path, tree in sources():
        functions = _functions(tree)
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in functions:
                yield from _said(path, node, functions[node.func.id])


def constants() -> frozenset[str]:
    """Every text in the product's code: a message may be named in a table and said elsewhere."""
    return frozenset(
        node.value
        for _, tree in sources()
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    )


def _functions(tree: ast.Module) -> Mapping[str, str]:
    """What message functions are called in a module, and the group that each says."""
    imported = (
        (alias.asname or alias.name, GROUP_OF[alias.name])
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module == "costguard.report.words.sentences"
        for alias in node.names
        if alias.name in GROUP_OF
    )
    own = (
        (node.name, GROUP_OF[node.name])
        for node in tree.body
        if isinstance(node, ast.FunctionDef) and node.name in GROUP_OF
    )
    return dict((*imported, *own))


def _said(path: Path, call: ast.Call, group: str) -> Iterator[Call]:
    facts = (
        None if any(each.arg is None for each in call.keywords) else frozenset(str(each.arg) for each in call.keywords)
    )
    where = f"{path.relative_to(PRODUCT)}:{call.lineno}"
    for choice in _choices(call.args[0]) if call.args else ():
        if isinstance(choice, ast.Constant) and isinstance(choice.value, str):
            yield Call(where, group, re.escape(choice.value), literal=True, facts=facts)
        elif isinstance(choice, ast.JoinedStr):
            parts = (
                re.escape(str(part.value)) if isinstance(part, ast.Constant) else "[a-z0-9_]+" for part in choice.values
            )
            yield Call(where, group, "".join(parts), literal=False, facts=facts)


def _choices(node: ast.expr) -> Iterator[ast.expr]:
    if isinstance(node, ast.IfExp):
        yield from (*_choices(node.body), *_choices(node.orelse))
    else:
        yield node
