"""Bugs of keys and networks: what is told and waited for, looked at again, kept, and taken back."""

from __future__ import annotations

from tests.simulation.bugs_acting import TOLD_AS_THE_CASE_SAYS
from tests.simulation.bugs_deciding import ANY_MODE_AT_LAST
from tests.simulation.planting import Bug, Edit

_ADVANCE = "costguard.cases.advance"
_CASE = "costguard.cases.remediation"
_PLAN = "costguard.planning.remediation"
_KEY_HAND = "costguard.engine.guards.keys.run"
_KEY_LOOK = "costguard.engine.guards.keys.look"
_NET_HAND = "costguard.engine.guards.networks.run"
_NET_LOOK = "costguard.engine.guards.networks.look"
_SIGHTINGS = "costguard.engine.guards.networks.look"
_WAYS = "costguard.guards.network.admin_paths"
_NET_MENDS = "costguard.guards.network.remediation"
_HANDS = "costguard.engine.run.run_context"
_UNDO = "costguard.engine.answers.undo"

_OTHER_KEY_MEND = Edit(
    _KEY_HAND,
    "if judged.mend != action.mend or remediation_terms(judged.rule, judged.mend) != case.terms:",
    "if False:",
)

_TOLD = (
    Bug(
        "mend-without-its-wait",
        (15,),
        (Edit(_CASE, "Rung(Verb.MEND, rule.wait)", "Rung(Verb.MEND, timedelta(0))"),),
        settings=True,
    ),
    Bug(
        "half-the-wait-before-a-mend",
        (15,),
        (
            Edit(_CASE, "Rung(Verb.MEND, rule.wait)", "Rung(Verb.MEND, rule.wait / 2)"),
            Edit(_ADVANCE, "return at if named is None else max(at, named)", "return at"),
        ),
        settings=True,
    ),
    Bug(
        "undelivered-announcement-counts",
        (15,),
        (
            Edit(
                "costguard.engine.notify.delivery",
                "if arrived is not None and arrived.proven and arrived.delivered_at is not None:\n"
                "            after = noticed(case, arrived.delivered_at, arrived.announced)",
                "if arrived is not None:\n            after = noticed(case, clock.now())",
            ),
            TOLD_AS_THE_CASE_SAYS,
        ),
        settings=True,
    ),
    Bug(
        "told-while-barred-counts",
        (15,),
        (Edit(_PLAN, "barred=judged is not None and judged.bar is not None", "barred=False"),),
        settings=True,
    ),
    Bug(
        "changed-mend-not-noticed",
        (15, 18),
        (
            Edit(_CASE, "if is_same and terms == case.terms:", "if True:"),
            Edit(
                _NET_HAND,
                "if mend is None or judged.mend != mend or remediation_terms(judged.rule, judged.mend) != case.terms:",
                "if mend is None:",
            ),
        ),
        settings=True,
    ),
    Bug(
        "changed-rule-of-mends-not-noticed",
        (15,),
        (
            Edit(_CASE, "if is_same and terms == case.terms:", "if True:"),
            Edit(_KEY_HAND, "judged.rule is None or judged.rule.digest != action.rule_digest:", "judged.rule is None:"),
            _OTHER_KEY_MEND,
            Edit(_NET_HAND, "if judged.rule is None or judged.rule.digest != action.rule_digest:", "if False:"),
            Edit(
                _NET_HAND,
                "if mend is None or judged.mend != mend or remediation_terms(judged.rule, judged.mend) != case.terms:",
                "if mend is None:",
            ),
        ),
        settings=True,
    ),
    Bug(
        "other-period-than-announced",
        (17,),
        (Edit(_KEY_HAND, 'int(mend.parameters["days"])', '2 * int(mend.parameters["days"])'),),
        settings=True,
    ),
)

