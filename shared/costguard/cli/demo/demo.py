"""`costguard demo`: twelve days of a made-up fleet, lived by the real engine."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Annotated

import typer

from costguard.cli.options import Json, Lang, examples
from costguard.cli.output import heading, safe, to_json
from costguard.cli.program import CliContext, workplace
from costguard.cli.progress import waiting
from costguard.domain.errors import InvalidInputError
from costguard.domain.money import Money, totals
from costguard.guards import BUDGET, IDLE_GPU, KMS_ROTATION, NETWORK_AUDIT
from costguard.report.words.sentences import Language, phrase

if TYPE_CHECKING:
    from costguard.cli.demo.facts import Copies, DemoDay, Ending, Names, Runs, Told
    from costguard.cli.demo.story import StoryEvent
    from costguard.cli.sandbox.running import Sandbox
    from costguard.domain.money import Money
    from costguard.domain.refs import Subject
    from costguard.engine.run.run import RunReport
    from costguard.engine.run.run_context import RunContext

DEMO_EXAMPLES = examples("costguard demo", "costguard demo --days 3 --lang zh", "costguard demo --json > demo.json")


@dataclass(frozen=True, slots=True)
class Guards:
    """What each run of a day goes over: that of machines serves the idle and the budget guard."""

    machines: RunContext
    keys: RunContext
    networks: RunContext


_SETTINGS_DAYS = 2  # keys and networks are looked at as long as something is to come of it, and at the end
_LAST_LOOK = timedelta(hours=1)  # what was asked for on the last day is then seen done


def demo(
    ctx: typer.Context,
    *,
    days: Annotated[int, typer.Option("--days", min=1, max=28, help="How many days to live through.")] = 12,
    as_json: Json = False,
    lang: Lang = None,
) -> None:
    """Watch a made-up GPU fleet being guarded: no account, no credentials, no real cloud.

    Starts clouds, Slack, a ledger and a clock in this process, lives through twelve days with one run of each
    guard a day, and tells each day what happened, what was planned, what people were told and what was done.
    Ends with the money saved, how far budgets are spent, what was left alone and why, and what nobody could judge.
    """
    with ExitStack() as opened:
        with workplace(ctx, lang=lang) as outside, waiting(phrase("demo_starting", outside.language)):
            here = opened.enter_context(workplace(ctx, lang=lang, sandbox=True))
        lived, ending = live_through(here, days, show=not as_json)
    if as_json:
        from costguard.cli.demo.facts import demo_json

        typer.echo(to_json(demo_json(lived, ending, here.language)))


def live_through(here: CliContext, days: int, *, show: bool) -> tuple[list[DemoDay], Ending]:
    """Every day, told as it passes if `show`; then what it came to."""
    from costguard.bootstrap import open_run_context
    from costguard.cli.demo.facts import names_of
    from costguard.cli.demo.text import ending_lines, opening_lines

    sandbox, language = _running(here), here.language
    names: dict[Subject, str] = {}
    lived: list[DemoDay] = []
    if show:
        fleet = sandbox.world.fleet
        cost = totals(Money(each.amount, each.currency) for each in (spec.hourly for spec in fleet) if each is not None)
        accounts, clouds = len({spec.account for spec in fleet}), len({spec.cloud for spec in fleet})
        _say(opening_lines(len(fleet), accounts, clouds, cost, days, language))
    with (
        open_run_context(here.settings, BUDGET, clock=here.clock) as watching,
        open_run_context(here.settings, KMS_ROTATION, clock=here.clock, memory=watching.memory) as keys,
        open_run_context(here.settings, NETWORK_AUDIT, clock=here.clock, memory=watching.memory) as networks,
    ):
        world = replace(watching, guard=IDLE_GPU)
        for day in _days(sandbox, Guards(watching, keys, networks), days, language):
            names.update(names_of(day.plan))
            if show:
                _tell(day, lived, names, language)
            lived.append(day)
        ending = _ending(world, sandbox, lived, names)
    if show:
        typer.echo()
        heading(phrase("demo_ending", language, days=days))
        _say(ending_lines(ending, language))
    return lived, ending


def _tell(day: DemoDay, lived: Sequence[DemoDay], names: Names, language: Language) -> None:
    """A quiet day is one line, and quiet days stand together."""
    from costguard.cli.demo import text as told

    before = lived[-1] if lived else None
    quiet = told.is_quiet(day, before)
    if not (quiet and before is not None and told.is_quiet(before, lived[-2] if len(lived) > 1 else None)):
        typer.echo()
    if quiet:
        _say([told.quiet_line(day, language)])
        return
    heading(told.day_heading(day, language))
    _say(told.day_lines(day, before, names, language))


def _days(sandbox: Sandbox, guards: Guards, days: int, language: Language) -> Iterator[DemoDay]:
    from costguard.cli.demo.clicks import answering
    from costguard.cli.demo.facts import Told, demo_day
    from costguard.cli.demo.story import live

    slack, number, world = sandbox.slack, -1, guards.machines
    before: DemoDay | None = None

    def run_now(*, last: bool = False) -> tuple[Runs, tuple[Told, ...]]:
        heard = len(slack.posted)
        with waiting(phrase("demo_living", language, number=number)):
            runs = _every_guard(guards, with_settings=number < _SETTINGS_DAYS or last)
        posts = sorted(slack.posted[heard:], key=lambda post: post.channel)  # channels are written to side by side
        return runs, tuple(Told(post.channel, post.text.partition("\n")[0]) for post in posts)

    def run_day(_now: datetime) -> tuple[Runs, tuple[Told, ...]]:
        nonlocal number
        number += 1
        return run_now()

    buttons = answering(sandbox, replace(world, guard=IDLE_GPU), language)
    for lived in live(sandbox, run_day, buttons, days=days + 1):
        runs, told = lived.result
        news = [_said(event, language) for event in lived.events]
        before = demo_day(lived.number, runs, news=news, told=told, before=before)
        yield before
    sandbox.advance(_LAST_LOOK)
    runs, told = run_now(last=True)
    yield demo_day(number, runs, news=(), told=told, before=before, later=True)


def _every_guard(guards: Guards, *, with_settings: bool) -> Runs:
    """One run of each guard; the two about machines go over one look at the clouds."""
    from costguard.cli.demo.facts import Runs
    from costguard.engine.guards.budgets.look import rules_watched
    from costguard.engine.guards.budgets.notifying import budget_reports
    from costguard.engine.guards.budgets.run import run_budgets
    from costguard.engine.run.run import run_guard
    from costguard.engine.run.scan import scan

    world = guards.machines
    now, idle = world.clock.now().isoformat(), replace(world, guard=IDLE_GPU)
    rules = (*world.policy.idle_gpu, *rules_watched(world.policy))
    seen = scan(world.readings, world.targets, rules, world.clock, workers=world.workers)
    machines = run_guard(idle, f"demo-{now}", seen=seen)
    spent = run_budgets(world, f"demo-budget-{now}", seen=seen)
    settings: tuple[RunReport | None, ...] = ()
    if with_settings:
        keys = run_guard(guards.keys, f"demo-keys-{now}")
        settings = (keys.report, run_guard(guards.networks, f"demo-networks-{now}").report)
    budgets = budget_reports(world, spent.look) if spent.look is not None else ()
    return Runs(machines.report, machines.ahead or (), spent, budgets, settings)


def _said(event: StoryEvent, language: Language) -> str:
    return event.text_zh if language is Language.ZH else event.text


def _ending(world: RunContext, sandbox: Sandbox, lived: Sequence[DemoDay], names: Names) -> Ending:
    from costguard.cli.demo.facts import Ending, left_alone, saved_by, unmeasured
    from costguard.engine.ledger.audit.verify import verify
    from costguard.engine.savings import realised_now

    now, last = world.clock.now(), lived[-1].plan
    return Ending(
        at=now,
        saved=saved_by(realised_now(world.memory, now), names),
        copies=_copies(world, sandbox, names),
        budgets=lived[-1].budgets,
        settings=lived[-1].settings,
        left=left_alone(last),
        unmeasured=unmeasured(last),
        audit=verify(world.memory.store),
    )


def _copies(world: RunContext, sandbox: Sandbox, names: Names) -> Copies | None:
    """Whose disks were copied, and the most that keeping the copies costs an hour, by the clouds' own prices."""
    from costguard.cli.demo.facts import Copies
    from costguard.cli.sandbox.running import known_as
    from costguard.domain.resources import Volume

    machines = {spec.native_id: known_as(spec) for spec in sandbox.world.fleet}
    costs: list[Money | None] = []
    owners: dict[str, None] = {}
    for copy in sandbox.world.snapshots.values():
        machine = machines[copy.machine]
        owners[names.get(machine, machine.native_id)] = None
        kind = sandbox.world.volumes[copy.volume].disk.volume_type
        disk = Volume(machine.sibling("volume", copy.volume), float(copy.size_gib), kind)
        costs.append(world.readings[machine.cloud].prices.snapshot_hourly(disk))
    if not costs:
        return None
    return Copies(tuple(sorted(owners)), totals(cost for cost in costs if cost is not None), costs.count(None))


def _running(here: CliContext) -> Sandbox:
    if here.sandbox is None:
        raise InvalidInputError("the demo runs in a sandbox only")
    return here.sandbox


def _say(lines: Iterable[str]) -> None:
    for line in lines:
        typer.echo(safe(line))
