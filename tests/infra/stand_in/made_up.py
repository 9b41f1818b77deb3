"""What a cloud would say of what it made: ids in the vendor's form, addresses, times; the same for the same resource.

STAND_IN_ANSWERS names a file of answers that go before these: {"alicloud_db_instance": {"connection_string": …}}. A
key may name one resource of a type by what it is called there: "alicloud_db_instance.costguard-ledger" (Terraform tells
a provider no address). They replace what the cloud says, never what the configuration says.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from tests.infra.stand_in import changes
from tests.infra.stand_in.made_up_facts import ALIBABA_ACCOUNT, DATA, NAMED_BY, TOLD
from tests.infra.stand_in.schema import Field, Kind
from tests.infra.stand_in.values import UNKNOWN

_MADE: Final = "2026-01-05T09:30:00Z"  # nobody asks when; a time of its own would differ in every run
_EMPTY: Final[Mapping[str, Any]] = {"string": "", "number": 0, "bool": False, "list": [], "set": [], "map": {}}


class AnswersError(Exception):
    """The file of answers is none, or says what no such resource tells."""


def read_answers(path: Path | None) -> dict[str, dict[str, Any]]:
    """The answers of a file; none where no file is named.

    Raises:
        AnswersError: it cannot be read.
    """
    if path is None:
        return {}
    try:
        answers: dict[str, dict[str, Any]] = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError) as err:
        message = f"STAND_IN_ANSWERS: {err}"
        raise AnswersError(message) from err
    return answers


@dataclass(frozen=True, slots=True)
class MadeUp:
    """Of one type of resource or data source."""

    kind: Kind
    region: str
    answers: Mapping[str, Mapping[str, Any]]

    def applied(self, planned: changes.State, config: changes.State) -> changes.State:
        """The state after the change."""
        told = self._told(planned)
        state = changes.filled(
            self.kind.fields, planned, lambda name, field: told[name] if name in told else _plain(name, field)
        )
        answers = self._answered(planned)
        return {**state, **{name: value for name, value in answers.items() if config.get(name) is None}}

    def read(self, config: changes.State) -> changes.State:
        """What a data source answers."""
        empty = {name: config.get(name) for name in self.kind.fields}
        state = {
            name: UNKNOWN if value is None and self.kind.fields[name].told else value for name, value in empty.items()
        }
        words = self._words(state)
        facts = DATA.get(self.kind.name, {})
        told = {"id": self._seed(state)[:10], **{name: _formatted(value, words) for name, value in facts.items()}}
        told |= self._answered(state)
        return changes.filled(
            self.kind.fields, {**state, **told}, lambda name, field: told.get(name, _plain(name, field))
        )

    def _answered(self, state: changes.State) -> dict[str, Any]:
        """What the file of answers says of this one; a number is a text where the provider has a text."""
        named = (f"{self.kind.name}.{state[name]}" for name in NAMED_BY if isinstance(state.get(name), str))
        answers = next((self.answers[key] for key in (*named, self.kind.name) if key in self.answers), {})
        said: dict[str, Any] = {}
        for name, value in answers.items():
            field = self.kind.fields.get(name)
            if field is None or not field.told:
                message = f"STAND_IN_ANSWERS: {self.kind.name} does not tell {name}"
                raise AnswersError(message)
            said[name] = str(value) if field.type == "string" and isinstance(value, int) else value
        return said

    def _told(self, state: changes.State) -> dict[str, Any]:
        """What this type is known to tell, filled from what is known of the resource."""
        words = self._words(state)
        told: dict[str, Any] = {}
        for name, form in TOLD.get(self.kind.name, {}).items():
            told[name] = _formatted(form, {**words, **told})
        told.setdefault("id", words["letters"])
        return told

    def _words(self, state: changes.State) -> dict[str, Any]:
        seed = self._seed(state)
        number = int(seed, 16)
        letters = hashlib.sha256(seed.encode()).hexdigest()
        own = {name: value for name, value in state.items() if isinstance(value, str)}
        return {
            "account": ALIBABA_ACCOUNT,
            "region": self.region,
            "letters": letters[:13],
            "eight": letters[:8],
            "number": str(number)[:8],
            "long": f"4611686028{str(number)[:8]}",
            "uuid": f"{letters[:8]}-{letters[8:12]}-4{letters[13:16]}-a{letters[17:20]}-{letters[20:32]}",
            **own,
        }

    def _seed(self, state: changes.State) -> str:
        """The same for the same configuration, secrets and what is made anew each time left out."""
        said = {
            name: value
            for name, value in state.items()
            if name in self.kind.fields and not self.kind.fields[name].said.get("sensitive") and value is not UNKNOWN
        }
        text = json.dumps([self.kind.name, said], sort_keys=True, default=str)
        return hashlib.sha256(text.encode()).hexdigest()


def _formatted(form: Any, words: Mapping[str, Any]) -> Any:
    if isinstance(form, str):
        return form.format_map(words)
    if isinstance(form, list):
        return [_formatted(one, words) for one in form]
    if isinstance(form, dict):
        return {name: _formatted(one, words) for name, one in form.items()}
    return form


def _plain(name: str, field: Field) -> Any:
    """Of a field of which nothing more is known."""
    if field.type == "string" and name.endswith(("_time", "_date")):
        return _MADE
    if field.type == "string" and field.how == "computed":
        return f"made-up-{name.replace('_', '-')}"
    return _EMPTY[field.type]
