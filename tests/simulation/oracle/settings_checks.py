"""What may be changed about a key or a network, and when: each rule by itself, of the world's truth only."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from tests.simulation.oracle import truth
from tests.simulation.oracle.judge import SKEW
from tests.simulation.oracle.settings_judge import OF_KEYS, JudgedCall, SettingCheck
from tests.simulation.oracle.way_in import lost_machines
from tests.simulation.settings import LATE_BY
from tests.simulation.settings_chronicle import Book, Call, KeysShown, NetworkShown

from cloudstand.world.cloud import World
from costguard.domain.keys import KeyManager, KeyState, MultiRegion
from costguard.domain.network import EVERY_PORT, AddressState, NetworkInventory, NetworkRule, SecurityGroup
from costguard.domain.refs import ResourceRef

ACT_WITHIN = timedelta(minutes=5)
LONGEST_HOLE = timedelta(days=3)
_DAY = timedelta(days=1)


def announces(call: Call, title: str) -> bool:
    """Whether a notice says this very change."""
    said, _, promised = call.said, *title.partition("Costguard will ")[1:]
    words = {
        "set_rotation": f"rotate it by itself every {said.get('days')} days",
        "rotate_key": "rotate it now",
        "release_address": f"release {said.get('ip')}",
        "detach_address": f"take {said.get('ip')} off it",
        "revoke_rule": f"revoke rule {said.get('rule_id')} (",
        "narrow_rule": f"narrow rule {said.get('rule_id')} (",
        "enable_flow_logs": f"write flow logs to {said.get('destination')}",
        "require_imdsv2": "require session tokens",
    }[call.kind]
    return promised.startswith(words)


def looked_anew(judged: JudgedCall) -> str:
    """Rule 8: the process looked just before; nothing but its intent lies between."""
    call, seen = judged.call, judged.seen
    if call.at - seen.at > ACT_WITHIN + timedelta(seconds=10):
        return f"the last look was {call.at - seen.at} before"
    if call.writes - seen.writes > 1:
        return f"{call.writes - seen.writes} writes lie between the last look and the call"
    return "" if seen.complete else "what was read just before was not complete"


def seen_whole(judged: JudgedCall) -> str:
    """Rule 3: nothing is done in a shard that the run did not read to its end when it planned."""
    listed: Sequence[KeysShown | NetworkShown]
    if judged.call.kind in OF_KEYS:
        listed = [one for one in judged.book.keys if not one.closely]
    else:
        listed = judged.book.networks
    mine = [one for one in listed if one.process is judged.call.process and one.shard == judged.subject.shard]
    return "" if mine and mine[0].complete else "its shard was not read to its end in that run"


def enforced(judged: JudgedCall) -> str:
    """Rules 17 and 18: observe and warn change nothing."""
    return "" if judged.rule.mode == "enforce" else f"the rule only says {judged.rule.mode}"


def waited(judged: JudgedCall) -> str:
    """Rule 15: this very change was announced, people could read it, and the whole wait is over since."""
    told = judged.notices()
    if not told:
        return "nobody was told of it"
    over = [one for one in told if one.at + timedelta(hours=judged.rule.wait) <= judged.call.at + SKEW]
    if not over:
        return f"told on {told[0].at:%m-%d %H:%M}, less than {judged.rule.wait} h ago"
    cause = _interrupted(judged, over[-1].number)
    return f"told on {over[-1].at:%m-%d %H:%M}, then {cause}" if cause else ""


def _interrupted(judged: JudgedCall, since: int) -> str:
    """Why a notice no longer counts: a run that nothing disturbed was shown that all is well."""
    looks: Sequence[KeysShown | NetworkShown]
    looks = judged.book.keys if judged.call.kind in OF_KEYS else judged.book.networks
    for look in looks:
        process = look.process
        undisturbed = process.finished and process.alone and not process.struck
        if not undisturbed or look.number < since or not look.complete or look.shard != judged.subject.shard:
            continue
        if isinstance(look, KeysShown) and not look.closely:
            key = look.keys.get(judged.call.subject)
            if key is not None and key.version != judged.intent.action.run_epoch:
                return f"it was rotated, which {process.name} saw on {look.at:%m-%d %H:%M}"
        elif isinstance(look, NetworkShown) and look.network is not None and _is_well(judged, look.network):
            return f"there was nothing to mend, which {process.name} saw on {look.at:%m-%d %H:%M}"
    return ""


def _is_well(judged: JudgedCall, shown: NetworkInventory) -> bool:
    """Whether what the change is about was not there to be changed."""
    call = judged.call
    if call.kind == "release_address":
        found = next((each for each in shown.addresses if each.ref == call.subject), None)
        return found is not None and found.state is AddressState.IN_USE
    if call.kind in {"revoke_rule", "narrow_rule"}:
        gone = _gone(judged.before, judged.after, call.subject)
        group = _group(shown, call.subject)
        return group is not None and not any(_bare(rule) in gone for rule in group.rules)
    return False


def within_a_day(judged: JudgedCall) -> str:
    """Rule 7: the cap of the rule over any 24 hours, all runs together."""
    call = judged.call
    since = call.at - _DAY + SKEW
    others = [
        one
        for one in judged.book.calls
        if one.changed and not one.undoes and one.intent is not None and since < one.at and one is not call
        if one.intent.action.rule == judged.rule.name
    ]
    count, allowed = len(others) + 1, judged.rule.actions
    return f"{count} in 24 h, where {allowed} are allowed" if count > allowed else ""


def spoken_against(judged: JudgedCall) -> str:
    """Rules 16 and 20: a pause or a snooze that was acknowledged before the intent was written wins."""
    before = [word for word in judged.book.words if word.number < judged.intent.number]
    switch = next((word.what for word in reversed(before) if word.what in {"pause", "resume"}), "resume")
    if switch == "pause":
        return "costguard was paused"
    snoozes = [word for word in before if word.what == "snooze" and word.machine == str(judged.subject)]
    until = snoozes[-1].until if snoozes else None
    if until is not None and until > judged.call.at + SKEW:
        return f"it was snoozed until {until:%m-%d %H:%M}"
    return ""


def spared(judged: JudgedCall) -> str:
    """Rule 12: what carries a protecting tag, is of a listed account or was agreed to be left is left."""
    if judged.subject.account in judged.version.protected_accounts:
        return "its account is protected"
    for agreed in judged.version.exceptions:
        if agreed.resource == str(judged.subject) and agreed.expires > judged.call.at + SKEW:
            return "an exception was agreed"
    tags = judged.key.tags if judged.key is not None else {}
    if isinstance(judged.seen, NetworkShown) and judged.seen.network is not None:
        shown = judged.seen.network
        held = {each.ref: each.tags for each in shown.groups} | {each.ref: each.tags for each in shown.addresses}
        tags = held.get(judged.call.subject, {})
    return f"its tags protect it: {dict(tags)}" if truth.tag_protects(tags) else ""


def fit_to_rotate(judged: JudgedCall) -> str:
    """Rule 17: only an enabled key of the customer's own that is not as the policy asks, exactly as it asks."""
    if judged.call.kind not in OF_KEYS:
        return ""
    key, rule = judged.key, judged.key_rule
    if key is None:
        return "the key was not shown"
    if key.state is not KeyState.ENABLED:
        return f"the key is {key.state.value}"
    if key.manager is not KeyManager.CUSTOMER or key.multi_region is MultiRegion.REPLICA:
        return "the key is not for us to rotate"
    days = rule.days(key.ref.provider)
    if judged.call.kind == "set_rotation":
        if not rule.automatic:
            return "the rule does not let it rotate by itself"
        if judged.call.said.get("days") != str(days):
            return f"set to {judged.call.said.get('days')} days, where {days} are asked for"
        period = key.rotation.period_days
        as_asked = key.rotation.automatic and period is not None and period <= days
        return f"its period is {period} days already" if as_asked else ""
    if not rule.on_demand:
        return "the rule does not let it be rotated on demand"
    born = key.rotation.last_at or key.created_at
    if born is None or judged.seen.as_of - born <= days * _DAY + LATE_BY - SKEW:
        return f"its material is of {born}, where {days} days are asked for"
    return ""


