"""`costguard policy diff`: what a changed policy means, before it is merged."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from costguard.cli.exits import Exit
from costguard.cli.options import A_POLICY, Json, Lang, examples
from costguard.cli.output import CommandResult, emit
from costguard.cli.program import workplace
from costguard.domain.errors import InvalidInputError

if TYPE_CHECKING:
    from costguard.policy.model.policy import Policy
    from costguard.ports import PolicyText

DIFF_EXAMPLES = examples(
    "costguard policy diff main/ changed/",
    "costguard policy diff main/ changed/ --markdown > comment.md",
    "costguard policy diff git:origin/main:policy policy/",
)
Markdown = Annotated[bool, typer.Option("--markdown", help="Print Markdown, as a comment for the pull request.")]


def diff(
    ctx: typer.Context,
    old: Annotated[str, typer.Argument(metavar="OLD", help=f"The policy as it is: {A_POLICY}.")],
    new: Annotated[str, typer.Argument(metavar="NEW", help="The policy as it is to be.")],
    *,
    markdown: Markdown = False,
    as_json: Json = False,
    lang: Lang = None,
) -> None:
    """Say what a change of the policy means: what loosens, what tightens, and which machines fall to a harsher rule.

    Compares what the policies say, not their text: comments, order and another way to write the same are no
    difference. What cannot be proved a tightening counts as looser. Reads no cloud and no ledger.

    Exit status: 0 nothing loosens, 10 something does.
    """
    one_form(as_json=as_json, markdown=markdown)
    from costguard.policy.diff.differences import loosening
    from costguard.policy.diff.policies import policy_differences
    from costguard.report.policy.diff import diff_json, diff_markdown, diff_summary, diff_table

    before, after = policy_at(ctx, old), policy_at(ctx, new)
    found = policy_differences(before, after)
    status = Exit.DUE if loosening(found) else Exit.OK
    with workplace(ctx, lang=lang) as here:
        language = here.language
    if markdown:
        typer.echo(diff_markdown(found, language), nl=False)
        raise typer.Exit(status)
    emit(
        CommandResult(
            diff_json(found, before.digest, after.digest),
            tables=(diff_table(found, language),) if found else (),
            closing=(diff_summary(found, language),),
            exit=status,
        ),
        as_json=as_json,
    )


def policy_at(ctx: typer.Context, path: str) -> Policy:
    """The policy at a path, or at an address in git.

    Raises:
        InvalidInputError: nothing there, or not a valid policy; tells every mistake.
        ProviderError: a repository could not be reached.
    """
    from costguard.policy.documents.loader import load_policy

    return load_policy(text_at(ctx, path))


def text_at(ctx: typer.Context, path: str) -> PolicyText:
    """The files of the policy at a path, or at an address in git; their revision is then the commit.

    Raises:
        InvalidInputError: nothing there, or no text.
        ProviderError: a repository could not be reached.
    """
    from costguard.connections.policies import policy_source

    with workplace(ctx) as here:
        return policy_source(here.settings, path).read()


def commit_of(path: str, text: PolicyText) -> str:
    """The commit that was read; empty for files."""
    from costguard.adapters.policy_sources.files import is_git

    return text.revision if is_git(path) else ""


def one_form(*, as_json: bool, markdown: bool) -> None:
    """Raise InvalidInputError where two forms are asked for at once."""
    if as_json and markdown:
        message = "--json and --markdown both want standard output; give one of them"
        raise InvalidInputError(message)
