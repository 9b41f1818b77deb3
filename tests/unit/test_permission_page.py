"""docs/permissions.md shows the documents as the code makes them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from costguard.providers.alibaba.iam import policy_documents as alibaba
from costguard.providers.aws.iam import policy_documents as aws
from costguard.providers.kit.iam.policy_documents import EVERYWHERE, PURPOSES, Document, Narrowing
from costguard.providers.tencent.iam import policy_documents as tencent

PAGE = Path(__file__).parents[2] / "docs" / "permissions.md"
MADE: dict[str, Callable[[Narrowing], dict[str, Document]]] = {
    "aws": aws.documents,
    "alibaba": alibaba.documents,
    "tencent": tencent.documents,
}

_MOST_KEYS_SHOWN = 6  # of one statement


def table(documents: Mapping[str, Document]) -> str:
    """One cloud's documents as a Markdown table: what each is for, what it allows, and on what."""
    lines = ["| document | for the role that | allows | on |", "|---|---|---|---|"]
    for name, document in documents.items():
        if name == "deny":
            continue
        begins = f"| `{name}` | {PURPOSES[name].why} |"
        for statement in document.get("Statement") or document["statement"]:
            told = {key.lower(): value for key, value in statement.items()}
            where = " ".join(f"`{one}`" for one in _listed(told["resource"]))
            lines.append(f"{begins} {_by_service(told['action'])} | {where}{_when(told)} |")
            begins = "| | |"
    return "\n".join(lines) + "\n"


def denials(document: Document) -> str:
    """What `deny` denies, as a Markdown list."""
    lines = []
    for statement in document.get("Statement") or document["statement"]:
        told = {key.lower(): value for key, value in statement.items()}
        but = ", but those that are named" if "notresource" in told else ""
        lines.append(f"* {_by_service(told['action'])}{_when(told)}{but}")
    return "\n".join(lines) + "\n"


def _when(told: Mapping[str, Any]) -> str:
    keys = [f"`{key}`" for conditions in told.get("condition", {}).values() for key in conditions]
    more = [f"{len(keys) - _MOST_KEYS_SHOWN} more"] if len(keys) > _MOST_KEYS_SHOWN else []
    return f", by {', '.join([*keys[:_MOST_KEYS_SHOWN], *more])}" if keys else ""


def _by_service(actions: str | list[str]) -> str:
    """`ec2:` once for all of its actions."""
    found: dict[str, list[str]] = {}
    for action in _listed(actions):
        service, _, name = action.rpartition(":")
        found.setdefault(service, []).append(f"`{name}`")
    return "; ".join(f"{service}: {', '.join(names)}" for service, names in found.items())


def _listed(value: str | list[str]) -> list[str]:
    return [value] if isinstance(value, str) else value


@pytest.mark.parametrize("cloud", MADE)
def test_the_page_shows_every_document(cloud: str) -> None:
    """Where this fails: put what it expects between the marks of the page."""
    text, documents = PAGE.read_text(encoding="utf-8"), MADE[cloud](EVERYWHERE)
    for mark, wanted in ((cloud, table(documents)), (f"deny {cloud}", denials(documents["deny"]))):
        assert text.partition(f"<!-- {mark} -->\n")[2].partition(f"<!-- end of {mark} -->")[0] == wanted