_LOOKED = (
    Bug(
        "first-look-is-the-last",
        (18,),
        (
            Edit(
                _NET_HAND,
                "network, instances = network_now(\n            world.networks[subject.cloud], "
                "world.readings[subject.cloud], subject.shard, world.clock, world.workers\n        )",
                "network, instances = self.__dict__.get('_first') or network_now(\n            "
                "world.networks[subject.cloud], world.readings[subject.cloud], subject.shard, world.clock, "
                "world.workers\n        )\n        self._first = (network, instances)",
            ),
        ),
        settings=True,
    ),
    Bug(
        "two-runs-close-a-way-each",
        (18,),
        (
            Edit(
                _NET_HAND,
                "if mend is None or mend.kind not in _CLOSING:\n            return ()",
                "if True:\n            return ()",
            ),
        ),
        settings=True,
    ),
    Bug(
        "own-change-need-not-show",
        (18,),
        (Edit(_NET_HAND, "if before_of(mend, network, instances) == made.before:", "if False:"),),
        settings=True,
    ),
    Bug(
        "version-of-a-key-not-compared",
        (17,),
        (Edit(_KEY_HAND, "if key.version != case.run_epoch:", "if False:"),),
        settings=True,
    ),
    Bug(
        "last-look-at-a-key-not-judged",
        (12, 17),
        (
            Edit(_KEY_HAND, "if key.version != case.run_epoch:", "if False:"),
            Edit(_KEY_HAND, "if judged.finding.verdict is not Verdict.VIOLATION:", "if False:"),
            _OTHER_KEY_MEND,
            Edit(_KEY_HAND, "if judged.bar is not None:", "if False:"),
        ),
        settings=True,
    ),
    Bug(
        "mends-of-incomplete-shards",
        (3,),
        (
            Edit(
                _KEY_LOOK,
                'shards={read.shard: not any(gap.what == "inventory" for gap in read.gaps) for read in inventories}',
                "shards={read.shard: True for read in inventories}",
            ),
            Edit(_NET_LOOK, "return network.lacks(*PARTS, INSTANCES) is None", "return True"),
        ),
        settings=True,
    ),
    Bug(
        "rotated-meanwhile-waits-for-ever",
        (0,),
        (Edit(_CASE, "finding.run_epoch == case.run_epoch\n", "True\n"),),
        settings=True,
    ),
    Bug(
        "mend-sent-again-after-an-unknown-outcome",
        (17, 18),
        (
            Edit(
                _CASE,
                'after = held(case, Reason(ReasonCode.OUTCOME_UNKNOWN, {"verb": Verb.MEND.value}))',
                "after = tried_again(case, ReasonCode.NOT_TAKEN_EFFECT)",
            ),
        ),
        settings=True,
    ),
)

