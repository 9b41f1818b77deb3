"""Bugs in how it is done: the last look, the claim, the call, the notice, the memory."""

from __future__ import annotations

from tests.simulation.planting import Bug, Edit

_ACT = "costguard.engine.run.act"
_HAND = "costguard.engine.guards.machines.run"
_HANDS = "costguard.engine.run.run_context"
_RUN = "costguard.engine.run.run"
_NOTICES = "costguard.engine.notify.notices"
_TELL = "costguard.engine.notify.delivery"
_MEMORY = "costguard.engine.ledger.memory"
_ADVANCE = "costguard.cases.advance"
_LAST = "costguard.planning.last_look"
_INTENTS = "costguard.engine.ledger.intents"
_SNOOZES = "costguard.engine.ledger.snoozes"

TOLD_AS_THE_CASE_SAYS = Edit(
    _HANDS,
    "    if warned is None:\n        return None\n",
    "    if True:\n        return None if warned is None else warned.at\n",
)
"""The last look asks no outbox whether the notice was delivered."""

_AGREEMENT = "    now = _Fresh.of(fresh)\n    steps"
_AS_WRITTEN = "tuple((action, action) for action in agreed.due), ())\n" + _AGREEMENT


def _believed(*parts: str) -> Edit:
    """These parts of a file are an authority: alone it shows nothing, since the last look asks the same again."""
    said = ", ".join(f"{part}=agreed.{part}" for part in parts)
    return Edit(
        "costguard.planning.agreed",
        _AGREEMENT,
        f"    if fresh:\n        return Agreement(replace(fresh, {said}), {_AS_WRITTEN}",
    )


_BELIEVED = _believed("due", "transitions")

_PROPOSING = (
    Bug(
        "forged-plan-acts-in-any-mode",
        (9, 10),
        (_BELIEVED, Edit(_LAST, "gentle = mode_rail(verb, min(case.mode, standing.mode))", "gentle = None")),
    ),
    Bug("forged-plan-needs-no-notice", (10, 15), (_BELIEVED, TOLD_AS_THE_CASE_SAYS)),
    Bug(
        "forged-plan-needs-no-grace",
        (10, 15),
        (
            _BELIEVED,
            Edit(
                _LAST,
                "return None if standing.hastened and may_be_hastened(case, verb) else waits",
                "return None",
            ),
        ),
    ),
    Bug(
        "forged-plan-takes-any-rung",
        (9, 10),
        (
            _BELIEVED,
            Edit(_LAST, " or _skips_a_rung(case, rungs)", ""),
            Edit(_LAST, " or _told_before_the_stop(case, rungs, standing.told_at)", ""),
        ),
    ),
    Bug(
        "forged-plan-brings-its-caps",
        (7, 10),
        (
            _believed("due", "transitions", "limits"),
            Edit(
                _ACT,
                "    limit = hand.limit(action, world.policy, seen)\n",
                "    limit = next(limit for limit in plan.limits if limit.rule == action.rule)\n",
            ),
        ),
    ),
)

_LOOKING = (
    Bug(
        "no-last-look",
        (8,),
        (
            Edit(
                _ACT,
                "    found = policy if isinstance(policy, Reason) else "
                "hand.last_look(case, first, policy, now, memory)\n",
                "    found: Reason | PrecheckResult = PrecheckResult((), frozenset(one.resource for one in actions))\n",
            ),
        ),
    ),
    Bug(
        "last-look-not-at-tags",
        (12,),
        (Edit(_HAND, "return exemption(instance, policy, now) or detail", "return detail"),),
    ),
    Bug(
        "last-look-not-at-use",
        (1,),
        (
            Edit(
                _HAND,
                "        bar = bar or _still_true(action, case, instance, reading, rule, now)\n",
                "",
            ),
        ),
    ),
    Bug(
        "last-look-reads-the-window-only",
        (1,),
        (Edit(_HAND, "now - reads_back([rule.idle.lasting])", "now - rule.idle.lasting"),),
    ),
    Bug(
        "last-look-not-at-volumes",
        (4, 5),
        (Edit(_HAND, "bar = _railed(action, case, rule, detail, memory, now)", "bar = None"),),
    ),
    Bug(
        "last-look-at-the-old-policy",
        (8,),
        (Edit(_ACT, "        return world.policy_now()\n", "        return world.policy\n"),),
    ),
    Bug(
        "changed-rule-not-noticed",
        (8, 9),
        (
            Edit(
                _HAND,
                "if rule is None or rule.digest != action.rule_digest or rule.name != action.rule:",
                "if rule is None:",
            ),
        ),
    ),
    Bug(
        "frozen-process-goes-on", (8,), (Edit(_ACT, "if not until - ACT_WITHIN <= clock.now() <= until:", "if False:"),)
    ),
)

