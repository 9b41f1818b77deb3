"""Alibaba Cloud's answers against `alibaba.json`."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

from tests.answers.shapes import Complaint, Leaf, Listing, Shape, Structure

from cloudstand.alibaba.tables import PRODUCTS
from cloudstand.wire.messages import Answer, Request

_FILE = Path(__file__).with_name("alibaba.json")
_TEXT = Leaf("string")
_DETAIL = ("AuthAction", "AuthPrincipalDisplayName", "AuthPrincipalOwnerId", "AuthPrincipalType")
_ERROR = Structure(
    "Error",
    lambda: {
        **dict.fromkeys(("RequestId", "HostId", "Code", "Message", "Recommend"), _TEXT),
        "AccessDeniedDetail": Structure(
            "AccessDeniedDetail", lambda: dict.fromkeys((*_DETAIL, "NoPermissionType", "PolicyType"), _TEXT)
        ),
    },
)


def in_answer(request: Request, answer: Answer) -> Iterator[Complaint]:
    """What of this answer is not published."""
    body = json.loads(answer.body)
    if answer.status != 200:
        yield from _ERROR.complaints(body, "Error")
        return
    if not isinstance(body.pop("RequestId", None), str):
        yield Complaint("RequestId", "no string")
    asked = dict(parse_qsl(f"{request.query}&{request.body.decode()}"))
    shape = shape_of(f"{PRODUCTS[asked['Version']]} {asked['Version']}", asked["Action"])
    yield from (each for each in shape.complaints(body, shape.name) if not _is_empty(each))


def _is_empty(complaint: Complaint) -> bool:
    """An empty text, for a structure or where no word fits: what an empty element of the vendor's XML becomes.

    Others recorded it (`RdmaIpAddress`, `EipAddress.InternetChargeType` of an instance without an address).
    """
    return complaint.value == "''"


@cache
def shape_of(product: str, action: str) -> Structure:
    """What this action of a product (`ecs 2014-05-26`) answers.

    Raises:
        KeyError: it is not in the file.
    """
    return _structure(action, _published()["products"][product][action])


@cache
def _published() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(_FILE.read_text("utf-8"))
    return found


def _structure(name: str, written: Mapping[str, Any]) -> Structure:
    fields = {field: _shape(f"{name}.{field}", each) for field, each in written.items()}
    return Structure(name, lambda: fields)


def _shape(name: str, written: Any) -> Shape:
    if isinstance(written, dict):
        return _structure(name, written)
    if isinstance(written, list):
        return Listing(_shape(name, written[0]))
    kind, _, values = written.partition(" = ")
    return Leaf(kind, values=tuple(values.split(" | ")) if values else ())