_SPARED = (
    Bug(
        "tags-of-settings-ignored",
        (12,),
        (
            Edit(
                "costguard.planning.rails",
                "return protected_by_tag(tags, policy.protection, now) or _protected_account(ref, policy)",
                "return _protected_account(ref, policy)",
            ),
        ),
        settings=True,
    ),
    Bug(
        "snooze-of-settings-ignored",
        (16,),
        (
            Edit(
                _CASE,
                "    if seen.snoozed_until is not None:\n        return CaseStep(_snoozed",
                "    if False:\n        return CaseStep(_snoozed",
            ),
            Edit(_HANDS, "    if snooze is not None:", "    if False:"),
        ),
        settings=True,
    ),
    Bug(
        "pause-of-settings-ignored",
        (20,),
        (
            Edit(
                "costguard.engine.run.act",
                '    return Reason(ReasonCode.KILL_SWITCH, {"by": state.by, "cause": state.reason}) if state.paused',
                "    return None if state.paused",
            ),
            Edit(_HANDS, "    if switch.paused:", "    if False:"),
        ),
        settings=True,
    ),
    Bug(
        "observe-mends",
        (9,),
        (
            Edit(
                _PLAN,
                "observed(inputs.observing, case, mode_rail(verb, case.mode))",
                "None",
            ),
            ANY_MODE_AT_LAST,
        ),
        settings=True,
    ),
    Bug(
        "cap-of-mends-ignored",
        (7,),
        (Edit(_PLAN, "rule.actions_per_day, (_NOTHING,)", "1000, (_NOTHING,)"),),
        settings=True,
    ),
    Bug(
        "kept-rule-touched",
        (18,),
        (
            Edit(
                "costguard.guards.network.rules",
                "return any(kept in {ref.native_id, str(ref), *names} for kept in self.keep)",
                "return False",
            ),
        ),
        settings=True,
    ),
    Bug(
        "last-way-in-ignored",
        (18,),
        (Edit(_NET_LOOK, "bar = bar or last_admin_path(mend, inventories, instances, rule)", "pass"),),
        settings=True,
    ),
    Bug(
        "an-address-that-nothing-has-is-a-way",
        (18,),
        (
            Edit(
                _WAYS,
                "from_outside = [*found.joined, *r.common([*found.public, *found.routed], self._trusted[family])]",
                "from_outside = found.whole()",
            ),
        ),
        settings=True,
    ),
    Bug(
        "own-address-is-a-way",
        (18,),
        (
            Edit(_WAYS, "if r.minus(from_outside, own[family]):", "if from_outside:"),
            Edit(_WAYS, "seen = {card.ref, *(each.ref for each in self._cards_of(card))}", "seen = set()"),
        ),
        settings=True,
    ),
    Bug(
        "machine-that-nobody-enters-is-a-way",
        (18,),
        (
            Edit(
                _WAYS,
                "if any(self._is_called(each, port) or self._is_open(each, port) for each in machine):",
                "if machine:",
            ),
        ),
        settings=True,
    ),
    Bug(
        "way-by-a-bastions-address-forgotten",
        (18,),
        (
            Edit(
                "costguard.guards.network.last_admin_path",
                "cards += _called_from(mend, inventory, cards, rule)",
                "pass",
            ),
        ),
        settings=True,
    ),
    Bug(
        "address-released-by-its-age",
        (18,),
        (
            Edit(
                "costguard.guards.network.checks.addresses",
                "since = _latest(ground.first_seen.get(address.ref, ground.now), address.allocated_at)",
                "since = address.allocated_at or ground.first_seen.get(address.ref, ground.now)",
            ),
        ),
        settings=True,
    ),
    Bug(
        "address-in-use-keeps-its-count",
        (18,),
        (
            Edit(
                _SIGHTINGS,
                "(each.ref for each in read.addresses if each.state is AddressState.UNATTACHED)",
                "(each.ref for each in read.addresses)",
            ),
        ),
        settings=True,
    ),
    Bug(
        "use-after-its-notice-is-no-end",
        (15,),
        (
            Edit(
                "costguard.cases.remediation",
                " or seen.finding.reason.code is ReasonCode.NET_UNATTACHED_YET:",
                ":",
            ),
        ),
        settings=True,
    ),
    Bug(
        "use-that-a-last-look-saw-is-forgotten",
        (18,),
        (
            Edit(
                "costguard.engine.guards.networks.run",
                "sightings.used(self._read.pop(), self._world.clock.now())",
                "self._read.pop()",
            ),
        ),
        settings=True,
    ),
)

_BACK = (
    Bug(
        "before-image-not-stored",
        (18,),
        (
            Edit(
                _NET_HAND,
                "((*heard, *unturned), frozenset({subject}), before_of(mend, network, instances))",
                "(heard, frozenset({subject}))",
            ),
        ),
        settings=True,
    ),
    Bug(
        "undo-twice",
        (18,),
        (Edit(_UNDO, "        if earlier.outcome is not Outcome.REFUSED:", "        if False:"),),
        settings=True,
    ),
    Bug(
        "undo-while-paused",
        (20,),
        (
            Edit(_UNDO, "    barred = pause_reason(memory, host_paused=paused)", "    barred = None"),
            Edit(_UNDO, "        if not switch.paused:", "        if True:"),
        ),
        settings=True,
    ),
    Bug(
        "late-pause-of-an-undo-ignored",
        (20,),
        (Edit(_UNDO, "unchanged=(unturned,)", "unchanged=()"),),
        settings=True,
    ),
    Bug(
        "narrowed-rules-left-by-undo",
        (18,),
        (
            Edit(
                _NET_MENDS,
                'again = {"rule": before["rule"], "instead_of": receipt_native_id, "peers": said.get("peers", "")}',
                'again = {"rule": before["rule"]}',
            ),
        ),
        settings=True,
    ),
)

SETTINGS: tuple[Bug, ...] = (*_TOLD, *_LOOKED, *_SPARED, *_BACK)
