"""`costguard exception ask` and `costguard exceptions`: what is to be left alone for longer, and until when."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from costguard.cli.options import By, Json, Lang, LedgerUrl, PolicyPath, Resource, Sandbox, examples
from costguard.cli.output import CommandResult, emit
from costguard.cli.people.answers import text_of, who_says
from costguard.cli.people.ledger_exceptions import AGREE_EXAMPLES, END_EXAMPLES, agree, ask_in_ledger, end
from costguard.cli.program import ledger_in_use, workplace
from costguard.domain.errors import InvalidInputError
from costguard.report.words.sentences import Language, clean, label, phrase

if TYPE_CHECKING:
    from collections.abc import Mapping

    from costguard.adapters.policy_sources.changes import Pushed
    from costguard.adapters.policy_sources.forges import Forge
    from costguard.cases.excepting import ExceptionAsk
    from costguard.cli.program import CliContext
    from costguard.domain.money import Money
    from costguard.domain.refs import ResourceRef
    from costguard.engine.ledger.memory import Memory
    from costguard.policy.exceptions import ExceptionRequest
    from costguard.policy.model.policy import Exemption
    from costguard.settings import Settings

app = typer.Typer(no_args_is_help=True, help="Ask that a machine is left alone until a date.")
ASK_EXAMPLES = examples(
    'costguard exception ask i-0123456789abcdef0 --until 2026-12-24 --because "release tests" --approver finops',
    "costguard exception ask i-0123456789abcdef0 --until 2026-12-24 --because demo --approver kim --in ../gpu-policy",
)
EXCEPTIONS_EXAMPLES = examples("costguard exceptions", "costguard exceptions --policy git:HEAD --json")
_HOURS_A_MONTH = 730


app.command(epilog=AGREE_EXAMPLES)(agree)
app.command(epilog=END_EXAMPLES)(end)


@app.callback()
def exception() -> None:
    """Ask that a machine is left alone until a date."""


@app.command(epilog=ASK_EXAMPLES)
def ask(
    ctx: typer.Context,
    resource: Resource,
    *,
    until: Annotated[str, typer.Option("--until", metavar="DATE", help="The last day, or a moment with its zone.")],
    because: Annotated[str, typer.Option("--because", metavar="TEXT", help="Why, for whoever agrees.")],
    approver: Annotated[str, typer.Option("--approver", metavar="NAME", help="Who agrees to it; not who asks.")] = "",
    owner: Annotated[
        str, typer.Option("--owner", metavar="NAME", help="Whose it is.", show_default="as its case says")
    ] = "",
    folder: Annotated[
        str, typer.Option("--in", metavar="DIR", help="The policy's folder in a checkout of its repository.")
    ] = ".",
    remote: Annotated[str, typer.Option("--remote", metavar="NAME", help="Where the branch is pushed to.")] = "origin",
    base: Annotated[
        str, typer.Option("--base", metavar="BRANCH", help="What it is a change of.", show_default="the remote's own")
    ] = "",
    forge: Annotated[
        str, typer.Option("--forge", metavar="KIND", help="github or gitlab.", show_default="by the remote's host")
    ] = "",
    api: Annotated[
        str, typer.Option("--api", metavar="URL", help="The forge's API.", show_default="that of the remote's host")
    ] = "",
    in_ledger: Annotated[
        bool, typer.Option("--in-ledger", help="Where no repository is: the ledger keeps it, once an approver agreed.")
    ] = False,
    by: By = "",
    policy: PolicyPath = "",
    ledger: LedgerUrl = "",
    sandbox: Sandbox = False,
    as_json: Json = False,
    lang: Lang = None,
) -> None:
    """Ask for an exception: a branch of the policy repository with one entry more, and a pull request where one can be.

    Nothing is excepted before the change is merged and published. The work tree is not touched, no branch is
    overwritten, and the file keeps its comments and its order. With COSTGUARD_FORGE_TOKEN a pull request is opened on
    GitHub or GitLab; without, the branch is pushed. With --in-ledger one of the policy's approvers has to agree, who
    did not ask: by the button in Slack, or with `costguard exception agree`.
    """
    from costguard.policy.exceptions import ExceptionRequest, check_request

    with workplace(ctx, lang=lang, sandbox=sandbox, policy=policy, ledger=ledger, cloud=False) as here:
        now = here.clock.now()
        expires = moment_of(until)
        if in_ledger:
            emit(_asked_in_ledger(here, resource, because, expires, by), as_json=as_json)
        if not approver:
            message = "--approver is missing: who agrees to it; with --in-ledger it is an approver of the policy"
            raise InvalidInputError(message)
        with ledger_in_use(here) as memory:
            known = _known(memory, resource)
        if owner and known.owner and owner != known.owner:
            message = f"{known.ref} is of {known.owner}, not of {owner}: its owner asks, or whoever speaks for it"
            raise InvalidInputError(message)
        asked = ExceptionRequest(
            str(known.ref),
            owner or known.owner,
            because.strip(),
            approver.strip(),
            expires,
            who_says(text_of(by, "--by")),
        )
        check_request(asked, now, _longest(here.settings, Path(folder)))
        pushed, where = _proposed(here.settings, asked, Path(folder), remote, base)
        url = _opened(here.settings, pushed, asked, where, forge, api)
        lines = [
            phrase(
                "exception_asked" if pushed.fresh else "exception_asked_before",
                here.language,
                resource=asked.resource,
                until=asked.entry["expires"],
                branch=pushed.branch,
                base=pushed.base,
            ),
            phrase(
                "exception_request" if url else "exception_no_request", here.language, url=url, branch=pushed.branch
            ),
        ]
    told = {
        "schema": 1,
        "id": asked.resource,
        "entry": dict(asked.entry),
        "branch": pushed.branch,
        "base": pushed.base,
        "commit": pushed.commit,
        "fresh": pushed.fresh,
        "request": url or None,
    }
    emit(CommandResult(told, lines=lines), as_json=as_json)


def _asked_in_ledger(here: CliContext, resource: str, because: str, expires: datetime, by: str) -> CommandResult:
    from costguard.policy.exceptions import ExceptionRequest

    with ledger_in_use(here) as memory:
        known = _known(memory, resource)
        whose, who = known.owner or "-", who_says(text_of(by, "--by"))
        asked = ExceptionRequest(str(known.ref), whose, because.strip(), "notify.answers.approvers", expires, who)
        return ask_in_ledger(here, memory, asked, here.clock.now())


def exceptions(
    ctx: typer.Context,
    *,
    policy: PolicyPath = "",
    ledger: LedgerUrl = "",
    sandbox: Sandbox = False,
    as_json: Json = False,
    lang: Lang = None,
) -> None:
    """List exceptions of the policy and of the ledger: whose, until when, who agreed, and what each costs.

    The cost is what the last look of a run found running, at list price; of a selection of machines, and of what no run
    has seen, it is not known. Those that end within seven days are marked, and those that wait for an approver.
    """
    from costguard.bootstrap import read_policy
    from costguard.engine.ledger.exceptions import exemption_of
    from costguard.report.json_values import moment
    from costguard.report.tables import Column, Table

    with workplace(ctx, lang=lang, sandbox=sandbox, policy=policy, ledger=ledger, cloud=False) as here:
        found, now, language = read_policy(here.settings).exemptions, here.clock.now(), here.language
        with ledger_in_use(here) as memory:
            seen = _metered(memory)
            kept = memory.snoozes.active(now).values()
            found += tuple(exemption_of(each) for each in kept if each.approver)
            found += tuple(_asked_for(each) for each in memory.exceptions.all() if each.is_open(now))
    ordered = sorted(found, key=lambda each: (each.expires_at, each.where))
    told = [_told(each, _cost_of(each, seen), now) for each in ordered]
    titles = (
        *("resource", "owner", "exception_until", "exception_state", "cost_month", "exception_approver"),
        *("exception_where", "why"),
    )
    columns = tuple(Column(name, label(name, language), numeric=name == "cost_month") for name in titles)
    rows = tuple(
        (
            one["what"],
            clean(each.owner),
            moment(each.expires_at),
            phrase(f"exception_{one['state']}", language, days=(each.expires_at - now).days),
            _month(_cost_of(each, seen), language),
            clean(each.approver),
            clean(each.where),
            clean(each.reason),
        )
        for each, one in zip(ordered, told, strict=True)
    )
    table = Table(phrase("exceptions_title", language), columns, rows)
    emit(
        CommandResult(
            {"schema": 1, "exceptions": told},
            lines=() if told else (phrase("exceptions_none", language),),
            tables=(table,) if told else (),
        ),
        as_json=as_json,
    )


def moment_of(text: str) -> datetime:
    """A day, which lasts until its end in UTC, or a moment that names its zone.

    Raises:
        InvalidInputError: neither.
    """
    try:
        if len(text) == len("2026-12-24"):
            return datetime.strptime(text, "%Y-%m-%d").replace(tzinfo=timezone.utc) + timedelta(days=1)
        moment = datetime.fromisoformat(text.replace("Z", "+00:00"))
    except ValueError:
        moment = None
    if moment is None or moment.tzinfo is None:
        message = f"--until {text}: expected a day, 2026-12-24, or a moment with its zone, 2026-12-24T18:00:00+08:00"
        raise InvalidInputError(message)
    return moment.astimezone(timezone.utc)


class _Known:
    """A machine that a run has seen; its owner, where a case says one."""

    def __init__(self, ref: ResourceRef, owner: str) -> None:
        self.ref, self.owner = ref, owner


def _known(memory: Memory, resource: str) -> _Known:
    """The one machine of that id.

    Raises:
        InvalidInputError: no run has seen it, or there are several.
    """
    from costguard.guards import OF_MACHINES

    cases = [case for guard in OF_MACHINES for case in memory.cases.all(guard)]
    refs = {case.subject for case in cases} | set(_metered(memory))
    found = sorted((ref for ref in refs if resource in {str(ref), ref.native_id}), key=str)
    if len(found) != 1:
        named = ", ".join(map(str, found))
        said = (
            f"is ambiguous: {named}; give the full id"
            if found
            else "was seen by no run; `costguard scan` lists what is there"
        )
        message = f"{resource!r} {said}"
        raise InvalidInputError(message)
    owners = [case.owner for case in cases if case.subject == found[0] and case.owner]
    return _Known(found[0], owners[-1] if owners else "")


def _metered(memory: Memory) -> dict[ResourceRef, Money | None]:
    """Every machine that runs were told of → what an hour of it costs, None where that is not known."""
    from costguard.domain.refs import CLOUDS

    runs = [run for cloud in CLOUDS for sheet in memory.meter.others(cloud, ()) for run in sheet.runs]
    return {run.metered.ref: run.metered.hourly for run in sorted(runs, key=lambda one: one.metered.since)}


def _longest(settings: Settings, folder: Path) -> timedelta:
    """As the policy in that folder has it; one that is broken, or is none, says nothing."""
    from costguard.connections.policies import policy_source
    from costguard.policy.documents.loader import load_policy
    from costguard.policy.model.policy import LONGEST_EXCEPTION

    try:
        return load_policy(policy_source(settings, str(folder)).read()).longest_exception
    except InvalidInputError:
        return LONGEST_EXCEPTION


def _proposed(settings: Settings, asked: ExceptionRequest, folder: Path, remote: str, base: str) -> tuple[Pushed, str]:
    """The branch, and the remote's address."""
    from costguard.adapters.policy_sources.changes import PolicyRepository
    from costguard.policy.exceptions import FILE, with_exception
    from costguard.settings import process_environment

    if settings.host != "local":
        message = "a function pushes to no repository; ask from a desk or from CI"
        raise InvalidInputError(message)
    if not folder.is_dir():
        message = f"{folder}: no such folder; name the policy's with --in"
        raise InvalidInputError(message)
    repository = PolicyRepository(process_environment(), folder, remote)
    said = f"{asked.title}\n\n{asked.reason}\n\nAsked for by {asked.by}; {asked.approver} is to agree.\n"
    pushed = repository.propose(FILE, lambda text: with_exception(text, asked), asked.branch, said, base)
    return pushed, repository.address()