_HEARING = (
    Bug(
        "snooze-ignored",
        (16,),
        (
            Edit(
                _ADVANCE,
                "    if seen.snoozed_until is not None:\n"
                "        return CaseStep(_snoozed(case, seen, seen.snoozed_until))\n",
                "",
            ),
            Edit(_HANDS, "if snooze is not None:", "if False:"),
        ),
    ),
    Bug(
        "late-snooze-ignored",
        (16,),
        (Edit(_HANDS, "return (unsnoozed, unturned, owned)", "return (unturned, owned)"),),
    ),
    Bug(
        "late-pause-ignored",
        (20,),
        (Edit(_HANDS, "return (unsnoozed, unturned, owned)", "return (unsnoozed, owned)"),),
    ),
    Bug(
        "kill-switch-ignored",
        (20,),
        (
            Edit(
                _ACT,
                '    return Reason(ReasonCode.KILL_SWITCH, {"by": state.by, "cause": state.reason}) if state.paused',
                "    return None if state.paused",
            ),
            Edit(_HANDS, "if switch.paused:", "if False:"),
        ),
    ),
    Bug(
        "approval-of-another-decision-counts",
        (16,),
        (
            Edit("costguard.planning.build", "approved = item.case.decision_id in inputs.approved", "approved = True"),
            Edit(_HAND, "if memory.approvals.valid(action.decision_id, now) is None:", "if False:"),
            Edit(_HAND, "return None if memory.approvals.use(action.decision_id, now) else reason", "return None"),
        ),
    ),
)

_DOING = (
    Bug(
        "no-reservation",
        (7,),
        (
            Edit(
                _ACT,
                "        taking = _reserve(action, plan, known, memory, world, hand, now)\n",
                "        taking: Reason | tuple[Put, ...] = ()\n",
            ),
        ),
    ),
    Bug(
        "sent-reservation-given-back",
        (7,),
        (
            Edit(
                "costguard.engine.run.settlement",
                "    return reserved.decision_id not in sent\n",
                "    return True\n",
            ),
        ),
    ),
    Bug(
        "intent-not-audited",
        (19,),
        (
            Edit(
                _INTENTS,
                "            self._audit.commit(operations, entry)\n        except",
                "            self._store.transact(operations)\n        except",
            ),
        ),
    ),
    Bug(
        "intent-audited-after-the-call",
        (19,),
        (
            Edit(
                _INTENTS,
                "            self._audit.commit(operations, entry)\n        except",
                "            self._store.transact(operations)\n        except",
            ),
            Edit(
                _ACT,
                "beside=[put], told=[entry])\n",
                "beside=[put], told=[replace(entry, what=type(entry.what).INTENT, facts={'action': "
                "{'action_id': sent.action.action_id}}), entry])\n",
            ),
        ),
    ),
    Bug(
        "two-actions-for-a-subject",
        (6,),
        (
            Edit(
                _INTENTS,
                "        if claimed is not None:\n            operations",
                "        if False:\n            operations",
            ),
            Edit(
                _ACT,
                "hand, found, until, alone=alone) for one in actions]\n",
                "hand, found, until, alone=alone) for one in "
                "(*actions, *(replace(one, action_id=f'{one.action_id}-again') for one in actions))]\n",
            ),
        ),
    ),
    Bug(
        "second-claim-called-all-the-same",
        (6,),
        (
            Edit(
                _ACT,
                "    if not intents.claim(action, run_id, claimed_at, case, cleared.unchanged, memory.store):",
                "    if intents.claim(action, run_id, claimed_at, case, cleared.unchanged, memory.store) is None:",
            ),
        ),
    ),
    Bug(
        "unknown-outcome-counts-as-refused",
        (6,),
        (
            Edit(
                _ACT,
                "outcome, code, detail = Outcome.UNKNOWN, ReasonCode.OUTCOME_UNKNOWN, str(err)",
                "outcome, code, detail = Outcome.REFUSED, ReasonCode.OUTCOME_UNKNOWN, str(err)",
            ),
            Edit("costguard.cases.resolve", "SETTLE = timedelta(hours=1)", "SETTLE = timedelta(0)"),
        ),
    ),
    Bug("memory-may-be-lost", (19,), (Edit(_RUN, "if enforcing and not world.memory.store.durable:", "if False:"),)),
)

_TELLING = (
    Bug(
        "undelivered-counts-as-delivered",
        (15,),
        (
            Edit(
                _TELL,
                "if arrived is not None and arrived.proven and arrived.delivered_at is not None:\n"
                "            after = noticed(case, arrived.delivered_at, arrived.announced)",
                "if arrived is not None:\n            after = noticed(case, clock.now())",
            ),
            TOLD_AS_THE_CASE_SAYS,
        ),
    ),
    Bug(
        "console-counts-as-delivered",
        (15,),
        (
            Edit(
                _TELL,
                "if arrived is not None and arrived.proven and arrived.delivered_at is not None:",
                "if arrived is not None and arrived.delivered_at is not None:",
            ),
            Edit(_MEMORY, "proven = notice.delivered_at if notice.proven else None", "proven = notice.delivered_at"),
            TOLD_AS_THE_CASE_SAYS,
        ),
    ),
    Bug(
        "old-notice-sent-with-past-dates",
        (15,),
        (Edit(_NOTICES, "holds_until=told.created_at + WARNING_HOLDS, ", ""),),
    ),
)

ACTING: tuple[Bug, ...] = (*_PROPOSING, *_LOOKING, *_HEARING, *_DOING, *_TELLING)
