"""What Terraform made, as its state says it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True)
class Made:
    """One resource: `key` is that of `for_each`, empty without."""

    address: str
    name: str
    key: str
    attributes: Mapping[str, Any]

    def __getitem__(self, attribute: str) -> Any:
        return self.attributes[attribute]


@dataclass(frozen=True, slots=True)
class Deployed:
    """The state of a module that keeps it beside its files."""

    module: Path

    def all(self, kind: str) -> list[Made]:
        """The resources of this type."""
        return list(self._resources(kind))

    def one(self, kind: str, **wanted: object) -> Made:
        """The one resource of this type with these attributes.

        Raises:
            LookupError: there is none, or more than one.
        """
        found = [made for made in self.all(kind) if all(made.attributes.get(name) == to for name, to in wanted.items())]
        if len(found) != 1:
            message = f"{len(found)} of {kind} with {wanted} in the state of {self.module}"
            raise LookupError(message)
        return found[0]

    def addresses(self) -> list[str]:
        """Everything that stands in the state, but what was only read."""
        return [made.address for made in self._resources("")]

    def _resources(self, kind: str) -> Iterator[Made]:
        file = self.module / "terraform.tfstate"
        told = json.loads(file.read_text("utf-8")) if file.exists() else {}
        for resource in told.get("resources", ()):
            if resource["mode"] != "managed" or kind not in {"", resource["type"]}:
                continue
            for instance in resource["instances"]:
                key = str(instance.get("index_key", ""))
                address = f"{resource['type']}.{resource['name']}" + (f"[{key}]" if key else "")
                yield Made(address, resource["name"], key, instance["attributes"])
