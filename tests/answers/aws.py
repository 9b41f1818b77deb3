"""AWS's answers against botocore's models: JSON, and the XML of EC2 and of the query protocol."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from functools import cache, partial
from typing import Any
from urllib.parse import parse_qs
from xml.etree import ElementTree as ET

import botocore.session
from botocore.model import OperationModel
from botocore.model import Shape as Model
from tests.answers.shapes import Complaint, Leaf, Listing, Mapped, Shape, Structure

from cloudstand.wire.messages import Answer, Request

_SCOPE = re.compile(r"Credential=[^/]+/\d+/[^/]+/([^/]+)/")
_NAMED = {"monitoring": "cloudwatch", "ses": "sesv2"}
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|\+00:00)", re.ASCII)
_WHOLE = {"integer", "long"}
_ERRORS = 400  # from which status on
_COMMON = frozenset(  # Common Error Types, the same page in every API reference
    {
        *("AccessDeniedException", "ExpiredTokenException", "InternalFailure", "ServiceUnavailable"),
        *("ThrottlingException", "UnrecognizedClientException", "ValidationException", "UnknownOperationException"),
    }
)


def in_answer(request: Request, answer: Answer) -> Iterator[Complaint]:
    """What of this answer botocore's model does not hold; nothing of S3, whose requests do not name an operation."""
    service, action = _asked(request)
    if service == "s3" or not action:
        return
    model = _model(service, action)
    failed, xml = answer.status >= _ERRORS, "xml" in answer.content_type
    if xml and not failed:  # errors of EC2 and of the query protocol are in no model
        yield from _in_document(model, ET.fromstring(answer.body))  # noqa: S314 - our own
    elif not xml:
        body = json.loads(answer.body or b"{}")
        if failed:
            yield from _in_error(model, body)
        elif model.output_shape is not None:
            yield from _shape(model.output_shape).complaints(body, model.name)


def _asked(request: Request) -> tuple[str, str]:
    """The service by the signature, and the action from where its protocol has it; empty where it has none."""
    found = _SCOPE.search(request.headers.get("authorization", ""))
    if found is None:
        return "", ""
    target = request.headers.get("x-amz-target", "")
    form = parse_qs(request.body.decode("utf-8", "replace"))
    return _NAMED.get(found[1], found[1]), target.rpartition(".")[2] or form.get("Action", [""])[0]


@cache
def _model(service: str, action: str) -> OperationModel:
    """Raises where there is none: what nobody publishes nobody answers."""
    return botocore.session.get_session().get_service_model(service).operation_model(action)


def _in_error(model: OperationModel, body: Mapping[str, Any]) -> Iterator[Complaint]:
    code = body["__type"].rpartition("#")[2]
    shapes = {shape.name: shape for shape in model.error_shapes}
    if code not in shapes and code not in _COMMON:
        yield Complaint(f"{model.name}.__type", "an error that is not listed", code)


@cache
def _shape(model: Model) -> Shape:
    kind = model.type_name
    if kind == "structure":
        return Structure(model.name, partial(_members, model))
    if kind == "list":
        return Listing(_shape(model.member))  # type: ignore[attr-defined]
    if kind == "map":
        return Mapped(_shape(model.value))  # type: ignore[attr-defined]
    if kind == "string":
        return Leaf("string", values=tuple(getattr(model, "enum", ())))
    return Leaf({**dict.fromkeys(_WHOLE, "int64"), "blob": "string", "timestamp": "moment"}.get(kind, kind))


@cache
def _members(model: Model) -> Mapping[str, Shape]:
    members: Mapping[str, Model] = model.members  # type: ignore[attr-defined]
    return {each.serialization.get("name", name): _shape(each) for name, each in members.items()}


def _in_document(model: OperationModel, root: ET.Element) -> Iterator[Complaint]:
    """EC2 has the members at the root, beside `requestId`; the query protocol has them in `…Result`."""
    inner = list(root)
    if model.service_model.protocol != "ec2":
        inner = [each for wrapper in root if _tag(wrapper) != "ResponseMetadata" for each in wrapper]
    if model.output_shape is None:
        yield from (Complaint(f"{model.name}.{_tag(each)}", "no such field") for each in inner if not _is_id(each))
        return
    yield from _in_elements(model.output_shape, [each for each in inner if not _is_id(each)])


def _is_id(element: ET.Element) -> bool:
    return _tag(element).lower() == "requestid"


def _tag(element: ET.Element) -> str:
    return element.tag.rpartition("}")[2]


def _in_elements(model: Any, elements: list[ET.Element]) -> Iterator[Complaint]:
    known = {each.serialization.get("name", name): each for name, each in model.members.items()}
    flat = {_inner_name(each): each for each in model.members.values() if each.serialization.get("flattened")}
    for element in elements:
        name = _tag(element)
        member = known.get(name) or flat.get(name)
        if member is None:
            yield Complaint(f"{model.name}.{name}", "no such field", element.text or "")
        else:
            yield from _in_element(member, element, f"{model.name}.{name}")


def _inner_name(model: Any) -> str:
    return str(model.member.serialization.get("name", "")) if model.type_name == "list" else ""


def _in_element(model: Any, element: ET.Element, field: str) -> Iterator[Complaint]:
    kind = model.type_name
    if kind == "structure":
        yield from _in_elements(model, list(element))
    elif kind == "list" and model.serialization.get("flattened"):
        yield from _in_element(model.member, element, field)
    elif kind == "list":
        for each in element:
            if _tag(each) not in {"item", "member", model.member.serialization.get("name")}:
                yield Complaint(f"{field}[]", "no such element", _tag(each))
            yield from _in_element(model.member, each, field)
    elif kind == "map":
        for entry in element:
            yield from _in_element(model.value, entry[1], field)
    elif list(element):
        yield Complaint(field, f"no {kind}", _tag(element[0]))
    else:
        yield from _in_text(model, element.text or "", field)


def _in_text(model: Any, text: str, field: str) -> Iterator[Complaint]:
    """A text of XML, as what its model says it is."""
    kind = model.type_name
    fits = {
        **dict.fromkeys(_WHOLE, re.fullmatch(r"-?\d+", text)),
        **dict.fromkeys(("float", "double"), re.fullmatch(r"-?\d+(?:\.\d+)?(?:[eE]-?\d+)?", text)),
        "boolean": text in {"true", "false"},
        "timestamp": _TIME.fullmatch(text),
    }.get(kind, True)
    if not fits:
        yield Complaint(field, f"no {kind}", text)
    elif kind == "string" and model.enum and text not in model.enum:
        yield Complaint(field, "a value that is not listed", text)