def same_version(judged: JudgedCall) -> str:
    """Rule 17: a decision is about the version of the key that it was made for."""
    key = judged.key
    if judged.call.kind not in OF_KEYS or key is None or key.version == judged.intent.action.run_epoch:
        return ""
    return f"decided on version {judged.intent.action.run_epoch} and made on version {key.version}"


def last_way(judged: JudgedCall) -> str:
    """Rule 18: no machine loses its last way in by the admin port through us, and a way leads from somebody.

    What other people change between the last look and the call nobody can see.
    """
    if judged.call.network is None or judged.call.kind in OF_KEYS:
        return ""
    rule = judged.net_rule
    lost = lost_machines(judged.before, judged.after, (*rule.trusted, *rule.narrow_to))
    if not lost:
        return ""
    since = judged.seen.as_of
    others = [one for one in judged.book.done if one.by != "costguard" and since <= one.at <= judged.call.at]
    return "" if others else f"nobody known of gets into {', '.join(lost)} by port 22 any more"


def kept_alone(judged: JudgedCall) -> str:
    """Rule 18: what the policy names as kept is never touched."""
    if judged.call.kind in OF_KEYS:
        return ""
    call, said = judged.call, judged.call.said
    named = {str(call.subject), call.subject.native_id, said.get("ip", ""), said.get("rule_id", "")}
    found = sorted(judged.version.kept & (named - {""}))
    return f"the policy keeps {', '.join(found)}" if found else ""


