"""Options that several commands share, each defined once."""

from __future__ import annotations

from typing import Annotated

import typer

from costguard.report.words.sentences import Language


def examples(*lines: str) -> str:
    """Examples for the end of a help text, which keeps its lines as they are."""
    return "\b\nExamples:\n" + "\n".join(f"  {line}" for line in lines)


A_POLICY = "one YAML file, a folder with costguard.yaml, or git:REV[:PATH]"
"""What a policy may be given as; docs/policy.md tells the rest."""

Json = Annotated[bool, typer.Option("--json", help="Print JSON on standard output instead of tables.")]
Lang = Annotated[
    Language | None,
    typer.Option("--lang", help="Language of words: English or Simplified Chinese.", show_default="COSTGUARD_LANG"),
]
Sandbox = Annotated[
    bool,
    typer.Option("--sandbox", help="Use an embedded cloud with a made-up fleet: no credentials, no real cloud."),
]
PolicyPath = Annotated[
    str,
    typer.Option(
        "--policy",
        metavar="PATH",
        help=f"The policy: {A_POLICY}.",
        show_default="COSTGUARD_POLICY",
    ),
]
LedgerUrl = Annotated[
    str,
    typer.Option(
        "--ledger",
        metavar="URL",
        help="The ledger: sqlite:///FILE, postgresql://USER@HOST/DATABASE or dynamodb://TABLE?region=REGION.",
        show_default="COSTGUARD_LEDGER",
    ),
]
GuardName = Annotated[
    str, typer.Option("--guard", metavar="NAME", help="Which guard: idle_gpu, budget or kms_rotation.")
]
GuardOfCase = Annotated[
    str,
    typer.Option(
        "--guard",
        metavar="NAME",
        help="Which guard: idle_gpu or budget.",
        show_default="the one with a case of it, idle_gpu first",
    ),
]
By = Annotated[
    str, typer.Option("--by", metavar="NAME", help="Who says so, for the audit.", show_default="the user logged in")
]
Resource = Annotated[
    str,
    typer.Argument(
        metavar="RESOURCE",
        help="The whole id (cloud:account:region:kind:native_id), the cloud's own id (i-0abc…), or a case's id.",
    ),
]
