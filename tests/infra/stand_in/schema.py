"""What the two providers' resources take and tell, from published/types/*.json.

Those files say of each field what the provider's source says, at the edition they name: its type, whether it is given
or told, whether a change of it makes the resource anew, which values it takes. Absent there: a text that may be given.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal

from tests.infra.stand_in.messages import LIST, SET, SINGLE

PUBLISHED: Final = Path(__file__).parents[1] / "published" / "types"
FOLDERS: Final = {"alicloud": "alibaba", "tencentcloud": "tencent"}
"""Provider's name → the folder in infra/, and the name of its file here."""

How = Literal["required", "optional", "either", "computed"]
_COLLECTIONS: Final = frozenset({"list", "set", "map"})


@dataclass(frozen=True, slots=True)
class Field:
    """One argument or attribute, or one kind of block; `said` is its whole entry."""

    type: str
    how: How
    forces: bool
    said: Mapping[str, Any]
    of: Mapping[str, Field] | Field | str | None  # the fields of a block or an object, or what a collection is of

    @property
    def told(self) -> bool:
        """Whether the cloud fills it where nobody says it."""
        return self.how in {"computed", "either"}

    @property
    def is_block(self) -> bool:
        """Whether it is written as a block: what has fields of its own and may be given."""
        return isinstance(self.of, Mapping) and self.how != "computed"

    def terraform_type(self) -> Any:
        """As the protocol writes types, in JSON."""
        if self.type not in _COLLECTIONS:
            return self.type
        if isinstance(self.of, Mapping):
            return [self.type, ["object", {name: inner.terraform_type() for name, inner in self.of.items()}]]
        return [self.type, self.of.terraform_type() if isinstance(self.of, Field) else self.of]


@dataclass(frozen=True, slots=True)
class Kind:
    """One type of resource or of data source."""

    name: str
    fields: Mapping[str, Field]
    version: int = 0
    timeouts: tuple[str, ...] = ()

    def protocol(self) -> dict[str, Any]:
        """As the protocol says a schema."""
        block = _block(self.fields)
        if self.timeouts:
            names = [{"name": name, "type": b'"string"', "optional": True} for name in self.timeouts]
            block["block_types"].append({"type_name": "timeouts", "block": {"attributes": names}, "nesting": SINGLE})
        return {"version": self.version, "block": block}


@dataclass(frozen=True, slots=True)
class Published:
    """One provider."""

    source: str
    version: str
    configured: Kind
    resources: Mapping[str, Kind]
    data: Mapping[str, Kind] = field(default_factory=dict)


def published(provider: str) -> Published:
    """What is known of `alicloud` or `tencentcloud`."""
    said = json.loads((PUBLISHED / f"{FOLDERS[provider]}.json").read_text("utf-8"))
    return Published(
        said["provider"],
        said["version"],
        Kind(provider, _fields(said["configured"])),
        {name: _kind(name, one) for name, one in said["resource"].items()},
        {name: _kind(name, one) for name, one in said["data"].items()},
    )


def _kind(name: str, said: Mapping[str, Any]) -> Kind:
    own_id = {"id": Field("string", "either", forces=False, said={}, of=None)}
    return Kind(name, {**own_id, **_fields(said["fields"])}, said.get("version", 0), tuple(said.get("timeouts", ())))


def _fields(said: Mapping[str, Any]) -> dict[str, Field]:
    return {name: _field(one) for name, one in said.items()}


def _field(said: Mapping[str, Any]) -> Field:
    of = said.get("of")
    if isinstance(of, Mapping):
        of = _field(of["[]"]) if "[]" in of else _fields(of)
    return Field(said.get("type", "string"), said.get("how", "optional"), said.get("forces", False), said, of)


def _block(fields: Mapping[str, Field]) -> dict[str, Any]:
    return {
        "attributes": [_attribute(name, one) for name, one in fields.items() if not one.is_block],
        "block_types": [_nested(name, one) for name, one in fields.items() if one.is_block],
    }


def _attribute(name: str, one: Field) -> dict[str, Any]:
    return {
        "name": name,
        "type": json.dumps(one.terraform_type()).encode(),
        "required": one.how == "required",
        "optional": one.how in {"optional", "either"},
        "computed": one.told,
        "sensitive": one.said.get("sensitive", False),
        "deprecated": one.said.get("deprecated", False),
    }


def _nested(name: str, one: Field) -> dict[str, Any]:
    """A required block is one of which there is at least one, as the vendors' toolkit says it."""
    least = max(1, one.said.get("least", 1)) if one.how == "required" else 0
    return {
        "type_name": name,
        "block": _block(one.of if isinstance(one.of, Mapping) else {}),
        "nesting": SET if one.type == "set" else LIST,
        "min_items": least,
        "max_items": one.said.get("most", 0),
    }