def one_setting(judged: JudgedCall) -> str:
    """Rule 18: exactly the one thing that people were told of is changed, and it is still as it was then."""
    call = judged.call
    if call.kind in OF_KEYS:
        return ""
    wrong = _elsewhere(judged)
    if wrong or call.kind not in {"revoke_rule", "narrow_rule"}:
        return wrong
    gone = list(_gone(judged.before, judged.after, call.subject).elements())
    if len(gone) != 1:
        return f"{len(gone)} rules are gone"
    told = [one.title for one in judged.notices()]
    if told and not any(_in_words(gone[0]) in title for title in told):
        return f"people were told of {told[-1]!r}, and gone is {_in_words(gone[0])}"
    made = list(_gone(judged.after, judged.before, call.subject).elements())
    if call.kind == "revoke_rule":
        return f"{len(made)} new rules" if made else _narrowed_away(judged, gone[0])
    peers = {peer for rule in made for peer in rule.peers}
    stays = set(gone[0].peers) - {"0.0.0.0/0"}
    strangers = peers - set(judged.net_rule.narrow_to) - stays
    return f"it lets in {', '.join(sorted(strangers))}" if strangers or not made else ""


def _narrowed_away(judged: JudgedCall, gone: NetworkRule) -> str:
    """Where a rule may only be narrowed, it may go once other rules let in whom it would be narrowed to."""
    rule, group = judged.net_rule, _group(judged.after, judged.call.subject)
    if "revoke_rule" in rule.mend or group is None:
        return ""
    beside = {peer for one in group.rules if one.ports == gone.ports for peer in one.peers}
    missing = sorted(set(rule.narrow_to) - beside)
    return f"it was to be narrowed to {', '.join(missing)}" if missing else ""


def _elsewhere(judged: JudgedCall) -> str:
    """What else of the shard is not as it was."""
    before, after, subject = judged.before, judged.after, judged.call.subject
    if [each for each in before.groups if each.ref != subject] != [
        each for each in after.groups if each.ref != subject
    ]:
        return "another group changed"
    if [each for each in before.addresses if each.ref != subject] != [
        each for each in after.addresses if each.ref != subject
    ]:
        return "another address changed"
    same = (before.route_tables, before.subnets, before.access_lists) == (
        after.route_tables,
        after.subnets,
        after.access_lists,
    )
    return "" if same else "routes changed"


def unused_all_along(judged: JudgedCall) -> str:
    """Rule 18: an address is given up only if no look for so long saw it in use, and looks were near enough."""
    if judged.call.kind != "release_address":
        return ""
    call, needed = judged.call, timedelta(hours=judged.net_rule.unattached)
    now = next((each for each in judged.before.addresses if each.ref == call.subject), None)
    if now is None or now.state is not AddressState.UNATTACHED:
        return "it is in use"
    kept = {process.name for process, _, _ in judged.book.remembered} | {call.process.name}
    unbroken: datetime | None = None
    newest: datetime | None = None
    for look in judged.book.networks:
        if look.network is None or look.shard != call.subject.shard or look.process.name not in kept:
            continue
        if any(gap.what == "addresses" for gap in look.network.gaps):
            continue
        found = next((each for each in look.network.addresses if each.ref == call.subject), None)
        if found is None and not look.faithful:
            continue
        if found is None or found.state is not AddressState.UNATTACHED:
            unbroken = None
        elif unbroken is None or newest is None or look.at - newest > LONGEST_HOLE + SKEW:
            unbroken = look.at
        newest = look.at
    if unbroken is None or call.at - unbroken < needed - SKEW:
        return f"looks saw it without use only since {unbroken and unbroken.strftime('%m-%d %H:%M')}"
    return ""


