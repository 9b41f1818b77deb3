"""JSON Schemas of the files people write, made from the documents that read them. Needs pydantic.

A schema knows the form of every value and what every key means, for completion and hover text in editors. What needs
several keys or files at once only the loader checks.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable, Mapping
from datetime import timedelta
from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints

from pydantic import AfterValidator, BaseModel, BeforeValidator

from costguard.domain.actions import FreezeVia
from costguard.domain.findings import Verdict
from costguard.domain.keys import RotationMeans
from costguard.domain.reasons import ReasonCode
from costguard.domain.refs import CLOUDS
from costguard.domain.resources import Billing, InstanceState, Keeper
from costguard.guards.budget.rules import CostBasis
from costguard.guards.network.rules import NetworkCheck
from costguard.guards.rules.common import Bars, Consent, Mode, Scarce
from costguard.policy.budget import documents as b
from costguard.policy.budget.documents import CoversDocument
from costguard.policy.documents import fields as f
from costguard.policy.documents import policy as d
from costguard.policy.documents.fields import MatchDocument
from costguard.policy.idle import documents as i
from costguard.policy.keys import documents as k
from costguard.policy.network import documents as network_documents
from costguard.policy.network import values as network_values
from costguard.policy.schema.words import WORDS
from costguard.policy.trial import documents as t
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
    if BeforeValidator(f.unless_none) in checks:
        return {"anyOf": [_words(("none",)), _schema(kind, defs)]}
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


_NUMBER = r"[0-9]{1,15}(\.[0-9]{1,9})?"


def _text(pattern: str, *examples: str) -> dict[str, Any]:
    return {"type": "string", "pattern": f"^(?:{pattern})$", "examples": list(examples)}


def _words(words: Iterable[str]) -> dict[str, Any]:
    return {"enum": list(words)}


def _some(items: dict[str, Any], *, least: int = 1) -> dict[str, Any]:
    return {"type": "array", "items": items, "minItems": least}


_DURATION = _text(rf"{_NUMBER}\s*[smhdw]", "24h", "7d", "30m")
_MONEY = _text(rf"{_NUMBER} [A-Z]{{3}}", "200 USD", "1400 CNY")
_PERCENT = _text(rf"{_NUMBER}%", "5%", "10%")
_RATE = _text(rf"{_NUMBER}\s*(B|[kK]B|KiB|MB|MiB|GB|GiB)/s", "50KiB/s", "1MB/s")
_POWER = _text(rf"{_NUMBER}\s*k?W", "80W")
_COUNTRY = _text(r"[A-Za-z]{2}(-[A-Za-z0-9]{1,8})?", "cn", "us", "de-BY")
_DATE = _text(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", "2026-11-01")
_MOMENT = _text(r"[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt ][0-9:.]+ ?([Zz]|[+-][0-9]{2}:?[0-9]{2})", "2026-12-01T18:00:00+08:00")
_COUNT = {"type": "integer", "minimum": 0}
_MODE = _words(mode.name.lower() for mode in Mode)
_REGION = _text(r"[a-z]{2,}(?:-[a-z0-9]+)+", "us-east-1", "cn-hangzhou")
_CHANNEL = _text(
    r"(slack|mailto|feishu|dingtalk|wecom):.+|https?://.+",
    "slack:#gpu-costs",
    "mailto:finops@example.com",
    "feishu:ops",
)
_RESOURCE = _text(r"[A-Za-z0-9_-]{3,128}|[a-z-]+:[^:]+:[^:]+:[^:]+:.+", "i-0123456789abcdef0")
_DAYS = {"anyOf": [{"type": "string", "examples": ["mon-fri"]}, {"type": "array", "items": {"type": "string"}}]}


def _step(words: dict[str, tuple[str, ...]]) -> dict[str, Any]:
    """A word alone, or a word with its options."""
    options: dict[str, dict[str, Any]] = {
        "wait": _DURATION,
        "idle_for": _DURATION,
        "classes": _some({"type": "string"}),
        "of": _some({"type": "string"}),
    }
    long = {
        word: {"type": "object", "additionalProperties": False, "properties": {name: options[name] for name in names}}
        for word, names in words.items()
        if names
    }
    mapping = {"type": "object", "additionalProperties": False, "minProperties": 1, "maxProperties": 1}
    return {"anyOf": [_words(words), {**mapping, "properties": long}]}


_LADDER_STEP = _step(dict.fromkeys(("warn", "snapshot", "stop", "terminate"), ("wait",)))
_BUDGET_STEP = _step(
    {"warn": (), "stop_idle": ("idle_for", "wait"), "stop": ("classes", "wait"), "freeze": ("of", "wait")}
)

FORMS: tuple[tuple[Any, dict[str, Any]], ...] = (
    (f.Version, {"const": 1}),
    (f.ModeWord, _MODE),
    (f.ConsentWord, _words(each.value for each in Consent)),
    (f.ScarceWord, _words(each.value for each in Scarce)),
    (f.BarsWord, _words(each.value for each in Bars)),
    (f.BillingWord, _words(each.value for each in Billing)),
    (f.CloudWord, _words(CLOUDS)),
    (f.CloudPattern, _words(CLOUDS)),
    (b.ExactCloud, _words(CLOUDS)),
    (i.Unstoppable, _words(("hold", "terminate"))),
    (f.TagName, {"type": "string", "minLength": 1, "maxLength": 128}),
    (i.Lasting, _DURATION),
    (f.Observed, _DURATION),
    (f.LongestException, _DURATION),
    (t.Duration, _DURATION),
    (i.PercentBound, _PERCENT),
    (t.Percent, _PERCENT),
    (t.Share, _PERCENT),
    (t.Cards, {"anyOf": [_PERCENT, _some(_PERCENT)]}),
    (i.RateBound, _RATE),
    (t.Rate, _RATE),
    (i.PowerBound, _POWER),
    (t.Power, _POWER),
    (i.Coverage, _PERCENT),
    (f.Count, _COUNT),
    (f.MessagesADay, {"type": "integer", "minimum": 2}),
    (f.Stops, {"type": "integer", "minimum": 1}),
    (f.Share, _PERCENT),
    (f.Caps, _some(_MONEY)),
    (f.Price, _MONEY),
    (f.DiscountShare, _PERCENT),
    (f.Moment, _MOMENT),
    (f.Day, _DATE),
    (f.Hours, _text(r"[0-9]{1,2}:[0-9]{2}\s*-\s*[0-9]{1,2}:[0-9]{2}", "10:00-18:00")),
    (f.Weekdays, _DAYS),
    (f.Holidays, {"anyOf": [_COUNTRY, {"type": "array", "items": {"anyOf": [_COUNTRY, _DATE]}}]}),
    (f.Zone, {"type": "string", "minLength": 1, "examples": ["Asia/Shanghai", "Europe/Berlin", "UTC"]}),
    (f.Regions, {"anyOf": [_words(("all",)), _some(_REGION)]}),
    (f.Channel, _CHANNEL),
    (f.ResourceId, _RESOURCE),
    (f.AccountPattern, _text(r"[0-9*?]+", "111122223333")),
    (b.ExactAccount, _text(r"[0-9]+", "111122223333")),
    (b.ExactRegion, _REGION),
    (f.SlackUser, _text(r"[UW][A-Z0-9]{2,20}", "U0123ABCD")),
    (i.Ladder, _some(_LADDER_STEP)),
    (b.Amount, _MONEY),
    (b.Currency, _text(r"[A-Z]{3}", "USD", "CNY")),
    (b.Rate, {"anyOf": [{"type": "number", "exclusiveMinimum": 0}, _text(_NUMBER)]}),
    (b.BillDay, _DATE),
    (b.BillAge, _DURATION),
    (b.Estimated, _PERCENT),
    (b.Via, _words(each.value for each in FreezeVia)),
    (b.Basis, _words(each.value for each in CostBasis)),
    (b.Alerts, _some(_PERCENT)),
    (b.ForecastAlerts, _some(_PERCENT, least=0)),
    (
        b.At,
        {"type": "object", "minProperties": 1, "propertyNames": _PERCENT, "additionalProperties": _some(_BUDGET_STEP)},
    ),
    (k.RotateEvery, _DURATION),
    (k.Means, _some(_words(each.value for each in RotationMeans))),
    (f.Wait, _DURATION),
    (Annotated[timedelta, BeforeValidator(network_values.unattached)], _DURATION),
    (network_documents.CheckWord, _words(each.value for each in NetworkCheck)),
    (network_documents.RemediationWord, _words(each.value for each in network_documents.MENDS)),
    (network_documents.Network, _text(r"[0-9A-Fa-f:.]+/[0-9]{1,3}", "203.0.113.0/24")),
    (network_documents.Port, {"type": "integer", "minimum": 1, "maximum": 65_535}),
    (t.State, _words(each.value for each in InstanceState)),
    (t.Keepers, _words(each.value for each in Keeper)),
    (t.VerdictWord, _words(each.value for each in Verdict)),
    (t.OutcomeWord, _words(each.value for each in t.TrialOutcome)),
    (t.ReasonWord, _words(each.value for each in ReasonCode)),
    (t.StepWord, _words(("warn", "snapshot", "stop", "terminate", "none"))),
)
"""What a type of field looks like in YAML, where its own type does not say it."""
PREFIX = {"type": "integer", "minimum": 1, "maximum": 128}
