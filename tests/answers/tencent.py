"""Tencent Cloud's answers against `tencent.json`."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from functools import cache, partial
from pathlib import Path
from typing import Any

from tests.answers.shapes import Complaint, Leaf, Listing, Shape, Structure

from cloudstand.wire.messages import Answer, Request

FILE = Path(__file__).with_name("tencent.json")
_SERVICE = re.compile(r"/([a-z0-9]+)/tc3_request")
_ERROR = Structure("Error", lambda: {"Code": Leaf("string"), "Message": Leaf("string")})


def in_answer(cloud: str, request: Request, answer: Answer) -> Iterator[Complaint]:
    """What of this answer is not published; `cloud` is the site."""
    body = json.loads(answer.body)
    if body.keys() != {"Response"}:
        yield Complaint("envelope", "not Response alone")
        return
    fields = dict(body["Response"])
    if not isinstance(fields.pop("RequestId", None), str):
        yield Complaint("RequestId", "no string")
    error = fields.pop("Error", None)
    if error is not None:
        yield from _ERROR.complaints(error, "Error")
        yield from (Complaint(name, "beside an error") for name in fields)
        return
    found = _SERVICE.search(request.headers["authorization"])
    product = f"{'' if found is None else found[1]} {request.headers['x-tc-version']}"
    shape = shape_of(cloud, product, request.headers["x-tc-action"])
    yield from shape.complaints(fields, shape.name)


@cache
def shape_of(cloud: str, product: str, action: str) -> Structure:
    """What this action of a product (`cvm 2017-03-12`) answers on this site.

    Raises:
        KeyError: it is not in the file.
    """
    return _structure(cloud, product, _published()["products"][product]["answers"][action])


@cache
def _published() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(FILE.read_text("utf-8"))
    return found


@cache
def _objects(cloud: str, product: str) -> Mapping[str, Any]:
    """What differs on the international site stands apart."""
    found = _published()["products"][product]
    return {**found["objects"], **(found["international"]["objects"] if cloud == "tencent-intl" else {})}


def _structure(cloud: str, product: str, name: str, *, null: bool = False) -> Structure:
    return Structure(name, partial(_fields, cloud, product, name), null)


@cache
def _fields(cloud: str, product: str, name: str) -> Mapping[str, Shape]:
    written = _objects(cloud, product)[name]
    return {field: _shape(cloud, product, each) for field, each in written.items()}


def _shape(cloud: str, product: str, written: Any) -> Shape:
    if isinstance(written, list):
        return Listing(_shape(cloud, product, written[0]), null=len(written) > 1)
    kind, _, values = written.partition(" = ")
    name = kind.removesuffix("?")
    if name in _objects(cloud, product):
        return _structure(cloud, product, name, null=kind != name)
    return Leaf(name, kind != name, tuple(values.split(" | ")) if values else ())
