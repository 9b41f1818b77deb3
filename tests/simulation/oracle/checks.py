"""One check for each NEVER rule that an effect can break. Each reads the world and what people and clouds saw."""

from __future__ import annotations

from datetime import datetime, timedelta
from decimal import Decimal

from tests.simulation.chronicle import Effect, Told
from tests.simulation.oracle import truth
from tests.simulation.oracle.cancelled import cancelled_after
from tests.simulation.oracle.judge import SKEW, Check, Judged
from tests.simulation.oracle.wires import bill_ends, shut_down
from tests.simulation.rules import APPROVERS, OWNED, OWNER, TEAM, nobody_looks, working_time_after

from costguard.domain.actions import Verb
from costguard.domain.resources import Instance, InstanceState

RESERVED_BEFORE = timedelta(minutes=6)  # a cap is reserved at most five minutes before the call
DESTRUCTIVE = frozenset({Verb.STOP, Verb.TERMINATE})


def measured_idle(judged: Judged) -> str:
    """Rule 1: a running machine was idle over the whole window, on every card, measured to its end."""
    running = judged.shown.instance.state is InstanceState.RUNNING
    if judged.effect.verb not in DESTRUCTIVE or not running:
        return ""
    if judged.demand is not None and judged.demand.of_class:
        return ""
    entries = judged.chronicle.measured.get(judged.effect.machine, [])
    mine = [entry for entry in entries if entry.process is judged.effect.process]
    if not mine or mine[-1].number < judged.look.number:
        return "its signals were not read after the last look"
    if not mine[-1].whole:
        return "its signals were missing from the last answer"
    return truth.why_not_idle(judged.machine, timedelta(hours=judged.rule.lasting), mine[-1].until)


def complete_shard(judged: Judged) -> str:
    """Rule 3: the shard was listed to its end by the run that acted."""
    listings = judged.chronicle.listings.get(judged.shown.instance.ref.shard, [])
    mine = [listing for listing in listings if listing.process is judged.effect.process]
    if not mine:
        return "its shard was never listed by the run that did it"
    return "" if mine[-1].complete else "its shard was not listed to the end"


def copied(judged: Judged) -> str:
    """Rule 4: before a terminate every attached volume has a completed copy later than the stop, seen complete.

    Of one that cannot stop all copies are of one moment, where its cloud can make them so.
    """
    if judged.effect.verb is not Verb.TERMINATE:
        return ""
    if not judged.shown.volumes:
        return "no volumes were shown"
    since = stopped_at(judged) if not judged.machine.spec.one_time_spot else _warned(judged, Verb.TERMINATE)
    if since is None:
        return "it was never stopped by costguard"
    missing = truth.uncopied(judged.shown, since)
    if missing:
        return f"no completed copy of {', '.join(missing)} since {since:%m-%d %H:%M}"
    torn = judged.machine.spec.one_time_spot and truth.torn(judged.world, judged.machine, judged.shown, since)
    return "its disks were copied while it ran, and not all at one moment" if torn else ""


def local_disk(judged: Judged) -> str:
    """Rules 5 and 16: what a stop destroys is lost only by policy, or with an approval that is used once."""
    if judged.effect.verb not in DESTRUCTIVE or judged.machine.spec.local_disk_gib == 0.0:
        return ""
    if judged.effect.verb is Verb.TERMINATE and not judged.machine.spec.one_time_spot:
        return ""  # lost when it stopped, and judged then
    if judged.rule.local_disk == "lose":
        return ""
    if judged.rule.local_disk == "keep":
        return "its local disk is lost, and the policy keeps local disks"
    given = [
        word
        for word in judged.chronicle.words
        if word.what == "approve" and word.decision_id == judged.effect.decision_id
    ]
    fresh = [word for word in given if judged.effect.at - word.at <= timedelta(hours=24) + SKEW]
    used = [one for one in judged.chronicle.effects if one.decision_id == judged.effect.decision_id]
    if not fresh:
        return "its local disk is lost, and nobody approved this decision"
    people = {word.by for word in fresh if word.by.startswith("cli:") or word.by in _BOSSES | owners(judged)}
    if len(people) < needed(judged):
        return f"its local disk is lost, and of the {needed(judged)} people it takes only {sorted(people)} agreed"
    if judged.version.apart and not people & _BOSSES:
        return f"its local disk is lost, and of approvers nobody agreed, only {sorted(people)}"
    return "" if len(used) <= len(given) else "one approval was used twice"


