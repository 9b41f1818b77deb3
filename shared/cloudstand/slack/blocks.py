"""Block Kit as Slack's reference limits it: the blocks, elements and windows that Costguard could send; no others.

Slack names no limit for a whole message's blocks and refuses some 13,200 characters; what it counts beyond words is
unknown, so all of the JSON is counted here.

Sources: Block Kit reference (blocks, elements, composition objects), views reference.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

_BLOCKS_IN_A_MESSAGE, _BLOCKS_IN_A_VIEW = 50, 100
_WHOLE_MAX = 13_200
_ID_MAX = 255
_HEADER_MAX, _TEXT_MAX, _FIELD_MAX, _LABEL_MAX = 150, 3000, 2000, 2000
_FIELDS_MAX, _CONTEXT_MAX, _ACTIONS_MAX, _OPTIONS_MAX, _RADIOS_MAX = 10, 10, 25, 100, 10
_BUTTON_MAX, _VALUE_MAX, _URL_MAX = 75, 2000, 3000
_OPTION_TEXT_MAX, _OPTION_VALUE_MAX, _PLACEHOLDER_MAX = 75, 150, 150
_CONFIRM_MAX = {"title": 100, "text": 300, "confirm": 30, "deny": 30}
_VIEW_WORDS_MAX, _METADATA_MAX, _INPUT_MAX = 24, 3000, 3000
_STYLES = frozenset({"primary", "danger"})
_DATE = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)

Check = Callable[[Any], bool]


def are_blocks(blocks: object) -> bool:
    """Whether a message may have these."""
    return (
        isinstance(blocks, list)
        and len(blocks) <= _BLOCKS_IN_A_MESSAGE
        and all(_is_block(block, _IN_MESSAGES) for block in blocks)
        and _all_different(block.get("block_id") for block in blocks)
    )


def too_long(blocks: Sequence[Mapping[str, Any]]) -> bool:
    """Whether they are more than one message holds."""
    return _length(list(blocks)) > _WHOLE_MAX


def is_modal(view: object) -> bool:
    """Whether a window may be opened with this; one that asks for input needs a button to submit it."""
    if not isinstance(view, dict) or not _has(view, _MODAL, needed=("type", "title", "blocks")):
        return False
    blocks = view["blocks"]
    asks = any(block.get("type") == "input" for block in blocks)
    return _all_different(block.get("block_id") for block in blocks) and ("submit" in view or not asks)


def elements(blocks: Sequence[Mapping[str, Any]]) -> Iterator[tuple[Mapping[str, Any], Mapping[str, Any]]]:
    """Every element somebody can use, with its block."""
    for block in blocks:
        for element in (*block.get("elements", ()), block.get("accessory"), block.get("element")):
            if isinstance(element, dict) and "action_id" in element:
                yield block, element


def _length(value: object) -> int:
    """Of its JSON without spaces and backslashes."""
    if isinstance(value, str):
        return len(value.encode("utf-16-le")) // 2 + 2
    if isinstance(value, dict):
        return 1 + sum(_length(name) + _length(inner) + 2 for name, inner in value.items())
    return 1 + sum(_length(inner) + 1 for inner in value) if isinstance(value, list) else 5


def _is_block(block: object, known: Mapping[str, tuple[Mapping[str, Check], tuple[str, ...]]]) -> bool:
    if not isinstance(block, dict) or block.get("type") not in known:
        return False
    checks, needed = known[block["type"]]
    if not _has(block, {"type": _is_string(_ID_MAX), "block_id": _is_string(_ID_MAX), **checks}, needed):
        return False
    shows = block["type"] != "section" or "text" in block or "fields" in block
    return shows and _all_different(element.get("action_id") for _, element in elements([block]))


def _has(found: Mapping[str, Any], checks: Mapping[str, Check], needed: Sequence[str] = ()) -> bool:
    """Whether it has what is needed, nothing that is unknown, and each as it has to be."""
    return all(name in found for name in needed) and all(
        name in checks and checks[name](value) for name, value in found.items()
    )


def _all_different(names: Iterator[object]) -> bool:
    given = [name for name in names if name is not None]
    return len(set(map(str, given))) == len(given)


def _is_string(most: int, least: int = 1) -> Check:
    return lambda value: isinstance(value, str) and least <= len(value.encode("utf-16-le")) // 2 <= most


def _is_plain(most: int) -> Check:
    text = {"type": "plain_text".__eq__, "text": _is_string(most), "emoji": _is_bool}
    return lambda value: isinstance(value, dict) and _has(value, text, ("type", "text"))


def _is_text(most: int) -> Check:
    plain = _is_plain(most)
    marked = {"type": "mrkdwn".__eq__, "text": _is_string(most), "verbatim": _is_bool}
    return lambda value: plain(value) or (isinstance(value, dict) and _has(value, marked, ("type", "text")))


def _is_bool(value: object) -> bool:
    return isinstance(value, bool)


def _is_number(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= _INPUT_MAX


def _is_list_of(check: Check, most: int) -> Check:
    return lambda value: isinstance(value, list) and 0 < len(value) <= most and all(map(check, value))


def _is_date(value: object) -> bool:
    return isinstance(value, str) and _DATE.fullmatch(value) is not None


def _is_confirm(value: object) -> bool:
    checks = {name: _is_plain(most) for name, most in _CONFIRM_MAX.items()}
    return isinstance(value, dict) and _has(value, {**checks, "style": _STYLES.__contains__}, tuple(_CONFIRM_MAX))


def _is_option(value: object) -> bool:
    checks = {"text": _is_plain(_OPTION_TEXT_MAX), "value": _is_string(_OPTION_VALUE_MAX)}
    return isinstance(value, dict) and _has(value, checks, tuple(checks))


_BUTTON: Mapping[str, Check] = {
    "text": _is_plain(_BUTTON_MAX),
    "action_id": _is_string(_ID_MAX),
    "value": _is_string(_VALUE_MAX),
    "url": _is_string(_URL_MAX),
    "style": _STYLES.__contains__,
    "confirm": _is_confirm,
    "accessibility_label": _is_string(_BUTTON_MAX),
}
_TYPED: Mapping[str, Check] = {
    "action_id": _is_string(_ID_MAX),
    "placeholder": _is_plain(_PLACEHOLDER_MAX),
    "focus_on_load": _is_bool,
}
_OPTIONS = {**_TYPED, "options": _is_list_of(_is_option, _OPTIONS_MAX), "initial_option": _is_option}
_ELEMENTS: Mapping[str, tuple[Mapping[str, Check], tuple[str, ...]]] = {
    "button": (_BUTTON, ("text", "action_id")),
    "plain_text_input": (
        {
            **_TYPED,
            "initial_value": _is_string(_INPUT_MAX, 0),
            "multiline": _is_bool,
            "min_length": _is_number,
            "max_length": _is_number,
        },
        ("action_id",),
    ),
    "datepicker": ({**_TYPED, "initial_date": _is_date}, ("action_id",)),
    "static_select": (_OPTIONS, ("action_id", "options")),
    "radio_buttons": (
        {name: check for name, check in _OPTIONS.items() if name != "placeholder"}
        | {"options": _is_list_of(_is_option, _RADIOS_MAX)},
        ("action_id", "options"),
    ),
}


def _is_element(*kinds: str) -> Check:
    def check(value: object) -> bool:
        if not isinstance(value, dict) or value.get("type") not in kinds:
            return False
        checks, needed = _ELEMENTS[value["type"]]
        chosen = value.get("initial_option")
        listed = chosen is None or chosen in value.get("options", ())
        return listed and _has(value, {"type": _is_string(_ID_MAX), **checks}, needed)

    return check


_IN_MESSAGES: Mapping[str, tuple[Mapping[str, Check], tuple[str, ...]]] = {
    "header": ({"text": _is_plain(_HEADER_MAX)}, ("text",)),
    "divider": ({}, ()),
    "context": ({"elements": _is_list_of(_is_text(_TEXT_MAX), _CONTEXT_MAX)}, ("elements",)),
    "section": (
        {
            "text": _is_text(_TEXT_MAX),
            "fields": _is_list_of(_is_text(_FIELD_MAX), _FIELDS_MAX),
            "accessory": _is_element("button"),
            "expand": _is_bool,
        },
        (),
    ),
    "actions": ({"elements": _is_list_of(_is_element("button"), _ACTIONS_MAX)}, ("elements",)),
}
_IN_VIEWS = {
    **_IN_MESSAGES,
    "input": (
        {
            "label": _is_plain(_LABEL_MAX),
            "element": _is_element("plain_text_input", "datepicker", "static_select", "radio_buttons"),
            "hint": _is_plain(_LABEL_MAX),
            "optional": _is_bool,
            "dispatch_action": _is_bool,
        },
        ("label", "element"),
    ),
}
_MODAL: Mapping[str, Check] = {
    "type": "modal".__eq__,
    "title": _is_plain(_VIEW_WORDS_MAX),
    "submit": _is_plain(_VIEW_WORDS_MAX),
    "close": _is_plain(_VIEW_WORDS_MAX),
    "blocks": _is_list_of(lambda block: _is_block(block, _IN_VIEWS), _BLOCKS_IN_A_VIEW),
    "private_metadata": _is_string(_METADATA_MAX, 0),
    "callback_id": _is_string(_ID_MAX),
    "external_id": _is_string(_ID_MAX),
    "clear_on_close": _is_bool,
    "notify_on_close": _is_bool,
}
