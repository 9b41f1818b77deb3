"""What SARIF 2.1.0 asks of the objects that Costguard writes, in our own words, for tests.

Written by hand from the standard (OASIS SARIF 2.1.0, with errata 01), whose own schema is not ours to carry along. It
is stricter than that: of each object it allows only the properties named here, which are all of the standard, with its
types, closed lists and required ones. What passes here passes there.
"""

from __future__ import annotations

from typing import Any

_TEXT = {"type": "string"}
_BAG = {"type": "object", "properties": {"tags": {"type": "array", "items": _TEXT, "uniqueItems": True}}}
_CULTURE = {"type": "string", "pattern": "^[a-zA-Z]{2}(-[a-zA-Z]{2})?$"}
_LEVEL = {"enum": ["none", "note", "warning", "error"]}


def _object(required: tuple[str, ...], **properties: Any) -> dict[str, Any]:
    return {"type": "object", "additionalProperties": False, "required": list(required), "properties": properties}


def _some(items: Any, *, unique: bool = True) -> dict[str, Any]:
    return {"type": "array", "items": items, "uniqueItems": unique}


_MULTIFORMAT = _object(("text",), text=_TEXT, markdown=_TEXT)
_MESSAGE = _object(("text",), text=_TEXT, markdown=_TEXT)
_LOGICAL = _object((), name=_TEXT, fullyQualifiedName=_TEXT, kind=_TEXT)
_LOCATION = _object((), logicalLocations=_some(_LOGICAL))
_RULE = _object(
    ("id",),
    id=_TEXT,
    name=_TEXT,
    shortDescription=_MULTIFORMAT,
    fullDescription=_MULTIFORMAT,
    help=_MULTIFORMAT,
    defaultConfiguration=_object((), level=_LEVEL),
    properties=_BAG,
)
_RESULT = _object(
    ("message",),
    ruleId=_TEXT,
    ruleIndex={"type": "integer", "minimum": -1},
    kind={"enum": ["notApplicable", "pass", "fail", "review", "open", "informational"]},
    level=_LEVEL,
    message=_MESSAGE,
    locations=_some(_LOCATION, unique=False),
    fingerprints={"type": "object", "additionalProperties": _TEXT},
    suppressions=_some(
        _object(
            ("kind",),
            kind={"enum": ["inSource", "external"]},
            status={"enum": ["accepted", "underReview", "rejected"]},
            justification=_TEXT,
        )
    ),
    properties=_BAG,
)
_RUN = _object(
    ("tool",),
    tool=_object(
        ("driver",),
        driver=_object(("name",), name=_TEXT, version=_TEXT, language=_CULTURE, rules=_some(_RULE)),
    ),
    automationDetails=_object((), id=_TEXT),
    language=_CULTURE,
    invocations=_some(
        _object(
            ("executionSuccessful",),
            executionSuccessful={"type": "boolean"},
            endTimeUtc={"type": "string", "format": "date-time"},
            toolExecutionNotifications=_some(
                _object(("message",), level=_LEVEL, message=_MESSAGE, locations=_some(_LOCATION)), unique=False
            ),
        ),
        unique=False,
    ),
    results=_some(_RESULT, unique=False),
)
SARIF = _object(
    ("version", "runs"),
    **{
        "$schema": {"type": "string", "format": "uri"},
        "version": {"const": "2.1.0"},
        "runs": {"type": "array", "items": _RUN},
    },
)