def once(judged: Judged) -> str:
    """Rule 6: one effect for one decision; a machine is stopped once in a run and terminated once for good."""
    effect = judged.effect
    earlier = [one for one in judged.chronicle.effects if one is not effect and one.machine == effect.machine]
    if any(one.action_id == effect.action_id for one in earlier):
        return "the same action reached the cloud twice"
    same = [one for one in earlier if one.verb is effect.verb and one.verb in DESTRUCTIVE]
    if effect.verb is Verb.TERMINATE and any(one.changed for one in same):
        return "it had been terminated before"
    tried = [one for one in judged.chronicle.attempts if (one.machine, one.verb) == (effect.machine, Verb.TERMINATE)]
    if effect.verb is Verb.TERMINATE and any(one.unanswered for one in tried[:-1]):
        return "it was called again after an answer was lost"
    if effect.verb is Verb.STOP and any(one.at >= began_at(judged) and one.changed for one in same):
        return "it had been stopped in this run before"
    twice = [one for one in earlier if effect.verb is Verb.SNAPSHOT and one.resource == effect.resource]
    return "a second copy for one decision" if any(one.decision_id == effect.decision_id for one in twice) else ""


def within_caps(judged: Judged) -> str:
    """Rules 2 and 7: count, share and money of any rolling 24 hours; zero allows nothing.

    Terminations count apart. A share is of what was listed, and of what was terminated in those hours.
    """
    effect, rule = judged.effect, judged.rule
    if effect.verb not in DESTRUCTIVE:
        return ""
    since = effect.at - timedelta(hours=24) + SKEW + RESERVED_BEFORE
    recent = [one for one in _by_rule(judged) if one.at > since]
    counted = [one for one in recent if (one.verb is Verb.TERMINATE) == (effect.verb is Verb.TERMINATE)]
    share = 0
    listed = _seen_by_rule(judged)
    seen = len(listed | {one.machine for one in recent if one.verb is Verb.TERMINATE and one is not effect})
    if rule.share_percent > 0 and seen > 0:
        share = max(1, rule.share_percent * seen // 100)
    most = rule.terminations if effect.verb is Verb.TERMINATE and rule.terminations is not None else rule.actions
    if len(counted) > min(most, share):
        return f"{len(counted)} in 24 h, where {most} and {rule.share_percent} % of {seen} are allowed"
    return _money(judged, counted) if effect.verb is Verb.STOP else ""


def _money(judged: Judged, counted: list[Effect]) -> str:
    price = judged.machine.spec.hourly
    if price is None:
        return "its price is unknown"
    cap = {"USD": judged.rule.usd, "CNY": judged.rule.cny}.get(price.currency)
    if cap is None:
        return f"{price.currency} has no cap"
    total = Decimal(0)
    for one in counted:
        machine = judged.world.machines[one.machine]
        if one.verb is Verb.STOP and machine.spec.hourly is not None and machine.spec.hourly.currency == price.currency:
            total += truth.hourly_of(machine)
    return f"{total} {price.currency} an hour in 24 h, where {cap} are allowed" if total > cap else ""


def _by_rule(judged: Judged) -> list[Effect]:
    """Effects of 24 h and more under the same rule, this one included."""
    found = []
    for one in judged.chronicle.effects:
        if one.verb not in DESTRUCTIVE or not one.changed or one.process.guard != judged.effect.process.guard:
            continue
        if judged.demand is not None:
            if one is judged.effect or judged.ruled.get(one.number) == judged.rule.name:
                found.append(one)
            continue
        looks = [look for look in judged.chronicle.looks.get(one.machine, []) if look.process is one.process]
        shown = next((look.shown for look in reversed(looks) if look.number <= one.number), None)
        rule = truth.rule_of(shown, judged.version) if shown is not None else None
        if rule is not None and rule.name == judged.rule.name:
            found.append(one)
    return found


def _seen_by_rule(judged: Judged) -> set[str]:
    seen: dict[str, Instance] = {}
    for listings in judged.chronicle.listings.values():
        mine = [listing for listing in listings if listing.process is judged.effect.process]
        if mine:
            seen.update(mine[-1].shown)
    if judged.demand is not None:
        asked = judged.demand
        demands = (asked.budget.demands(instance.ref.cloud, instance.tags) for instance in seen.values())
        return {
            name
            for name, each in zip(seen, demands, strict=True)
            if any(one.rule.name == asked.rule.name for one in each)
        }
    rules = (judged.version.gentlest(instance.tags) for instance in seen.values())
    return {name for name, rule in zip(seen, rules, strict=True) if rule is not None and rule.name == judged.rule.name}


def looked_just_before(judged: Judged) -> str:
    """Rule 8: between the last look at machine and policy and the call stands nothing but the intent."""
    if judged.effect.verb not in DESTRUCTIVE:
        return ""
    written = judged.effect.writes - judged.look.writes
    if written > 2:  # the approval used up, and the intent
        return f"{written} things were written after the last look"
    if judged.effect.writes - judged.read.writes > 3:  # the policy remembered as good, and the two above
        return "the policy was not read just before"
    if judged.effect.at - judged.look.at > RESERVED_BEFORE:
        return f"the last look was {judged.effect.at - judged.look.at} before"
    return ""


def in_order(judged: Judged) -> str:
    """Rule 9: notice, stop, notice, quarantine, copies, terminate; nothing skipped, nothing cancelled since."""
    verb, rule = judged.effect.verb, judged.rule
    if rule.mode != "enforce":
        return f"the rule only says {rule.mode}"
    if verb is Verb.STOP:
        if rule.stop is None:
            return "the rule does not stop"
        return _after_notice(judged, Verb.STOP, began_at(judged), rule.stop)
    if rule.terminate is None:
        return "the rule ends at stop"
    if judged.machine.spec.one_time_spot:
        if rule.unstoppable != "terminate":
            return "what cannot stop is left alone"
        return _after_notice(judged, Verb.TERMINATE, began_at(judged), (rule.stop or 0) + rule.terminate)
    stopped = stopped_at(judged)
    if stopped is None or judged.shown.instance.state is not InstanceState.STOPPED:
        return f"it is {judged.shown.instance.state.value} and not stopped by costguard"
    return _after_notice(judged, Verb.TERMINATE, stopped, rule.terminate)


def _after_notice(judged: Judged, verb: Verb, since: datetime, hours: int) -> str:
    """Rule 15 with it: a notice that people could read, the whole grace after it, and nothing that cancelled it."""
    told = notices(judged, since, verb)
    if not told:
        return f"nobody was told of it since {since:%m-%d %H:%M}"
    now = judged.effect.at + SKEW
    over = [one for one in told if working_time_after(one.at, hours, judged.version) <= now]
    early = bool(over)
    over = [one for one in over if one.not_before is None or one.not_before <= now]
    asked = hastened(judged, told)
    unseen = surprises(judged) if over and not asked else ""
    over += [one for one in asked if one not in over]  # later, where it is there at all
    if early and not over:
        return f"announced on {told[0].at:%m-%d %H:%M} for {told[0].not_before}, whatever has changed since"
    if not over:
        return f"told on {told[0].at:%m-%d %H:%M}, less than {hours} h ago"
    cause = cancelled_after(judged, over[-1].at)
    return f"told on {over[-1].at:%m-%d %H:%M}, then {cause}" if cause else unseen


def surprises(judged: Judged) -> str:
    """Rule 15: what takes a machine away comes at an hour at which people can do something about it."""
    if judged.effect.verb is not Verb.STOP and not judged.machine.spec.one_time_spot:  # copies surprise nobody
        return ""
    at = judged.effect.at
    found = [nobody_looks(moment, judged.version) for moment in (at - SKEW, at, at + SKEW)]
    return found[1] if all(found) else ""


_BOSSES = frozenset(f"{TEAM}/{name}" for name in APPROVERS)


def needed(judged: Judged) -> int:
    """How many people it takes to stop or approve."""
    return 2 if judged.version.two else 1


def owners(judged: Judged) -> frozenset[str]:
    """Who may answer for the machine, as its tags name its owner."""
    theirs = judged.version.clicks and judged.shown.instance.tags.get("team") == OWNED
    return frozenset({f"{TEAM}/{OWNER}"}) if theirs else frozenset()


def hastened(judged: Judged, told: list[Told]) -> list[Told]:
    """The notices after which as many people as it takes, of those who may, asked for the stop now."""
    if judged.effect.verb is not Verb.STOP or not judged.version.clicks:
        return []
    theirs = owners(judged)
    asked = [
        word
        for word in judged.chronicle.words
        if word.what == "stop_now"
        and word.machine == judged.effect.machine
        and word.number < judged.effect.last_write
        and judged.effect.at - word.at <= timedelta(hours=24) + SKEW
        and word.by in _BOSSES | theirs
    ]
    return [one for one in told if len({word.by for word in asked if word.at >= one.at}) >= needed(judged)]


def notices(judged: Judged, since: datetime, verb: Verb) -> list[Told]:
    """Messages about the machine that people could read since a moment and that announced the verb."""
    leave = verb is Verb.STOP and judged.rule.local_disk != "lose" and judged.machine.spec.local_disk_gib != 0.0
    about = (told for told in judged.chronicle.told if judged.effect.machine in told.machines and told.at >= since)
    return [told for told in about if verb in told.announces or leave]


def stopped_at(judged: Judged) -> datetime | None:
    """When costguard's own stop of the run last looked at was complete; None where it had not stopped it.

    A stop by others within twenty minutes of a call whose answer was lost cannot be told from its effect.
    """
    began = began_at(judged)
    ours = False
    done: datetime | None = None
    for happening in judged.world.history:
        mine = happening.native_id == judged.effect.machine and began <= happening.at <= judged.look.as_of
        if mine and happening.what == "stop":
            own = happening.by == "costguard" and _by_this_guard(judged, happening.at)
            ours, done = own or _claimed_near(judged, happening.at), None
        elif mine and happening.what == "stopped":
            done = happening.at
    return done if ours else None


def began_at(judged: Judged) -> datetime:
    """When the run of the machine began that the last look was shown."""
    starts = [start for start, _ in judged.machine.runs if start <= judged.look.as_of]
    return max(starts, default=judged.machine.runs[0][0])


def _claimed_near(judged: Judged, at: datetime) -> bool:
    guard = judged.effect.process.guard
    tried = (
        one.at
        for one in judged.chronicle.attempts
        if (one.machine, one.verb, one.guard) == (judged.effect.machine, Verb.STOP, guard)
    )
    return any(abs(at - one) <= SKEW + RESERVED_BEFORE for one in tried)


def _by_this_guard(judged: Judged, at: datetime) -> bool:
    """Whether a stop of that moment was its own: what another guard stopped is somebody else's stop."""
    guard = judged.effect.process.guard
    effects = judged.chronicle.effects
    return any(one.machine == judged.effect.machine and one.at == at and one.process.guard == guard for one in effects)


def _warned(judged: Judged, verb: Verb) -> datetime | None:
    told = notices(judged, began_at(judged), verb)
    return told[0].at if told else None


def untouchable(judged: Judged) -> str:
    """Rule 12: nothing that was shown as protected, committed or managed is touched."""
    return truth.why_untouchable(judged.shown, judged.version, judged.effect.at + SKEW, judged.effect.verb)


def nobody_objected(judged: Judged) -> str:
    """Rules 16 and 20: a snooze or a pause that was acknowledged before the intent was written wins."""
    before = [word for word in judged.chronicle.words if word.number < judged.effect.last_write]
    switch = next((word.what for word in reversed(before) if word.what in {"pause", "resume"}), "resume")
    if switch == "pause":
        return "costguard was paused"
    mine = [word for word in before if word.what == "snooze" and word.machine == judged.effect.machine]
    if mine and mine[-1].until is not None and mine[-1].until > judged.effect.at + SKEW:
        return f"it was snoozed until {mine[-1].until:%m-%d %H:%M}"
    return ""


def rolled_out(judged: Judged) -> str:
    """Rule 15: nothing is done before a rollout comes to it, a day after people were told so."""
    day = judged.version.rolled_out
    if day is None or judged.effect.verb not in {*DESTRUCTIVE, Verb.SNAPSHOT}:
        return ""
    at = judged.effect.at + SKEW
    if at.date() < day:
        return f"the rollout lets nothing be done before {day}"
    told = [one.at for one in judged.chronicle.told if one.notice_id.startswith("rollout-") and one.at <= at]
    # the step that warns is told of too, before this one: it takes both
    return "" if len(told) > 1 and sorted(told)[1] <= at - timedelta(hours=24) else "its step was not told a day before"


CHECKS: tuple[tuple[int, Check], ...] = (
    (1, measured_idle),
    (3, complete_shard),
    (4, copied),
    (5, local_disk),
    (6, once),
    (7, within_caps),
    (8, looked_just_before),
    (9, in_order),
    (12, untouchable),
    (15, rolled_out),
    (16, nobody_objected),
    (5, shut_down),
    (0, bill_ends),
)
"""The number of the rule that a violation is reported under; the docstrings name the others it covers."""
