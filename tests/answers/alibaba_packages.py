"""Alibaba Cloud's answers as its own SDK (V2) has them: the classes `…ResponseBody` and what their fields are named."""

from __future__ import annotations

import ast
import re
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from cloudstand.alibaba.tables import PRODUCTS, TABLES

PACKAGES = {
    "ecs": "alibabacloud-ecs20140526",
    "vpc": "alibabacloud-vpc20160428",
    "cms": "alibabacloud-cms20190101",
    "sts": "alibabacloud-sts20150401",
    "bss": "alibabacloud-bssopenapi20171214",
    "resourcedirectory": "alibabacloud-resourcedirectorymaster20220419",
    "dm": "alibabacloud-dm20151123",
    "ram": "alibabacloud-ram20150501",
    "kms": "alibabacloud-kms20160120",
    "vpcpeer": "alibabacloud-vpcpeer20220101",
    "actiontrail": "alibabacloud-actiontrail20200706",
}
EARLIER = {"ecs": "4.4.11", "vpc": "6.9.6"}
"""Versions whose comments list values that the newest leave out; fields are the newest's alone."""
_LISTED = re.compile(r"#\s+[-*]\s+(?:\*\*|`)?([A-Za-z0-9_-]+)(?:\*\*|`)?\.?\s*(?:[:：.(（].*)?$")
_BULLET = re.compile(r"#\s+[-*]\s")
_LISTS = re.compile(r"[Vv]alid values?:")


def published(folder: Path) -> dict[str, Any]:
    """The shape of every action's answer, by product and version."""
    products: dict[str, Any] = {}
    sources = []
    versions = {service: version for version, service in PRODUCTS.items()}
    for service, package in PACKAGES.items():
        wheels = {_version(each): each for each in folder.glob(f"{package.replace('-', '_')}-*.whl")}
        earlier = _models(wheels.pop(EARLIER[service])) if service in EARLIER else {}
        ((version, wheel),) = wheels.items()
        sources.append(f"{package} {version}" + (f" (values: {EARLIER[service]} too)" if service in EARLIER else ""))
        models = _models(wheel)
        for name in models.keys() & earlier.keys():
            models[name].learn(earlier[name])
        products[f"{service} {versions[service]}"] = {
            action: models[f"{action}ResponseBody"].shape(models) for of, action in sorted(TABLES) if of == service
        }
    return {"source": f"{', '.join(sources)}: the classes of models", "products": products}


class _Model:
    """One class: its fields by their names on the wire."""

    def __init__(self, written: ast.ClassDef, lines: list[str]) -> None:
        methods = {each.name: each for each in written.body if isinstance(each, ast.FunctionDef)}
        names = dict(_names(methods["to_map"]))
        made = methods["__init__"]
        self._fields = {
            names[each.arg]: (ast.unparse(each.annotation), _values(made, each.arg, lines))
            for each in made.args.args[1:]
            if each.annotation is not None and each.arg in names
        }

    def learn(self, earlier: _Model) -> None:
        """Take over which values are listed where none are here."""
        for name, (kind, values) in self._fields.items():
            self._fields[name] = kind, values or earlier._fields.get(name, ("", ()))[1]

    def shape(self, models: Mapping[str, _Model]) -> dict[str, Any]:
        """With everything within it."""
        return {
            name: _shape(kind, values, models) for name, (kind, values) in self._fields.items() if name != "RequestId"
        }


def _version(wheel: Path) -> str:
    return wheel.stem.split("-")[1]


def _models(wheel: Path) -> dict[str, _Model]:
    found = {}
    with zipfile.ZipFile(wheel) as opened:
        for path in opened.namelist():
            if re.search(r"/models(?:/\w+)?\.py$", path) and not path.endswith("__init__.py"):
                text = opened.read(path).decode()
                for each in ast.parse(text).body:
                    if isinstance(each, ast.ClassDef) and "ResponseBody" in each.name:
                        found[each.name] = _Model(each, text.splitlines())
    return found


def _names(to_map: ast.FunctionDef) -> Iterator[tuple[str, str]]:
    """From `if self.account_id is not None: result['AccountID'] = …`: the field, and its name on the wire."""
    for each in ast.walk(to_map):
        if isinstance(each, ast.If):
            of = [one.attr for one in ast.walk(each.test) if isinstance(one, ast.Attribute)]
            for one in ast.walk(each):
                if isinstance(one, ast.Subscript) and ast.unparse(one.value) == "result":
                    yield of[0], ast.literal_eval(one.slice)


def _values(made: ast.FunctionDef, name: str, lines: list[str]) -> tuple[str, ...]:
    """What the comment above a field lists as its values."""
    line = next(each.lineno for each in made.body if ast.unparse(each) == f"self.{name} = {name}") - 2
    above: list[str] = []
    while lines[line].lstrip().startswith("#"):
        above.insert(0, lines[line].strip())
        line -= 1
    starts = next((at for at, text in enumerate(above) if _LISTS.search(text)), None)
    if starts is None:
        return ()
    bullets = [text for text in above[starts + 1 :] if _BULLET.match(text)]
    found = dict.fromkeys(listed[1] for text in bullets if (listed := _LISTED.match(text)))
    return tuple(found) if len(found) == len(bullets) > 1 else ()  # a value of several words is none that we read


def _shape(kind: str, values: tuple[str, ...], models: Mapping[str, _Model]) -> Any:
    if kind.startswith("List["):
        return [_shape(kind[5:-1], values, models)]
    if kind.removeprefix("main_models.") in models:
        return models[kind.removeprefix("main_models.")].shape(models)
    if kind.startswith("Dict[") or kind == "Any":
        return "any"
    fits = kind == "str" or (kind == "int" and all(each.isdigit() for each in values))
    return kind + (f" = {' | '.join(values)}" if values and fits else "")
