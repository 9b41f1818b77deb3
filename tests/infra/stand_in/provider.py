"""A provider whose cloud is Terraform's own state: what is planned comes true, what a cloud would say is made up."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from tests.infra.stand_in import changes
from tests.infra.stand_in.made_up import AnswersError, MadeUp, read_answers
from tests.infra.stand_in.messages import ANSWERS, ERROR, REQUESTS
from tests.infra.stand_in.schema import Kind, Published
from tests.infra.stand_in.validation import Wrong, wrong_values
from tests.infra.stand_in.values import decoded, encoded, from_json
from tests.infra.stand_in.wire import packed, unpacked

Message = dict[str, Any]
Handler = Callable[[bytes], bytes]

_PROTECTIONS = ("deletion_protection", "delete_protection")


class Provider:
    """Answers each call of the plugin protocol; a call of an unknown type of resource is Terraform's mistake."""

    def __init__(self, known: Published, answers: Path | None) -> None:
        self._known = known
        self._answers = answers
        self._region = ""

    def handlers(self) -> dict[str, Handler]:
        """Path of the call → bytes to bytes."""
        calls: Mapping[str, Callable[[Message], Message]] = {
            "GetSchema": self._schema,
            "PrepareProviderConfig": lambda asked: {"prepared_config": asked["config"]},
            "ValidateResourceTypeConfig": lambda asked: self._validated(self._known.resources, asked),
            "ValidateDataSourceConfig": lambda asked: self._validated(self._known.data, asked),
            "UpgradeResourceState": self._upgraded,
            "Configure": self._configure,
            "ReadResource": lambda asked: {"new_state": asked["current_state"]},
            "PlanResourceChange": self._planned,
            "ApplyResourceChange": self._applied,
            "ReadDataSource": self._read,
            "Stop": lambda _: {},
        }
        return {f"/tfplugin5.Provider/{name}": _handler(name, call) for name, call in calls.items()}

    def _schema(self, _: Message) -> Message:
        return {
            "provider": self._known.configured.protocol(),
            "resource_schemas": [_named(kind) for kind in self._known.resources.values()],
            "data_source_schemas": [_named(kind) for kind in self._known.data.values()],
            "server_capabilities": {"get_provider_schema_optional": True},
        }

    def _validated(self, kinds: Mapping[str, Kind], asked: Message) -> Message:
        kind = kinds[asked["type_name"]]
        return {"diagnostics": [_said(wrong) for wrong in wrong_values(kind.fields, _value(asked["config"]))]}

    def _upgraded(self, asked: Message) -> Message:
        kind = self._known.resources[asked["type_name"]]
        state = from_json(asked["raw_state"]["json"])
        return {"upgraded_state": _sent(changes.conformed(kind.fields, state, ("timeouts",) if kind.timeouts else ()))}

    def _configure(self, asked: Message) -> Message:
        config = _value(asked["config"])
        region = config.get("region")
        self._region = region if isinstance(region, str) else ""
        return {"diagnostics": [_said(wrong) for wrong in wrong_values(self._known.configured.fields, config)]}

    def _planned(self, asked: Message) -> Message:
        kind = self._known.resources[asked["type_name"]]
        prior, proposed = _value(asked["prior_state"]), _value(asked["proposed_new_state"])
        if proposed is None:
            return {"planned_state": asked["proposed_new_state"]}
        new = changes.planned(kind.fields, proposed, prior)
        anew = changes.replaced(kind.fields, prior, new) if prior is not None else []
        return {
            "planned_state": _sent(new),
            "requires_replace": [{"steps": [{"attribute_name": name}]} for name in anew],
            "legacy_type_system": True,
        }

    def _applied(self, asked: Message) -> Message:
        kind = self._known.resources[asked["type_name"]]
        state = _value(asked["planned_state"])
        if state is None:
            return self._removed(asked)
        try:
            made = self._made_up(kind).applied(state, _value(asked["config"]))
        except AnswersError as err:
            return {"new_state": asked["prior_state"], "diagnostics": [_said(((), str(err)))]}
        return {"new_state": _sent(made), "legacy_type_system": True}

    def _removed(self, asked: Message) -> Message:
        """Nothing, but for what protects itself: that stays, as it does at the vendors'."""
        prior = _value(asked["prior_state"]) or {}
        guarding = next((name for name in _PROTECTIONS if prior.get(name) is True), None)
        if guarding is None:
            return {"new_state": asked["planned_state"]}
        return {"new_state": asked["prior_state"], "diagnostics": [_said(((guarding,), "keeps it from being deleted"))]}

    def _read(self, asked: Message) -> Message:
        kind = self._known.data[asked["type_name"]]
        try:
            return {"state": _sent(self._made_up(kind).read(_value(asked["config"])))}
        except AnswersError as err:
            return {"diagnostics": [_said(((), str(err)))]}

    def _made_up(self, kind: Kind) -> MadeUp:
        return MadeUp(kind, self._region, read_answers(self._answers))


def _named(kind: Kind) -> Message:
    return {"key": kind.name, "value": kind.protocol()}


def _handler(name: str, call: Callable[[Message], Message]) -> Handler:
    return lambda data: packed(ANSWERS[name], call(unpacked(REQUESTS[name], data)))


def _value(sent: Message | None) -> Any:
    """A value as Terraform sent it: MessagePack, or JSON where there is none."""
    if sent is None:
        return None
    return decoded(sent["msgpack"]) if sent["msgpack"] else from_json(sent["json"])


def _sent(value: Any) -> Message:
    return {"msgpack": encoded(value)}


def _said(wrong: Wrong) -> Message:
    path, words = wrong
    name = next((part for part in reversed(path) if isinstance(part, str)), "")
    steps = [{"attribute_name": part} if isinstance(part, str) else {"index": part} for part in path]
    return {"severity": ERROR, "summary": f"{name}: {words}" if name else words, "attribute": {"steps": steps}}
