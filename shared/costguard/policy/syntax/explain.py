"""From pydantic's errors to problems with a place and a suggestion. Imported only while a policy is loaded."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, get_args, get_origin

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from costguard.policy.syntax import yaml_nodes as nodes
from costguard.policy.syntax.problems import BadValueError, Problem, did_you_mean, field_path

MAX_PROBLEMS = 100  # of one file

Loc = tuple[str | int, ...]

_ONLY_MAIN = frozenset(
    {
        *("mode", "calendar", "accounts", "protect", "prices", "signals", "notify"),
        *("exchange_rates", "priority_classes", "launch_freezes"),
    }
)
_EXAMPLES: Mapping[str, str] = {
    "version": "version: 1",
    "name": "name: research",
    "cloud": "cloud: aws",
    "id": 'id: "111122223333"',
    "regions": "regions: all",
    "idle_gpu": "idle_gpu: with a list of rules",
    "forbid": "forbid: [public_ip, open_admin_port]",
    "zone": "zone: Asia/Shanghai",
    "hours": 'hours: "10:00-18:00"',
    "owns": "owns: {tags: {team: nlp}}",
    "expires": 'expires: "2026-12-01T18:00:00+08:00"',
    "hourly": "hourly: 12.5 USD",
    "slack_team": "slack_team: T0123ABCD",
    "default": 'default: "slack:#gpu-costs"',
    "from": "from: USD",
    "to": "to: CNY",
    "rate": "rate: 7.1",
    "since": "since: 2026-11-01",
    "applies_when_all": "applies_when_all: {tags: {env: dev}}",
    "via": "via: organisation, or via: group",
    "policy": "policy: with the id of a policy that denies launches (costguard budgets freeze-policy prints one)",
    "target": "target: with the account, unit or group to attach it to",
}


def explained(document: nodes.YamlDocument, error: ValidationError, model: Any) -> Iterator[Problem]:
    """Every error of `error`, placed in `document`; `model` is what it was checked against."""
    for detail in error.errors(include_url=False)[:MAX_PROBLEMS]:
        yield _problem(document, detail, model)


def _problem(document: nodes.YamlDocument, detail: ErrorDetails, model: Any) -> Problem:
    loc = tuple(detail["loc"])
    kind = detail["type"]
    if kind == "extra_forbidden":
        return _unknown_key(document, loc, model)
    if kind == "missing":
        mark, _ = document.locate(loc[:-1])
        name = str(loc[-1])
        return document.problem(
            mark, field_path(loc), "this key is missing", f"add {_EXAMPLES.get(name, name + ': ...')}"
        )
    cause = detail.get("ctx", {}).get("error")
    if isinstance(cause, BadValueError):
        loc = (*loc, *cause.at)
        mark, _ = document.locate(loc, key=cause.key)
        return document.problem(mark, field_path(loc), cause.message, cause.fix)
    mark, node = document.locate(loc)
    message, fix = _wrong_type(kind, node, str(detail["msg"]))
    return document.problem(mark, field_path(loc), message, fix)


def _unknown_key(document: nodes.YamlDocument, loc: Loc, model: Any) -> Problem:
    mark, _ = document.locate(loc, key=True)
    name = str(loc[-1])
    known = _keys_at(model, loc[:-1])
    if len(loc) == 1 and name in _ONLY_MAIN and name not in known:
        return document.problem(mark, name, "this key belongs in costguard.yaml", "move it there")
    return document.problem(mark, field_path(loc), f"unknown key {name!r}", did_you_mean(name, known))


def _wrong_type(kind: str, node: nodes.Node | None, otherwise: str) -> tuple[str, str]:
    found = _found(node)
    if kind == "string_type":
        quoted = f'put it in quotes: "{node.text}"' if isinstance(node, nodes.Scalar) else ""
        return f"expected text, found {found}", quoted
    if kind == "bool_type":
        text = node.text.casefold() if isinstance(node, nodes.Scalar) else ""
        fix = {"no": "write false", "off": "write false", "yes": "write true", "on": "write true"}.get(text)
        return f"expected true or false, found {found}", fix or "write true or false, without quotes"
    if kind == "tuple_type":
        text = node.text if isinstance(node, nodes.Scalar) else ""
        return f"expected a list, found {found}", f"write [{text}]" if text else "write each item with a dash before it"
    if kind in {"model_type", "model_attributes_type", "dict_type", "mapping_type"}:
        return f"expected keys and values, found {found}", "write key: value"
    return otherwise[:1].lower() + otherwise[1:], ""


def _found(node: nodes.Node | None) -> str:
    if isinstance(node, nodes.Scalar):
        return repr(node.text) if isinstance(node.value, str) else f"the {_kind(node.value)} {node.text}"
    return "a list" if isinstance(node, nodes.Sequence) else "keys and values"


def _kind(value: nodes.Plain) -> str:
    return "truth value" if isinstance(value, bool) else "number" if isinstance(value, (int, float)) else "empty value"


def _keys_at(annotation: Any, loc: Loc) -> frozenset[str]:
    """The keys a document may have where `loc` leads."""
    for part in loc:
        model = _bare(annotation)
        if isinstance(part, int):
            annotation = next((arg for arg in get_args(model) if arg is not Ellipsis), None)
        elif isinstance(model, type) and issubclass(model, BaseModel) and part in (known := _written(model)):
            annotation = known[part]
        else:
            return frozenset()
    model = _bare(annotation)
    return frozenset(_written(model)) if isinstance(model, type) and issubclass(model, BaseModel) else frozenset()


def _written(model: type[BaseModel]) -> Mapping[str, Any]:
    """The keys of a document as people write them (`from` is no name in Python), each with its annotation."""
    return {each.alias or name: each.annotation for name, each in model.model_fields.items()}


def _bare(annotation: Any) -> Any:
    """Without `Annotated[...]` and `... | None`."""
    if get_origin(annotation) is Annotated:
        return _bare(get_args(annotation)[0])
    if get_origin(annotation) is tuple:
        return annotation
    options = [arg for arg in get_args(annotation) if arg is not type(None)]
    return _bare(options[0]) if len(options) == 1 else annotation
