"""`costguard policy schema`: JSON Schemas for editors."""

from __future__ import annotations

from enum import Enum
from typing import Annotated

import typer

from costguard.cli.options import examples
from costguard.cli.output import to_json

SCHEMA_EXAMPLES = examples(
    "costguard policy schema > costguard.schema.json",
    "costguard policy schema owners",
)


class SchemaFile(str, Enum):
    """What a schema is of."""

    COSTGUARD = "costguard"
    POLICIES = "policies"
    OWNERS = "owners"
    EXCEPTIONS = "exceptions"
    TESTS = "tests"
    MACHINE = "machine"


def schema(
    file: Annotated[
        SchemaFile, typer.Argument(metavar="FILE", help="costguard, policies, owners, exceptions, tests or machine.")
    ] = SchemaFile.COSTGUARD,
) -> None:
    """Print the JSON Schema of one kind of file: completion and hover text for editors.

    Made from what the loader reads by. It knows the form of each value; what needs several keys or files at once only
    `costguard policy check` sees.
    """
    from costguard.policy.schema.documents import schema_of

    typer.echo(to_json(schema_of(file.value)))
