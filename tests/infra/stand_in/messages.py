"""The messages of Terraform's plugin protocol 5 that a provider of resources and data sources takes.

Numbers as in the protocol's published definition, version 5.8; what Terraform sends beyond them is passed over.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from tests.infra.stand_in.wire import Part, Shape

ERROR: Final = 1
LIST, SET, SINGLE = 2, 3, 1  # how blocks nest

_VALUE: Final[Shape] = {"msgpack": Part(1, "bytes"), "json": Part(2, "bytes")}
_STEP: Final[Shape] = {"attribute_name": Part(1, "text"), "key": Part(2, "text"), "index": Part(3, "count")}
_PATH: Final[Shape] = {"steps": Part(1, _STEP, many=True)}
_DIAGNOSTIC: Final[Shape] = {
    "severity": Part(1, "count"),
    "summary": Part(2, "text"),
    "detail": Part(3, "text"),
    "attribute": Part(4, _PATH),
}
_ATTRIBUTE: Final[Shape] = {
    "name": Part(1, "text"),
    "type": Part(2, "bytes"),
    "required": Part(4, "flag"),
    "optional": Part(5, "flag"),
    "computed": Part(6, "flag"),
    "sensitive": Part(7, "flag"),
    "deprecated": Part(9, "flag"),
}
_BLOCK: Final[dict[str, Part]] = {"attributes": Part(2, _ATTRIBUTE, many=True), "deprecated": Part(6, "flag")}
_NESTED: Final[Shape] = {
    "type_name": Part(1, "text"),
    "block": Part(2, _BLOCK),
    "nesting": Part(3, "count"),
    "min_items": Part(4, "count"),
    "max_items": Part(5, "count"),
}
_BLOCK["block_types"] = Part(3, _NESTED, many=True)  # blocks are made of blocks
_SCHEMA: Final[Shape] = {"version": Part(1, "count"), "block": Part(2, _BLOCK)}
_NAMED_SCHEMA: Final[Shape] = {"key": Part(1, "text"), "value": Part(2, _SCHEMA)}
_ABILITIES: Final[Shape] = {"plan_destroy": Part(1, "flag"), "get_provider_schema_optional": Part(2, "flag")}
_RAW: Final[Shape] = {"json": Part(1, "bytes")}
_WRONG: Final = Part(1, _DIAGNOSTIC, many=True)
_CONFIGURED: Final[Shape] = {"type_name": Part(1, "text"), "config": Part(2, _VALUE)}

REQUESTS: Final[Mapping[str, Shape]] = {
    "GetSchema": {},
    "PrepareProviderConfig": {"config": Part(1, _VALUE)},
    "ValidateResourceTypeConfig": _CONFIGURED,
    "ValidateDataSourceConfig": _CONFIGURED,
    "UpgradeResourceState": {"type_name": Part(1, "text"), "raw_state": Part(3, _RAW)},
    "Configure": {"config": Part(2, _VALUE)},
    "ReadResource": {"type_name": Part(1, "text"), "current_state": Part(2, _VALUE)},
    "PlanResourceChange": {
        "type_name": Part(1, "text"),
        "prior_state": Part(2, _VALUE),
        "proposed_new_state": Part(3, _VALUE),
        "config": Part(4, _VALUE),
    },
    "ApplyResourceChange": {
        "type_name": Part(1, "text"),
        "prior_state": Part(2, _VALUE),
        "planned_state": Part(3, _VALUE),
        "config": Part(4, _VALUE),
    },
    "ReadDataSource": _CONFIGURED,
    "Stop": {},
}

ANSWERS: Final[Mapping[str, Shape]] = {
    "GetSchema": {
        "provider": Part(1, _SCHEMA),
        "resource_schemas": Part(2, _NAMED_SCHEMA, many=True),
        "data_source_schemas": Part(3, _NAMED_SCHEMA, many=True),
        "server_capabilities": Part(6, _ABILITIES),
    },
    "PrepareProviderConfig": {"prepared_config": Part(1, _VALUE)},
    "ValidateResourceTypeConfig": {"diagnostics": _WRONG},
    "ValidateDataSourceConfig": {"diagnostics": _WRONG},
    "UpgradeResourceState": {"upgraded_state": Part(1, _VALUE)},
    "Configure": {"diagnostics": _WRONG},
    "ReadResource": {"new_state": Part(1, _VALUE)},
    "PlanResourceChange": {
        "planned_state": Part(1, _VALUE),
        "requires_replace": Part(2, _PATH, many=True),
        "legacy_type_system": Part(5, "flag"),
    },
    "ApplyResourceChange": {
        "new_state": Part(1, _VALUE),
        "diagnostics": Part(3, _DIAGNOSTIC, many=True),
        "legacy_type_system": Part(4, "flag"),
    },
    "ReadDataSource": {"state": Part(1, _VALUE), "diagnostics": Part(2, _DIAGNOSTIC, many=True)},
    "Stop": {"error": Part(1, "text")},
}
