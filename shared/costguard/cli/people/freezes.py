"""`costguard budgets thaw`, `freeze-policy`, `freeze-role`: people's word on a launch freeze, and what it rests on."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any, Protocol

import typer

from costguard.cli.options import By, Json, Lang, LedgerUrl, PolicyPath, Sandbox, examples
from costguard.cli.output import CommandResult, emit
from costguard.cli.people.answers import text_of, who_says
from costguard.cli.program import ledger_in_use, workplace
from costguard.domain.errors import InvalidInputError
from costguard.domain.refs import CLOUDS, provider_of
from costguard.report.words.sentences import Language, clean, phrase

if TYPE_CHECKING:
    from costguard.domain.actions import LaunchFreeze

FreezeName = Annotated[
    str, typer.Argument(metavar="NAME", help="The freeze's name under launch_freezes in the policy.")
]
Cloud = Annotated[str, typer.Argument(metavar="CLOUD", help="aws, aws-cn, alibaba, tencent and so on, as in a policy.")]

THAW_EXAMPLES = examples(
    'costguard budgets thaw no-new-gpus --reason "conference deadline"',
)


def thaw(
    ctx: typer.Context,
    name: FreezeName,
    *,
    reason: Annotated[str, typer.Option("--reason", metavar="TEXT", help="Why; everybody who looks is shown it.")],
    by: By = "",
    policy: PolicyPath = "",
    ledger: LedgerUrl = "",
    sandbox: Sandbox = False,
    as_json: Json = False,
    lang: Lang = None,
) -> None:
    """End a launch freeze, or keep one from beginning, until the budget's next period.

    The next run of the budget guard takes the policy off, and leaves it off. What somebody else attached by hand stays.
    """
    who, why = who_says(by), text_of(reason, "--reason")
    with workplace(ctx, lang=lang, sandbox=sandbox, policy=policy, ledger=ledger, cloud=False) as here:
        from costguard.bootstrap import read_policy
        from costguard.engine.guards.budgets import freeze as thawing
        from costguard.report.budget.freeze_views import thaw_words

        with ledger_in_use(here) as memory:
            done = thawing.thaw(memory, read_policy(here.settings), name, who, why, here.clock.now())
        said = thaw_words(done.state, done.period, who, why, here.language)
    data = {"schema": 1, "name": name, "period": done.period, "phase": done.state.phase.value, "by": who, "reason": why}
    emit(CommandResult(data, lines=(said,)), as_json=as_json)


FREEZE_POLICY_EXAMPLES = examples(
    "costguard budgets freeze-policy aws > freeze.json",
)


def freeze_policy(ctx: typer.Context, cloud: Cloud, *, as_json: Json = False, lang: Lang = None) -> None:
    """Print a policy that denies launching GPU machines unless they are tagged as approved.

    For people to review and to write into the cloud: Costguard attaches and detaches it, and can write none. What it
    leaves open is told on standard error, or with `--json` beside it.
    """
    with workplace(ctx, lang=lang, cloud=False) as here:
        if cloud not in CLOUDS:
            message = f"{clean(cloud)!r} is no cloud; expected one of {', '.join(CLOUDS)}"
            raise InvalidInputError(message)
        documents = _documents(cloud)
        _tell(documents.denying_policy(cloud), "freeze_limits", documents.LIMITS, here.language, as_json=as_json)


FREEZE_ROLE_EXAMPLES = examples(
    "costguard budgets freeze-role no-new-gpus --policy policies/ > role.json",
)


def freeze_role(
    ctx: typer.Context, name: FreezeName, *, policy: PolicyPath = "", as_json: Json = False, lang: Lang = None
) -> None:
    """Print what the role needs that attaches and detaches one launch freeze, and nothing more.

    For people to review and to write into the cloud. What the vendor's permissions cannot narrow is told on standard
    error, or with `--json` beside it.
    """
    with workplace(ctx, lang=lang, policy=policy, cloud=False) as here:
        from costguard.bootstrap import read_policy

        known = {each.name: each for each in read_policy(here.settings).launch_freezes}
        if name not in known:
            there = f"; there is {', '.join(known)}" if known else ""
            message = f"the policy has no launch freeze {clean(name)!r}{there}"
            raise InvalidInputError(message)
        freeze = known[name]
        documents = _documents(freeze.cloud)
        limits = documents.role_limits(freeze)
        _tell(documents.role_policy(freeze), "freeze_role_limits", limits, here.language, as_json=as_json)


class _Documents(Protocol):
    """A provider's `freeze.py`."""

    LIMITS: tuple[str, ...]

    def denying_policy(self, cloud: str, /) -> dict[str, Any]: ...
    def role_policy(self, freeze: LaunchFreeze, /) -> dict[str, Any]: ...
    def role_limits(self, freeze: LaunchFreeze, /) -> tuple[str, ...]: ...


def _documents(cloud: str) -> _Documents:
    provider = provider_of(cloud)
    if provider == "aws":
        from costguard.providers.aws.iam import freeze as aws

        return aws
    if provider == "alibaba":
        from costguard.providers.alibaba.iam import freeze as alibaba

        return alibaba
    if provider == "tencent":
        from costguard.providers.tencent.iam import freeze as tencent

        return tencent
    message = f"{cloud} has no launch freezes"
    raise InvalidInputError(message)


def _tell(document: dict[str, Any], title: str, limits: Sequence[str], language: Language, *, as_json: bool) -> None:
    """The document alone on standard output, so that it can be redirected; what it leaves open beside it."""
    told = [phrase(f"freeze_limit_{limit}", language) for limit in limits]
    if not as_json and told:
        typer.echo(phrase(title, language), err=True)
        for line in told:
            typer.echo(f"  {line}", err=True)
    text = json.dumps(document, indent=2, ensure_ascii=False)
    emit(
        CommandResult({"schema": 1, "document": document, "limits": told}, lines=tuple(text.splitlines())),
        as_json=as_json,
    )
