"""Block Kit's limits as Slack's reference states them, as a JSON schema, apart from the product and its stand-in.

Lengths are in UTF-16 units, as Slack counts.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

import jsonschema


def _plain(most: int) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": {
            "type": {"const": "plain_text"},
            "text": {"type": "string", "minLength": 1, "maxLength": most},
            "emoji": {"type": "boolean"},
        },
        "required": ["type", "text"],
        "additionalProperties": False,
    }


def _marked(most: int) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": {
            "type": {"const": "mrkdwn"},
            "text": {"type": "string", "minLength": 1, "maxLength": most},
            "verbatim": {"const": True},  # or Slack would make links and mentions of words
        },
        "required": ["type", "text", "verbatim"],
        "additionalProperties": False,
    }


def _text(most: int) -> dict[str, Any]:
    return {"oneOf": [_plain(most), _marked(most)]}


_STYLE = {"enum": ["primary", "danger"]}
_BUTTON = {
    "type": "object",
    "properties": {
        "type": {"const": "button"},
        "text": _plain(75),
        "action_id": {"type": "string", "minLength": 1, "maxLength": 255},
        "value": {"type": "string", "minLength": 1, "maxLength": 2000},
        "style": _STYLE,
        "confirm": {
            "type": "object",
            "properties": {
                "title": _plain(100),
                "text": _plain(300),
                "confirm": _plain(30),
                "deny": _plain(30),
                "style": _STYLE,
            },
            "required": ["title", "text", "confirm", "deny"],
            "additionalProperties": False,
        },
    },
    "required": ["type", "text", "action_id", "value"],
    "additionalProperties": False,
}


def _block(kind: str, **properties: Any) -> dict[str, Any]:
    known = {"type": {"const": kind}, "block_id": {"type": "string", "minLength": 1, "maxLength": 255}, **properties}
    return {"type": "object", "properties": known, "required": ["type"], "additionalProperties": False}


def _several(items: dict[str, Any], most: int) -> dict[str, Any]:
    return {"type": "array", "items": items, "minItems": 1, "maxItems": most}


_BLOCKS = {
    "header": _block("header", text=_plain(150)) | {"required": ["type", "text"]},
    "section": _block("section", text=_text(3000), fields=_several(_text(2000), 10))
    | {"anyOf": [{"required": ["text"]}, {"required": ["fields"]}]},
    "context": _block("context", elements=_several(_text(3000), 10)) | {"required": ["type", "elements"]},
    "actions": _block("actions", elements=_several(_BUTTON, 25)) | {"required": ["type", "elements"]},
}
_VALIDATORS = {kind: jsonschema.Draft202012Validator(schema) for kind, schema in _BLOCKS.items()}


def problems(blocks: Sequence[dict[str, Any]]) -> list[str]:
    """What Slack would not take; empty where it would."""
    return list(_problems(_counted(json.loads(json.dumps(blocks)))))


def _problems(blocks: list[dict[str, Any]]) -> Iterator[str]:
    if not 0 < len(blocks) <= 50:
        yield f"{len(blocks)} blocks"
    length = len(json.dumps(blocks, ensure_ascii=False, separators=(",", ":")).replace("\\", ""))
    if length > 13_200:
        yield f"{length} characters in all"
    ids = [block["block_id"] for block in blocks if "block_id" in block]
    if len(set(ids)) < len(ids):
        yield f"block ids twice in {ids}"
    for block in blocks:
        validator = _VALIDATORS.get(block["type"])
        if validator is None:
            yield f"no block is a {block['type']}"
            continue
        yield from (
            f"{block['type']}: {error.json_path} {error.message[:200]}" for error in validator.iter_errors(block)
        )
        yield from _of_buttons(block)


def _of_buttons(block: dict[str, Any]) -> Iterator[str]:
    buttons = block["elements"] if block["type"] == "actions" else []
    names = [button["action_id"] for button in buttons]
    if len(set(names)) < len(names):
        yield f"action ids twice in one block: {names}"
    if [button.get("style") for button in buttons].count("primary") > 1:
        yield "more than one green button in a set"


def _counted(value: Any) -> Any:
    """The same with two characters for each that Slack counts as two."""
    if isinstance(value, str):
        return "".join("xx" if ord(char) > 0xFFFF else char for char in value)
    if isinstance(value, list):
        return [_counted(inner) for inner in value]
    return {name: _counted(inner) for name, inner in value.items()} if isinstance(value, dict) else value
