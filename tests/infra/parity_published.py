"""Our Terraform held against what a provider publishes: each resource's arguments, nested blocks and attributes.

`published/*.json` holds names and nothing else, taken from the provider's own pages; each says which page, and which
edition of the provider. A provider's pages lag and lead its code, so this shows what is misspelt, not what works.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.infra.parity_hcl import Block, read_folder

ROOT = Path(__file__).parents[2]
_META = frozenset({"for_each", "count", "provider", "depends_on"})
_OWN_BLOCKS = frozenset({"lifecycle", "timeouts"})
_SECTIONS = ("resource", "data")


@dataclass(frozen=True, slots=True)
class Cloud:
    """One provider's modules: `prefix` begins the names of its resources."""

    folder: str
    prefix: str
    modules: tuple[str, ...] = (".", "member")


def against_published(cloud: Cloud) -> list[str]:
    """Whatever its files name that the provider's pages do not, and required arguments that are missing."""
    published = json.loads((Path(__file__).parent / "published" / f"{cloud.folder}.json").read_text(encoding="utf-8"))
    problems: list[str] = []
    used: set[tuple[str, str]] = set()
    for module in cloud.modules:
        folder = ROOT / "infra" / cloud.folder / module
        files = read_folder(folder)
        if not files:
            problems.append(f"{folder.relative_to(ROOT)} has no Terraform")
        for name, file in files.items():
            where = (folder / name).relative_to(ROOT).as_posix()
            for block in file.blocks:
                if block.kind in _SECTIONS:
                    used.add((block.kind, block.labels[0]))
                    problems += _of_resource(published, block, where)
            text = (folder / name).read_text(encoding="utf-8")
            problems += _references(published, cloud.prefix, text, where)
    recorded = {(section, name) for section in _SECTIONS for name in published[section]}
    problems += [f"published/{cloud.folder}.json: {name} is used nowhere" for _, name in sorted(recorded - used)]
    return problems


def _of_resource(published: Mapping[str, Any], block: Block, where: str) -> Iterator[str]:
    kind, (name, label) = block.kind, block.labels
    entry = published[kind].get(name)
    if entry is None:
        yield f"{where}:{block.line}: {name} is not in {published['provider']} {published['version']}"
        return
    yield from _of_block(entry, block, f"{where}:{block.line}: {name}.{label}")


def _of_block(entry: Mapping[str, Any], block: Block, where: str) -> Iterator[str]:
    blocks = entry.get("blocks", {})
    given = {inner.kind for inner in block.blocks if inner.kind not in _OWN_BLOCKS}
    named = {name for name in block.arguments if name not in _META}
    for name in sorted((named | given) - set(entry["arguments"])):
        yield f"{where} has no argument {name}"
    for name in sorted((named | given) & set(entry.get("deprecated", ()))):
        yield f"{where}: {name} is deprecated"
    for name in sorted(named & set(blocks)):
        yield f"{where}: {name} is a block, and is written as an argument"
    for name in sorted((given & set(entry["arguments"])) - set(blocks)):
        yield f"{where}: {name} is an argument, and is written as a block"
    for name in sorted(set(entry.get("required", ())) - named - given):
        yield f"{where} lacks {name}, which is required"
    for inner in block.blocks:
        if inner.kind in blocks:
            yield from _of_block(blocks[inner.kind], inner, f"{where} {inner.kind}")


def _references(published: Mapping[str, Any], prefix: str, text: str, where: str) -> Iterator[str]:
    """`type.label[key].attribute`, wherever it stands in a value."""
    code = "\n".join(line.split(" # ")[0] for line in text.splitlines() if not line.lstrip().startswith("#"))
    for found in re.finditer(rf"(data\.)?\b({prefix}_\w+)\.\w+(?:\[[^\]]*\])?\.(\w+)", code):
        section, name, attribute = ("data" if found[1] else "resource"), found[2], found[3]
        entry = published[section].get(name)
        if entry is not None and attribute not in {*entry["arguments"], *entry["attributes"]}:
            yield f"{where}: {name} has no {attribute}"
