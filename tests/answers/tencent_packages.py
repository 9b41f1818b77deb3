"""Tencent Cloud's answers as its own command line has them: `api.json` of tccli, and of the international tccli."""

from __future__ import annotations

import json
import re
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from cloudstand.tencent.core.actions import PRODUCTS

_FOLDERS = {"as": "autoscaling"}  # `as` is a word of Python
_LISTED = re.compile(r"<li>\s*(?:<code>|`)?([A-Za-z0-9_.-]+)(?:</code>|`)?\s*[:：]")
_LISTS = ("取值范围", "枚举值", "取值为", "Valid values", "Value range", "Enumerated values")


def published(folder: Path) -> dict[str, Any]:
    """The shapes of every action's answer, by product; `international` has what differs on the other site."""
    china, elsewhere = _wheel(folder, "tccli"), _wheel(folder, "tccli_intl_en")
    products = {}
    for service, product in PRODUCTS.items():
        name = f"{service} {product.version}"
        at_home = _answers(_api(china, service, product.version), product.actions)
        abroad = _answers(_api(elsewhere, service, product.version), product.actions)
        products[name] = {
            **at_home,
            "international": {
                "missing": sorted(at_home["answers"].keys() - abroad["answers"].keys()),
                "objects": {
                    key: each for key, each in abroad["objects"].items() if each != at_home["objects"].get(key)
                },
            },
        }
    return {"source": f"{china.stem}, {elsewhere.stem}: api.json of each product", "products": products}


def _wheel(folder: Path, package: str) -> Path:
    (found,) = folder.glob(f"{package}-*.whl")
    return found


def _api(wheel: Path, service: str, version: str) -> Mapping[str, Any]:
    path = f"tccli/services/{_FOLDERS.get(service, service)}/v{version.replace('-', '')}/api.json"
    with zipfile.ZipFile(wheel) as opened:
        found: Mapping[str, Any] = json.loads(opened.read(path))
    return found


def _answers(api: Mapping[str, Any], wanted: Mapping[str, Any]) -> dict[str, Any]:
    answers = {name: api["actions"][name]["output"] for name in wanted if name in api["actions"]}
    objects: dict[str, Any] = {}
    left = list(answers.values())
    while left:
        name = left.pop()
        if name not in objects:
            members = api["objects"][name]["members"]
            objects[name] = {each["name"]: _shape(each) for each in members if each["name"] != "RequestId"}
            left += [
                each["member"] for each in members if each["type"] != "string" and each["member"] in api["objects"]
            ]
    return {"answers": answers, "objects": objects}


def _shape(member: Mapping[str, Any]) -> Any:
    null = member.get("value_allowed_null") or "null" in member.get("document", "")
    kind, values = member["member"], "".join(_values(member))
    if member["type"] == "list":
        return [f"{kind}{values}", None] if null else [f"{kind}{values}"]
    return f"{kind}{'?' if null else ''}{values}"


def _values(member: Mapping[str, Any]) -> Iterator[str]:
    """The values that its description lists, where it says that those are the values."""
    described = member.get("document", "")
    if any(word in described for word in _LISTS) and member["type"] in {"string", "int", "list"}:
        found = dict.fromkeys(_LISTED.findall(described))
        if len(found) > 1:
            yield f" = {' | '.join(found)}"
