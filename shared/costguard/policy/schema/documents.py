"""JSON Schemas of the files people write, made from the documents that read them. Needs pydantic.

A schema knows the form of every value and what every key means, for completion and hover text in editors. What needs
several keys or files at once only the loader checks.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Mapping
from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints

from pydantic import AfterValidator, BaseModel, BeforeValidator

from costguard.policy.budget.documents import CoversDocument
from costguard.policy.documents import policy as d
from costguard.policy.documents.fields import MatchDocument
from costguard.policy.schema.forms import FORMS, PREFIX
from costguard.policy.schema.words import WORDS
from costguard.policy.trial.documents import DescribedDocument, ExpectDocument, TestsDocument

FILES: Mapping[str, Any] = {
    "costguard": d.MainDocument,
    "policies": d.RulesDocument,
    "owners": tuple[d.OwnerDocument, ...],
    "exceptions": tuple[d.ExceptionDocument, ...],
    "tests": TestsDocument,
    "machine": DescribedDocument,
}
"""What a schema is of: a file by its name, those under `policies/` and `tests/`, and a described machine."""

TITLES: Mapping[str, str] = {
    "costguard": "costguard.yaml",
    "policies": "A file under policies/",
    "owners": "owners.yaml",
    "exceptions": "exceptions.yaml",
    "tests": "A file under tests/",
    "machine": "A machine described for `costguard policy explain`",
}
_NEVER_EMPTY = (MatchDocument, CoversDocument, ExpectDocument)
_SCHEMA = "https://json-schema.org/draft/2020-12/schema"
_PLAIN: Mapping[Any, dict[str, Any]] = {
    str: {"type": "string"},
    bool: {"type": "boolean"},
    int: {"type": "integer"},
}


def schema_of(file: str) -> dict[str, Any]:
    """The JSON Schema of one of `FILES`."""
    defs: dict[str, Any] = {}
    whole = _schema(FILES[file], defs)
    return {"$schema": _SCHEMA, "title": TITLES[file], **whole, "$defs": dict(sorted(defs.items()))}


def _schema(annotation: Any, defs: dict[str, Any]) -> dict[str, Any]:
    known = next((form for kind, form in FORMS if kind == annotation), None)
    if known is not None:
        return known
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return _reference(annotation, defs)
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return _annotated(arguments, defs)
    if origin in (Union, UnionType):  # an empty value is an error everywhere, so None is never written
        return _schema(next(each for each in arguments if each is not type(None)), defs)
    if origin is tuple:
        return {"type": "array", "items": _schema(arguments[0], defs)}
    if origin is dict:
        return {"type": "object", "additionalProperties": _schema(arguments[1], defs)}
    return dict(_PLAIN[annotation])


def _annotated(arguments: tuple[Any, ...], defs: dict[str, Any]) -> dict[str, Any]:
    kind, *checks = arguments
    if any(isinstance(check, BeforeValidator) for check in checks):
        if kind is int:  # the length of a prefix, whose check is made anew for each
            return dict(PREFIX)
        message = f"no form is known of {kind} read by {checks}; add it to schema_forms"
        raise TypeError(message)
    found = _schema(kind, defs)
    if found.get("type") == "array":
        return {**found, "minItems": 1}  # every list that is checked refuses to be empty
    if found.get("type") == "object":
        return {**found, "minProperties": 1}
    for check in checks:
        pattern = _pattern(check)
        if found == {"type": "string"} and pattern is not None:
            return {**found, "pattern": f"^(?:{pattern.pattern})$"}
    return found


def _pattern(check: Any) -> re.Pattern[str] | None:
    """The expression that a text is held against, where one check is all there is."""
    if not isinstance(check, AfterValidator):
        return None
    held = inspect.getclosurevars(check.func).nonlocals.get("pattern")
    return held if isinstance(held, re.Pattern) else None


def _reference(model: type[BaseModel], defs: dict[str, Any]) -> dict[str, Any]:
    name = model.__name__.removesuffix("Document")
    if name not in defs:
        defs[name] = {}  # the place is taken first, should it lead back here
        hints = get_type_hints(model, include_extras=True)
        properties = {
            field.alias or key: {"description": WORDS[field.alias or key], **_schema(hints[key], defs)}
            for key, field in model.model_fields.items()
        }
        required = [field.alias or key for key, field in model.model_fields.items() if field.is_required()]
        defs[name] = {
            "type": "object",
            "description": inspect.cleandoc(model.__doc__ or "").replace("`", ""),
            "additionalProperties": False,
            **({"required": required} if required else {}),
            **({"minProperties": 1} if issubclass(model, _NEVER_EMPTY) else {}),
            "properties": properties,
        }
    return {"$ref": f"#/$defs/{name}"}
