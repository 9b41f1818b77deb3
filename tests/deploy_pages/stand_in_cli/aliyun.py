"""The command line `aliyun` as far as the deploy page uses it: what it makes of its words, before anything is sent.

Written after the published source of version 3 (github.com/aliyun/aliyun-cli: config/profile.go, openapi/commando.go,
rpc.go, restful.go, http_context.go). Names of products, actions and parameters are those that it is built with:
`aliyun.json`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

_PUBLISHED = Path(__file__).with_name("aliyun.json")
_FLAGS = frozenset({"region", "RegionId", "body", "version", "read-timeout"})
"""Of the program's own flags those that the page may use; what they are called is no parameter of an action."""
_METHODS = frozenset({"GET", "POST", "PUT", "DELETE"})
_REGION = re.compile(r"[a-z]{2}-[a-z0-9-]+")
KEY_ID, _SECRET = "ALIBABA_CLOUD_ACCESS_KEY_ID", "ALIBABA_CLOUD_ACCESS_KEY_SECRET"
_SECONDS = 10  # that its SDK waits for an answer ("Configure a timeout period")
_WHOLE = frozenset({"Integer", "Long"})


class MistypedError(Exception):
    """The program would refuse these words, and nothing would be sent."""


@dataclass(frozen=True, slots=True)
class Asked:
    """One request. `parameters` are by the vendor's names, those in the path too; it is waited for `seconds`."""

    product: str
    action: str
    region: str
    key_id: str
    parameters: Mapping[str, str]
    body: str
    seconds: int


@dataclass(slots=True)
class _Words:
    plain: list[str] = field(default_factory=list)
    flags: dict[str, str] = field(default_factory=dict)
    unknown: dict[str, str] = field(default_factory=dict)


def read(words: Sequence[str], environ: Mapping[str, str]) -> Asked:
    """What `aliyun WORDS` asks for.

    Raises:
        MistypedError: it would ask for nothing, and say why.
    """
    said = _split(words)
    # `--RegionId` counts for the request alone; the profile, which is checked first, has it from `--region`
    profile = said.flags.get("region") or environ.get("ALIBABA_CLOUD_REGION_ID", "")
    if not profile:
        raise MistypedError("region can't be empty")
    region = said.flags.get("region") or said.flags.get("RegionId") or profile
    if not _REGION.fullmatch(profile):
        message = f"invalid region {profile}"
        raise MistypedError(message)
    if not environ.get(KEY_ID) or not environ.get(_SECRET):
        raise MistypedError("no access key: run `aliyun configure` first")
    name, action, path = _called(said.plain)
    api = action_of(name, action, path)
    given = {**_within(api["path"], path), **said.unknown}
    if api["style"] == "rpc" and "body" in said.flags:
        message = f"{action} takes no body"
        raise MistypedError(message)
    for each, value in given.items():
        _check(api, each, value)
    missing = [each for each, about in api["parameters"].items() if about["required"] and each not in given]
    if missing:
        message = f"required parameters not assigned: {', '.join(f'--{each}' for each in missing)}"
        raise MistypedError(message)
    return Asked(
        name,
        api["name"],
        region,
        environ[KEY_ID],
        given,
        said.flags.get("body", ""),
        int(said.flags.get("read-timeout", _SECONDS)),
    )


def action_of(product: str, action: str, path: str = "") -> Mapping[str, Any]:
    """What is published about an action, called by its name or by method and path; with its `name` and `style`.

    Raises:
        MistypedError: there is no such product or action.
    """
    known = _published()["products"].get(product)
    if known is None:
        message = f"{product!r} is not a valid product"
        raise MistypedError(message)
    for name, about in known["actions"].items():
        pattern = re.sub(r"\\\[[^]]+\\\]", "[^/]+", re.escape(about["path"]))
        if name == action or (path and about["method"] == action and re.fullmatch(pattern, path)):
            return {**about, "name": name, "style": known["style"]}
    message = f"{action} {path}".strip() + f" is not a valid api of {product} {known['version']}"
    raise MistypedError(message)


def _split(words: Sequence[str]) -> _Words:
    """Flags and what they are given; `--name=value` and `--name value` are the same."""
    said, rest = _Words(), list(words)
    while rest:
        word = rest.pop(0)
        if not word.startswith("--") or word.startswith("---"):
            said.plain.append(word)
            continue
        name, sign, value = word[2:].partition("=")
        if not sign:
            if not rest or (rest[0].startswith("--") and not rest[0].startswith("---")):
                message = f"--{name} needs a value"
                raise MistypedError(message)
            value = rest.pop(0)
        into = said.flags if name in _FLAGS else said.unknown
        if name in into:
            message = f"--{name} duplicated"
            raise MistypedError(message)
        into[name] = value
    return said


def _called(plain: Sequence[str]) -> tuple[str, str, str]:
    match plain:
        case [product, action] if action not in _METHODS:
            return product, action, ""
        case [product, method, path] if method in _METHODS:
            return product, method, path
        case _:
            message = f"neither PRODUCT ACTION nor PRODUCT METHOD PATH: {' '.join(plain)}"
            raise MistypedError(message)


def _within(pattern: str, path: str) -> dict[str, str]:
    """What stands in the path in the place of names."""
    if not path:
        return {}
    names = re.findall(r"\[([^]]+)\]", pattern)
    found = re.fullmatch(re.sub(r"\\\[[^]]+\\\]", "([^/]+)", re.escape(pattern)), path)
    assert found is not None
    return dict(zip(names, found.groups(), strict=True))


def _check(api: Mapping[str, Any], name: str, value: str) -> None:
    about = api["parameters"].get(name)
    if about is None:
        message = f"{name!r} is not a valid parameter or flag of {api['name']}"
        raise MistypedError(message)
    if about["type"] in _WHOLE and not re.fullmatch(r"-?\d+", value):
        message = f"{name} of {api['name']} is no whole number"
        raise MistypedError(message)
    if about["type"] == "Boolean" and value not in {"true", "false"}:
        message = f"{name} of {api['name']} is neither true nor false"
        raise MistypedError(message)


@cache
def _published() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(_PUBLISHED.read_text("utf-8"))
    return found
