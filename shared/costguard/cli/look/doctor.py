"""`costguard doctor`: is it safe to enforce, and if not, what mends it."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer
from typing_extensions import assert_never

from costguard.cli.exits import Exit
from costguard.cli.options import Json, Lang, LedgerUrl, PolicyPath, Sandbox, examples
from costguard.cli.output import CommandResult, emit, safe
from costguard.cli.program import CliContext, ledger_read_only, sqlite_file, workplace
from costguard.cli.progress import shard_progress
from costguard.cli.wrapping import cells, wrapped
from costguard.domain.errors import InvalidInputError, LedgerError, ProviderError
from costguard.report.words.sentences import Language

if TYPE_CHECKING:
    from rich.console import Console

    from costguard.connections import Connections
    from costguard.engine.ledger.memory import Memory
    from costguard.policy.model.policy import Policy
    from costguard.ports import CallCount, Target
    from costguard.report.doctor.checks import Diagnosis, DoctorCheck, Health
    from costguard.settings import Settings

DOCTOR_EXAMPLES = examples(
    "costguard doctor --policy policies/",
    "costguard doctor --sandbox",
    "costguard doctor --owner nlp --policy policies/",
    "costguard doctor --json --lang zh",
)


_OF_THIS_MACHINE = frozenset({"sqlite", "memory"})
"""Ledgers that no function elsewhere can reach."""


def doctor(
    ctx: typer.Context,
    *,
    owner: Annotated[
        str, typer.Option("--owner", metavar="TEAM", help="Only this team.", show_default="the whole deployment")
    ] = "",
    policy: PolicyPath = "",
    ledger: LedgerUrl = "",
    sandbox: Sandbox = False,
    as_json: Json = False,
    lang: Lang = None,
) -> None:
    """Say whether it is safe to enforce: for every target, and for this deployment.

    Who the credentials are, what they may do, which regions answer, what is measured, whether the clock is right and
    whether another Costguard works there; then ledger, policy, channel and kill switch. Changes nothing: what may be
    done is learnt from dry runs.

    With --owner of one team alone: its machines, channel, mode and exceptions, and who would be told of what.
    """
    with workplace(ctx, lang=lang, sandbox=sandbox, policy=policy, ledger=ledger) as here:
        found = _of_team(here, owner) if owner else _diagnosis(here)
        language = here.language
    from costguard.report.doctor.views import doctor_json

    if not as_json:
        tell(found, language, _console() if sys.stdout.isatty() else None)
        raise typer.Exit(_status(found.verdict))
    emit(CommandResult(doctor_json(found, language), exit=_status(found.verdict)), as_json=True)


def _diagnosis(here: CliContext) -> Diagnosis:
    from costguard.bootstrap import read_policy
    from costguard.engine.doctor.checks import policy_check
    from costguard.engine.doctor.doctor import examine_ledger, examine_switch
    from costguard.engine.doctor.settings import examine_runs, examine_secrets
    from costguard.report.doctor.checks import Diagnosis

    checks: list[DoctorCheck] = []
    calls: Sequence[CallCount] = ()
    with _ledger(here) as memory:
        policy: Policy | None = None
        try:
            policy = read_policy(here.settings)
        except (InvalidInputError, ProviderError) as err:  # a bundle that cannot be read is no policy
            checks.append(policy_check(err))
        else:
            asked, calls = _of_targets(here, policy, memory)
            checks.extend(asked)
        path = sqlite_file(here.settings)
        kind = here.settings.ledger.reveal().partition(":")[0].lower()
        checks.append(examine_ledger(memory, kind, is_new=path is not None and not path.exists()))
        checks.extend(examine_secrets(here.settings.plaintext, here.settings.host))
        checks.append(examine_switch(memory, host_paused=here.settings.paused))
        if policy is not None:
            checks.extend(examine_runs(memory, policy, here.clock.now(), shared=kind not in _OF_THIS_MACHINE))
    return Diagnosis(here.clock.now(), tuple(checks), tuple(calls))


def _of_team(here: CliContext, owner: str) -> Diagnosis:
    from costguard.bootstrap import read_policy
    from costguard.connections import Connections
    from costguard.engine.doctor.team import examine_team, team_seen
    from costguard.engine.run.scan import scan
    from costguard.report.doctor.checks import Diagnosis

    policy = read_policy(here.settings, here.clock)
    with (
        _ledger(here) as memory,
        Connections(here.settings, policy, here.clock) as connections,
        shard_progress("Asking") as step,
    ):
        targets = _targets(here, policy)
        connections.open(targets)
        seen = scan(connections.readings, targets, policy.idle_gpu, here.clock, progress=step)
        known = None if isinstance(memory, LedgerError) else memory
        now = here.clock.now()
        team = team_seen(owner, policy, seen, known, now)
        checks = tuple(examine_team(team, policy, seen, _sending(here.settings), now))
        calls = _added_up(call for ports in connections.clouds.values() for call in ports.calls.calls_made())
    return Diagnosis(now, checks, calls)


def _sending(settings: Settings) -> frozenset[str]:
    """The schemes and addresses that are set up here and usable."""
    from costguard.engine.doctor.checks import UNSIGNED

    return _proving(settings) | {address for address, said in _robots(settings).items() if said in {"", UNSIGNED}}


def _of_targets(
    here: CliContext, policy: Policy, memory: Memory | LedgerError
) -> tuple[Sequence[DoctorCheck], Sequence[CallCount]]:
    """What is asked of the clouds, and of the policy that names them."""
    from costguard.connections import Connections
    from costguard.domain.refs import Deployment
    from costguard.engine.doctor.checks import channel_check, examine_freezes, examine_robots
    from costguard.engine.doctor.doctor import Practice, examine_bills, examine_policy, examine_targets

    targets = _targets(here, policy)
    with Connections(here.settings, policy, here.clock) as connections, shard_progress("Asking") as step:
        connections.open(targets)
        asking = {cloud: ports.preflight() for cloud, ports in connections.clouds.items()}
        practice = Practice(
            policy=policy,
            targets=targets,
            readings=connections.readings,
            preflights={cloud: preflight for cloud, (preflight, _) in asking.items()},
            memory=None if isinstance(memory, LedgerError) else memory,
            clock=here.clock,
            progress=step,
            trails=connections.trails(),
            deployment=Deployment(here.settings.deployment, _called(memory)),
        )
        bills = examine_bills(policy, targets, connections.spends() if policy.budgets else {}, here.clock.now())
        freezing = {freeze.cloud: connections.freezes_seen(freeze.cloud) for freeze in policy.launch_freezes}
        freezes = examine_freezes(policy, lambda cloud: freezing[cloud][0], practice.memory)
        settings = _of_settings(policy, targets, connections)
        found = [*examine_targets(practice), *bills, *settings, *freezes, examine_policy(practice)]
        logs = [*(ports.calls for ports in connections.clouds.values()), *(log for _, log in asking.values())]
        logs += [log for _, log in freezing.values()]
        calls = _added_up(call for log in logs for call in log.calls_made())
    robots = _robots(here.settings)
    found.append(channel_check(policy, _sending(here.settings)))
    found.extend(examine_robots(robots))
    return found, calls


def _called(memory: Memory | LedgerError) -> str:
    """What the ledger is called; one that cannot be read is told elsewhere."""
    try:
        return "" if isinstance(memory, LedgerError) else memory.identity.known()
    except LedgerError:
        return ""


def _of_settings(policy: Policy, targets: Sequence[Target], connections: Connections) -> Iterator[DoctorCheck]:
    """What is asked of keys and networks, where the policy has rules for them."""
    from costguard.engine.doctor.settings import examine_keys, examine_networks

    if policy.kms_rotation:
        yield from examine_keys(targets, connections.readings, connections.keys())
    if policy.network_audit:
        yield from examine_networks(targets, connections.readings, connections.networks())


def _proving(settings: Settings) -> frozenset[str]:
    """The schemes of the channels that are set up here."""
    there = {
        "slack": bool(settings.slack_token),
        "mailto": bool(settings.mail_via),
        "https": bool(settings.webhook_secret),
        "http": bool(settings.webhook_secret) and settings.webhook_private,
    }
    return frozenset(scheme for scheme, is_set_up in there.items() if is_set_up)


def _robots(settings: Settings) -> Mapping[str, str]:
    """The robots that are set up here, and what is to be said of each."""
    from costguard.connections.people import robots_looked_at

    return robots_looked_at(settings)


def _targets(here: CliContext, policy: Policy) -> Sequence[Target]:
    from costguard.bootstrap import targets_of

    if here.sandbox is not None and not policy.accounts:
        return here.sandbox.targets
    return targets_of(policy, here.settings)


@contextmanager
def _ledger(here: CliContext) -> Iterator[Memory | LedgerError]:
    """The ledger, or why it cannot be opened: one more thing to tell."""
    with ExitStack() as opened:
        found: Memory | LedgerError
        try:
            found = opened.enter_context(ledger_read_only(here))
        except LedgerError as err:
            found = err
        yield found


def _added_up(calls: Iterator[CallCount]) -> tuple[CallCount, ...]:
    """One row an operation, though several sessions sent it."""
    found: dict[str, CallCount] = {}
    for call in calls:
        known = found.get(call.operation)
        found[call.operation] = call if known is None else replace(known, calls=known.calls + call.calls)
    return tuple(found[name] for name in sorted(found))


def _status(verdict: Health) -> Exit:
    from costguard.report.doctor.checks import Health

    if verdict is Health.OK or verdict is Health.WARNING:
        return Exit.OK
    if verdict is Health.COULD_NOT_TELL:
        return Exit.GAPS
    if verdict is Health.BARS:
        return Exit.UNSAFE
    assert_never(verdict)


def tell(found: Diagnosis, language: Language, console: Console | None = None) -> None:
    """Each check with its verdict in front, coloured on the terminal given; the sentence that decides comes last."""
    from costguard.report.doctor.views import calls_words, check_lines, health_words, verdict_words

    wide = max(cells(health_words(check.health, language)) for check in found.checks)
    for check in found.checks:
        label = health_words(check.health, language)
        first, *more = check_lines(check, language)
        _line(first, label + " " * (wide - cells(label) + 2), check.health, console)
        for line in more:
            _line(line, " " * (wide + 4), None, console)
    _line(calls_words(found, language), "", None, console)
    _line(verdict_words(found, language), "", found.verdict, console)


def _line(text: str, start: str, health: Health | None, console: Console | None) -> None:
    if console is None:
        typer.echo(safe(start + text))
        return
    from rich.text import Text

    first, *more = wrapped(safe(text), start, 0, console.width)
    marked = Text(first)
    if health is not None:
        marked.stylize(_style(health), 0, len(start) or len(first))
    for line in (marked, *map(Text, more)):
        console.print(line, soft_wrap=True)


def _style(health: Health) -> str:
    from costguard.report.doctor.checks import Health

    if health is Health.OK:
        return "green"
    if health is Health.WARNING:
        return "yellow"
    if health is Health.COULD_NOT_TELL:
        return "bold magenta"
    if health is Health.BARS:
        return "bold red"
    assert_never(health)


def _console() -> Console:
    from rich.console import Console

    return Console(highlight=False)