def _opened(settings: Settings, pushed: Pushed, asked: ExceptionRequest, address: str, kind: str, api: str) -> str:
    """Where the pull request is; empty where there is no forge or no token."""
    from costguard.adapters.policy_sources.forges import forge_of, open_request

    forge: Forge | None = forge_of(address, kind=kind, api=api)
    if forge is None or not settings.forge_token:
        return ""
    body = "\n".join(
        (
            f"`{asked.resource}` of {asked.owner} is to be left alone until {asked.entry['expires']}.",
            "",
            asked.reason,
            "",
        )
    )
    body += f"\nAsked for by {asked.by}. {asked.approver} is to agree; whoever asks does not."
    return open_request(forge, settings.forge_token.reveal(), pushed.branch, pushed.base, asked.title, body)


def _what(each: Exemption) -> str:
    resources = each.owns.resources
    return clean(resources[0]) if resources else each.where


def _cost_of(each: Exemption, seen: Mapping[ResourceRef, Money | None]) -> Money | None:
    wanted = set(each.owns.resources or ())
    found = [hourly for ref, hourly in seen.items() if wanted & {str(ref), ref.native_id}]
    return found[0] if len(found) == 1 else None


def _asked_for(asked: ExceptionAsk) -> Exemption:
    """As one that nobody agreed to yet."""
    from costguard.guards.rules.common import Selector
    from costguard.policy.model.policy import IN_LEDGER, Exemption

    return Exemption(Selector(resources=(asked.ref_text,)), asked.owner, asked.reason, "", asked.until, IN_LEDGER)


def _told(each: Exemption, hourly: Money | None, now: datetime) -> dict[str, Any]:
    from costguard.engine.notify.exceptions import ENDING
    from costguard.report.json_values import moment, money_json

    left = each.expires_at - now
    state = "ended" if left <= timedelta(0) else "ends_soon" if left <= ENDING else "lasts"
    state = state if each.approver else "waits"  # a policy names one for each of its own
    return {
        "what": _what(each),
        "where": each.where,
        "owner": each.owner,
        "reason": each.reason,
        "approver": each.approver,
        "expires": moment(each.expires_at),
        "state": state,
        "hourly_cost": None if hourly is None else money_json(hourly),
        "monthly_cost": None if hourly is None else money_json(hourly.times(_HOURS_A_MONTH)),
    }


def _month(hourly: Money | None, language: Language) -> str:
    return phrase("price_unknown", language) if hourly is None else str(hourly.times(_HOURS_A_MONTH))