def remembered_before(judged: JudgedCall) -> str:
    """Rule 18: the image kept with the intent is what the world was just before the call."""
    call, image = judged.call, judged.intent.action.before
    if call.kind in {"release_address", "detach_address"}:
        found = next((each for each in judged.before.addresses if each.ref == call.subject), None)
        if found is None:
            return "the address was not there"
        bound_to = "" if found.bound_to is None else str(found.bound_to)
        wanted = {"ip": found.ip, "state": found.state.value, "bound_to": bound_to}
        return "" if dict(image) == wanted else f"the image says {dict(image)}, and it was {wanted}"
    if call.kind == "require_imdsv2":
        return "" if image.get("imds_v1") == "true" else f"the image says {dict(image)}"
    if call.kind not in {"revoke_rule", "narrow_rule"}:
        return ""
    gone = list(_gone(judged.before, judged.after, call.subject).elements())
    told = json.loads(image.get("rule", "{}"))
    for rule in gone:
        known = {"protocol": rule.protocol, "peers": list(rule.peers), "ports": [list(each) for each in rule.ports]}
        if any(told.get(word) != value for word, value in known.items()):
            return f"the image says {told or 'nothing'}, and it was {_in_words(rule)}"
    return ""


SETTING_CHECKS: tuple[tuple[int, SettingCheck], ...] = (
    (3, seen_whole),
    (7, within_a_day),
    (8, looked_anew),
    (9, enforced),
    (12, spared),
    (15, waited),
    (16, spoken_against),
    (17, fit_to_rotate),
    (17, same_version),
    (18, last_way),
    (18, kept_alone),
    (18, one_setting),
    (18, unused_all_along),
    (18, remembered_before),
)


def not_paused(call: Call, book: Book, world: World) -> str:
    """Rule 20: nothing is taken back while costguard is paused."""
    del world
    number = call.intent.number if call.intent is not None else call.number
    before = [word.what for word in book.words if word.number < number and word.what in {"pause", "resume"}]
    return "costguard was paused" if before and before[-1] == "pause" else ""


def taken_back(call: Call, book: Book, world: World) -> str:
    """Rule 18: an undo puts back exactly what its action changed."""
    del world
    done = next(
        (one for one in book.calls if one.intent is not None and one.intent.action.action_id == call.undoes), None
    )
    if done is None or not done.changed or done.network is None or call.network is None:
        return "nothing was done that it takes back"
    (was, became), (before, after) = done.network, call.network
    if done.kind in {"revoke_rule", "narrow_rule"}:
        lost, made = _gone(was, became, done.subject), _gone(became, was, done.subject)
        back, off = _gone(after, before, done.subject), _gone(before, after, done.subject)
        return "" if (back, off) == (lost, made) else "the rules are not as they were before"
    if done.kind == "detach_address":
        return "" if _bound(after, done.subject) == _bound(was, done.subject) else "the address is not where it was"
    if done.kind == "require_imdsv2":
        return "" if call.imds_v1[1] == done.imds_v1[0] else "the setting is not as it was"
    if done.kind == "enable_flow_logs":
        new = {each.ref for each in became.flow_logs} - {each.ref for each in was.flow_logs}
        return "" if not new & {each.ref for each in after.flow_logs} else "the flow log is still there"
    return f"there is no way back from {done.kind}"


UNDO_CHECKS = ((20, not_paused), (18, taken_back))


def _bound(network: NetworkInventory, subject: ResourceRef) -> object:
    return next((each.bound_to for each in network.addresses if each.ref == subject), None)


def _group(network: NetworkInventory, subject: ResourceRef) -> SecurityGroup | None:
    return next((each for each in network.groups if each.ref == subject), None)


def _gone(before: NetworkInventory, after: NetworkInventory, subject: ResourceRef) -> Counter[NetworkRule]:
    """The rules of a group that were there before and are not after, whatever their ids and places."""
    was, now = _group(before, subject), _group(after, subject)
    had = Counter(_bare(rule) for rule in was.rules) if was is not None else Counter[NetworkRule]()
    has = Counter(_bare(rule) for rule in now.rules) if now is not None else Counter[NetworkRule]()
    return had - has


def _bare(rule: NetworkRule) -> NetworkRule:
    return replace(rule, rule_id="", priority=0, description="")


def _in_words(rule: NetworkRule) -> str:
    """A rule as notices write it."""
    ports = ",".join(str(low) if low == high else f"{low}-{high}" for low, high in rule.ports)
    words = (rule.protocol, "" if rule.ports == EVERY_PORT else ports, "from", ", ".join(rule.peers))
    return " ".join(word for word in words if word)
