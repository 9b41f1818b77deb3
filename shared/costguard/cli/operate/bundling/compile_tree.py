"""Compiles files for the interpreter that runs it; given to that interpreter by path, so it imports nothing of ours.

Reads a JSON document from standard input: `root`, the folder; `prefix`, where the host will have it; `files`, paths
below the root; `bare`, those among them that are compiled without their docstrings, a seventh of what they compile
to. Tells, as JSON, how each compiled file is called; files in another Python's syntax are left out.
"""

from __future__ import annotations

import ast
import json
import marshal
import sys
from importlib.util import MAGIC_NUMBER, cache_from_source, source_hash
from pathlib import Path

_NEVER_CHECKED = (0b01).to_bytes(4, "little")  # PEP 552: by the source's hash, which is not compared when it is loaded
_WITH_DOCSTRINGS = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


def compiled(source: bytes, shown: str, *, bare: bool) -> bytes:
    """What Python keeps of a module; assertions stay in any case."""
    tree = ast.parse(source, shown)
    if bare:
        for node in ast.walk(tree):
            if isinstance(node, _WITH_DOCSTRINGS) and ast.get_docstring(node, clean=False) is not None:
                node.body = node.body[1:] or [ast.copy_location(ast.Pass(), node.body[0])]
    code = compile(tree, shown, "exec", dont_inherit=True, optimize=0)
    return MAGIC_NUMBER + _NEVER_CHECKED + source_hash(source) + marshal.dumps(code)


def main() -> None:
    """One process and one order for all."""
    asked = json.load(sys.stdin)
    root, bare = Path(asked["root"]), frozenset(asked["bare"])
    made = {}
    for name in asked["files"]:
        path = root / name
        try:
            body = compiled(path.read_bytes(), asked["prefix"] + "/" + name, bare=name in bare)
        except (SyntaxError, ValueError):
            continue
        target = Path(cache_from_source(str(path), optimization=""))
        target.parent.mkdir(exist_ok=True)
        target.write_bytes(body)
        made[name] = target.relative_to(root).as_posix()
    json.dump(made, sys.stdout)


if __name__ == "__main__":
    main()
