"""Bugs in what is decided: the guard, the policy, the cases, the plan."""

from __future__ import annotations

from tests.simulation.planting import Bug, Edit

_GUARD = "costguard.guards.idle.judge"
_ADVANCE = "costguard.cases.advance"
_RESOLVE = "costguard.cases.resolve"
_MOVES = "costguard.cases.case"
_RAILS = "costguard.planning.rails"
_EXEMPT = "costguard.planning.rails"
_BUILD = "costguard.planning.build"
_SIGNALS = "costguard.domain.signals"
_PROTECTION = "costguard.policy.model.protection"
_SPELLING = "costguard.guards.rules.spelling"
_CLOUD = "costguard.guards.rules.common"
_CAPS = "costguard.engine.ledger.caps"
_HAND = "costguard.engine.guards.machines.run"
_LAST = "costguard.planning.last_look"
_ROLL = "costguard.planning.rollout"
_WORKING = "costguard.policy.model.working_time"

NO_GRACE_AT_LAST = Edit(
    _LAST,
    "return None if standing.hastened and may_be_hastened(case, verb) else waits",
    "return None",
)
"""The last look does not ask whether the grace is over."""

ANY_MODE_AT_LAST = Edit(_LAST, "gentle = mode_rail(verb, min(case.mode, standing.mode))", "gentle = None")
"""Nor how far the rule may go."""

_MEASURING = (
    Bug("coverage-not-asked", (1,), (Edit(_GUARD, "if coverage < bounds.min_coverage:", "if False:"),)),
    Bug("contradicted-is-idle", (1,), (Edit(_GUARD, "if contradicted is not None:", "if False:"),)),
    Bug(
        "stale-metrics-trusted",
        (1,),
        (
            Edit(
                _GUARD,
                "if signal.newest_at is None or asked_at - (signal.newest_at + signal.period) > allowed:",
                "if False:",
            ),
        ),
    ),
    Bug(
        "young-machines-judged",
        (1,),
        (
            Edit(_GUARD, "if instance.launched_at is None or instance.launched_at > reading.since:", "if False:"),
            Edit(_GUARD, "if coverage < bounds.min_coverage:", "if False:"),
        ),
    ),
    Bug(
        "one-card-is-enough",
        (1,),
        (
            Edit(_GUARD, "if busy and not (idle_cards and busy_cards):", "if busy and not idle_cards:"),
            Edit(_GUARD, "    if busy:\n        cards =", "    if False:\n        cards ="),
        ),
    ),
    Bug(
        "bound-ten-times-higher",
        (1,),
        (
            Edit(
                _GUARD,
                "s.maximum >= bound_for(s, bounds[s.name], instance)",
                "s.maximum >= 20 * bound_for(s, bounds[s.name], instance)",
            ),
        ),
    ),
    Bug(
        "lowest-instead-of-highest",
        (1,),
        (Edit(_SIGNALS, "maximum=_highest(values),", "maximum=min(values, default=None),"),),
    ),
    Bug(
        "missing-samples-not-expected",
        (1,),
        (Edit(_SIGNALS, "return min(1.0, self.samples / self.expected) if self.expected > 0 else 0.0", "return 1.0"),),
    ),
    Bug(
        "cadence-learnt-from-the-window-alone",
        (1,),
        (Edit(_SIGNALS, "return max(CADENCE_SHOWS, *windows, timedelta(0))", "return max([*windows, timedelta(0)])"),),
    ),
    Bug(
        "window-cut-short",
        (1,),
        (
            Edit(
                _SIGNALS,
                "first = max(0, math.floor((since - self.start) / HOUR))",
                "first = max(0, math.floor((since - self.start) / HOUR)) + 2",
            ),
            Edit(_GUARD, "if coverage < bounds.min_coverage:", "if False:"),
        ),
    ),
)

_PROTECTING = (
    Bug("committed-capacity-touched", (12,), (Edit(_GUARD, "if instance.billing in _BILLING_REASONS:", "if False:"),)),
    Bug("managed-machines-touched", (12,), (Edit(_GUARD, "if instance.managed_by is not None:", "if False:"),)),
    Bug(
        "tags-ignored",
        (12,),
        (Edit(_EXEMPT, "tagged = protected_by_tag(instance.tags, policy.protection, now)", "tagged = None"),),
    ),
    Bug(
        "keep-tag-ignored",
        (12,),
        (
            Edit(_PROTECTION, "controller_tags) or _kept(tags, now)", "controller_tags)"),
            Edit(_BUILD, "tagged = kept_until(instance.tags, inputs.now) if", "tagged = None if"),
        ),
    ),
    Bug(
        "tags-matched-by-exact-spelling",
        (12,),
        (Edit(_SPELLING, 'return "".join(', 'return text or "".join('),),
    ),
    Bug(
        "unparsable-expiry-means-expired",
        (12,),
        (
            Edit(_PROTECTION, "if _end(value) is None:", "if False:"),
            Edit(_PROTECTION, "return end is not None and (", "return end is None or ("),
        ),
    ),
    Bug(
        "protected-accounts-ignored",
        (12,),
        (Edit(_EXEMPT, "if account in policy.protection.accounts or any(", "if False and any("),),
    ),
    Bug(
        "exceptions-ignored",
        (12,),
        (Edit(_EXEMPT, "if exempted.expires_at > now and exempted.owns.spares(instance):", "if False:"),),
    ),
    Bug("termination-protection-ignored", (9, 12), (Edit(_RAILS, "    if barred:", "    if False:"),)),
    Bug(
        "protections-not-read-before-the-call",
        (12,),
        (
            Edit(_HAND, "    if not wanted:\n        return detail\n", "    if True:\n        return detail\n"),
            Edit(_HAND, "    if unread:\n", "    if False:\n"),
        ),
    ),
    Bug(
        "termination-protection-bars-nothing",
        (12,),
        (Edit(_CLOUD, "TERMINATION: frozenset({Verb.TERMINATE}),", "TERMINATION: frozenset(),"),),
    ),
    Bug(
        "stop-protection-ignored",
        (12,),
        (Edit(_CLOUD, "STOP: frozenset({Verb.STOP, Verb.TERMINATE}),", "STOP: frozenset({Verb.TERMINATE}),"),),
    ),
    Bug(
        "protection-set-after-the-notice-keeps-it",
        (9,),
        (Edit(_ADVANCE, "return held(_wait_begun_anew(case, rungs, now), reason)", "return held(case, reason)"),),
    ),
    Bug(
        "loosened-protection-keeps-the-wait",
        (9,),
        (
            Edit(
                "costguard.policy.diff.idle",
                '"termination_protection_bars": Part(lambda _, new: new is not Bars.EVERYTHING, told=False)',
                '"termination_protection_bars": Part(None, told=False)',
            ),
        ),
    ),
    Bug(
        "exceptions-matched-by-exact-spelling",
        (9, 11, 12),
        (
            Edit(_EXEMPT, "exempted.owns.spares(instance)", "exempted.owns.matches(instance)"),
            Edit(
                "costguard.guards.rules.idle",
                "return any(each.spares(instance)",
                "return any(each.matches(instance)",
            ),
        ),
    ),
    Bug(
        "harshest-rule-wins",
        (9,),
        (
            Edit(
                _GUARD,
                "return min(applying, key=IdleRule.harshness, default=None)",
                "return max(applying, key=IdleRule.harshness, default=None)",
            ),
        ),
    ),
)

_LADDER = (
    Bug(
        "no-grace",
        (9, 15),
        (
            Edit(
                _ADVANCE,
                "if waits is not None and not (seen.hastened and may_be_hastened(case, rung.verb)):",
                "if False:",
            ),
            NO_GRACE_AT_LAST,
        ),
    ),
    Bug(
        "half-the-grace",
        (9, 15),
        (
            Edit(_ADVANCE, "grace_end(case.since, rung.after))", "grace_end(case.since, rung.after / 2))"),
            Edit(_ADVANCE, "grace_end(case.since, rung.after), seen", "grace_end(case.since, rung.after / 2), seen"),
            Edit(_LAST, "at = grace_end(at, rungs[place].after)", "at = grace_end(at, rungs[place].after / 2)"),
        ),
    ),
    Bug(
        "nearly-due-is-due",
        (9, 15),
        (
            Edit(
                _ADVANCE,
                "waits = not_yet(case, rung.verb, grace_end(case.since, rung.after), seen.now, grace_end)",
                "waits = not_yet(case, rung.verb, grace_end(case.since, rung.after * 3 / 4), seen.now, grace_end)",
            ),
            Edit(
                _ADVANCE,
                "at, unsuited = max(no_earlier_than_announced(case, verb, over), now), False",
                "at, unsuited = max(over, now), False",
            ),
            NO_GRACE_AT_LAST,
        ),
    ),
    Bug(
        "calendar-ignored",
        (15,),
        (
            Edit(
                _BUILD,
                "return inputs.policy.calendar.after if inputs.policy.calendar is not None else plain_time",
                "return plain_time",
            ),
            Edit(
                "costguard.engine.run.run_context",
                "grace_end=policy.calendar.after if policy.calendar is not None else plain_time,",
                "grace_end=plain_time,",
            ),
            Edit(
                "costguard.engine.notify.notices",
                "world.policy.calendar.after if world.policy.calendar else plain_time",
                "plain_time",
            ),
        ),
    ),
    Bug(
        "a-stop-on-saturday",
        (15,),
        (
            Edit(
                _ADVANCE,
                "at, unsuited = max(no_earlier_than_announced(case, verb, over), now), False",
                "at, unsuited = no_earlier_than_announced(case, verb, over), False",
            ),
        ),
    ),
    Bug(
        "a-stop-on-the-day-before-a-holiday",
        (15,),
        (Edit(_WORKING, "if self.exceptions.get(rest) is False:", "if False:"),),
    ),
    Bug(
        "a-year-without-dates-shortens-a-grace",
        (15,),
        (Edit(_WORKING, "left, stretched = 2 * left + 2 * self.weekly(), True", "stretched = True"),),
    ),
    Bug(
        "announced-date-is-no-floor",
        (15,),
        (Edit(_ADVANCE, "return at if named is None else max(at, named)", "return at"),),
    ),
    Bug(
        "restart-not-noticed",
        (8, 9),
        (
            Edit(
                _ADVANCE,
                'if instance.run_epoch not in {"", case.run_epoch} or started_again(case, instance):',
                "if False:",
            ),
            Edit(_HAND, "if not same_run(case, instance):", "if False:"),
        ),
    ),
    Bug(
        "anybodys-request-is-ours",
        (8, 9),
        (
            Edit(_RESOLVE, "return instance.stopped_by == seen.last_request", "return True"),
            Edit(_RESOLVE, "return instance.stopped_by == case.stop_request", "return True"),
        ),
    ),
    Bug(
        "use-cancels-nothing",
        (9,),
        (
            Edit(
                _ADVANCE,
                "if finding.verdict is Verdict.COMPLIANT and instance.state is InstanceState.RUNNING:",
                "if False:",
            ),
        ),
    ),
    Bug(
        "use-unseen-while-a-notice-is-under-way",
        (9,),
        (Edit(_ADVANCE, "return _heeding(resolved(case, seen), seen)", "return resolved(case, seen)"),),
    ),
    Bug("exemption-cancels-nothing", (9,), (Edit(_ADVANCE, "if finding.verdict is Verdict.EXEMPT:", "if False:"),)),
    Bug(
        "unmeasured-acts",
        (1,),
        (
            Edit(
                _ADVANCE,
                "    if instance.state is InstanceState.RUNNING and (\n"
                "        seen.finding is None or seen.finding.verdict is not Verdict.VIOLATION\n    ):",
                "    if False:",
            ),
            Edit(
                _HAND,
                "return None if finding.verdict is Verdict.VIOLATION else finding.reason",
                "return finding.reason if finding.verdict is Verdict.COMPLIANT else None",
            ),
        ),
    ),
    Bug("loosened-rule-keeps-the-wait", (9,), (Edit(_ADVANCE, "    if not looser:", "    if True:"),)),
    Bug(
        "second-notice-left-out",
        (9, 15),
        (
            Edit(
                "costguard.guards.rules.idle",
                "                rungs.append(Rung(Verb.WARN, timedelta(0)))\n                if not copied:",
                "                if not copied:",
            ),
        ),
    ),
    Bug(
        "quarantine-left-out",
        (9,),
        (
            Edit(
                "costguard.guards.rules.idle",
                "rungs.append(Rung(Verb.SNAPSHOT, step.wait))",
                "rungs.append(Rung(Verb.SNAPSHOT, timedelta(0)))",
            ),
        ),
    ),
    Bug(
        "incomplete-shard-acts",
        (3,),
        (Edit(_BUILD, "shard_complete=shard is not None and shard.complete,", "shard_complete=shard is not None,"),),
    ),
    Bug(
        "failed-listing-reads-as-empty",
        (3,),
        (
            Edit(
                "costguard.engine.run.scan",
                '        return ShardFacts(shard, (), (gap_of(err, shard, "inventory"),))',
                "        del err\n        return ShardFacts(shard, ())",
            ),
        ),
    ),
    Bug(
        "observe-acts",
        (9,),
        (Edit(_RAILS, "    if mode is Mode.OBSERVE:\n        return Reason(ReasonCode.MODE_OBSERVE)\n", ""),),
    ),
    Bug("warn-acts", (9,), (Edit(_RAILS, "if mode is Mode.WARN and verb is not Verb.WARN:", "if False:"),)),
)

_LOSING = (
    Bug("old-copies-count", (4,), (Edit(_MOVES, "        and snapshot.started_at >= floor\n", ""),)),
    Bug("pending-copies-count", (4,), (Edit(_MOVES, "        and snapshot.state is state\n", ""),)),
    Bug(
        "one-volume-is-enough",
        (4,),
        (
            Edit(
                _MOVES,
                "return tuple(volume for volume in detail.volumes if",
                "return tuple(volume for volume in detail.volumes[:1] if",
            ),
        ),
    ),
    Bug(
        "copied-one-by-one-while-it-runs",
        (4,),
        (Edit(_MOVES, "    if not detail.copied_together or", "    if detail.copied_together or"),),
    ),
    Bug("half-a-set-is-enough", (4,), (Edit(_MOVES, "frozenset.intersection(*(", "frozenset.union(*("),)),
    Bug(
        "failed-copy-goes-on",
        (4,),
        (
            Edit(_RESOLVE, "    if not missing:\n", "    if True:\n"),
            Edit(
                _RAILS,
                "    missing = uncopied(case, detail)\n    if missing:",
                "    missing = uncopied(case, detail)\n    if False:",
            ),
            Edit(
                _ADVANCE,
                "if rung.verb is Verb.TERMINATE and missing:",
                "if False:",
            ),
        ),
    ),
    Bug(
        "terminate-does-not-look-at-copies",
        (4,),
        (
            Edit(
                _RAILS,
                "    missing = uncopied(case, detail)\n    if missing:",
                "    missing = uncopied(case, detail)\n    if False:",
            ),
            Edit(
                _ADVANCE,
                "if rung.verb is Verb.TERMINATE and missing:",
                "if False:",
            ),
        ),
    ),
    Bug(
        "no-volumes-means-nothing-to-copy",
        (4,),
        (
            Edit(_RAILS, "if verb in {Verb.SNAPSHOT, Verb.TERMINATE} and not detail.volumes:", "if False:"),
            Edit(
                _ADVANCE,
                "if seen.detail is None or not seen.detail.volumes:",
                "if seen.detail is None:",
            ),
        ),
    ),
    Bug("local-disk-ignored", (5,), (Edit(_RAILS, "        if lost is not None:\n            return lost\n", ""),)),
    Bug(
        "ask-means-lose",
        (5,),
        (Edit(_RAILS, "(limits.local_disk is Consent.ASK and approved)", "limits.local_disk is Consent.ASK"),),
    ),
    Bug(
        "unknown-local-disk-means-none",
        (5,),
        (
            Edit(
                _RAILS,
                "if instance.local_disk_gib is not None and instance.local_disk_gib <= 0:",
                "if not instance.local_disk_gib:",
            ),
        ),
    ),
    Bug(
        "terminate-repeated-after-an-unknown-outcome",
        (6,),
        (
            Edit(
                _RESOLVE,
                '    return held(case, Reason(ReasonCode.OUTCOME_UNKNOWN, {"verb": Verb.TERMINATE.value}))',
                "    return tried_again(case, ReasonCode.NOT_TAKEN_EFFECT)",
            ),
        ),
    ),
)

_CAPPING = (
    Bug(
        "count-cap-ignored",
        (7,),
        (
            Edit(_RAILS, "if used.actions + 1 > limit.max_actions:", "if False:"),
            Edit(_CAPS, "if used.actions + 1 > max_actions:", "if False:"),
        ),
    ),
    Bug(
        "cap-of-zero-means-unlimited",
        (2, 7),
        (
            Edit(
                _RAILS,
                "if used.actions + 1 > limit.max_actions:",
                "if limit.max_actions and used.actions + 1 > limit.max_actions:",
            ),
            Edit(_CAPS, "if used.actions + 1 > max_actions:", "if max_actions and used.actions + 1 > max_actions:"),
        ),
    ),
    Bug(
        "terminations-have-no-cap",
        (7,),
        (Edit(_RAILS, "most = rule.limits.terminations if", "most = 999 if"),),
    ),
    Bug(
        "share-of-zero-means-one",
        (2, 7),
        (Edit(_RAILS, "if share > 0 and instances_seen > 0:", "if instances_seen > 0:"),),
    ),
    Bug(
        "share-rounded-up",
        (7,),
        (
            Edit(
                _RAILS,
                "by_share = math.floor(share * Decimal(instances_seen))",
                "by_share = math.ceil(share * Decimal(instances_seen))",
            ),
        ),
    ),
    Bug(
        "money-cap-ignored",
        (7,),
        (
            Edit(_RAILS, "if spent + rate.money.amount > cap.amount:", "if False:"),
            Edit(_CAPS, "return ReasonCode.CAP_MONEY if total > min(limits) else None", "return None"),
        ),
    ),
    Bug(
        "unknown-price-costs-nothing",
        (7,),
        (
            Edit(_RAILS, "        return Reason(ReasonCode.PRICE_UNKNOWN)", "        return None"),
            Edit(_CAPS, "        return ReasonCode.PRICE_UNKNOWN", "        return None"),
        ),
    ),
    Bug(
        "uncapped-currency-is-unlimited",
        (7,),
        (
            Edit(
                _RAILS,
                '        return Reason(ReasonCode.CURRENCY_UNCAPPED, {"currency": rate.money.currency})',
                "        return None",
            ),
            Edit(_CAPS, "        return ReasonCode.CURRENCY_UNCAPPED", "        return None"),
        ),
    ),
    Bug(
        "caps-forgotten-after-half-a-day",
        (7,),
        (Edit(_CAPS, "_WINDOW = timedelta(hours=24)", "_WINDOW = timedelta(hours=12)"),),
    ),
    Bug(
        "keep-that-no-run-saw-forgotten",
        (9,),
        (Edit(_ADVANCE, " or kept_since_told(case, seen.kept_at)", ""),),
    ),
    Bug(
        "cap-raced-inside-one-run",
        (7,),
        (
            Edit(_CAPS, "_KEPT = timedelta(hours=48)", "_RACED = {}\n_KEPT = timedelta(hours=48)"),
            Edit(
                _CAPS,
                "        reserved, version = self._read(guard, cap)\n        mine = next(",
                "        reserved, version = self._read(guard, cap)\n"
                "        run = getattr(self._store, '_store', self._store)\n"
                "        reserved = _RACED.setdefault((run, guard, cap), reserved)\n"
                "        mine = next(",
            ),
        ),
    ),
    Bug(
        "caps-of-other-runs-not-counted",
        (7,),
        (
            Edit(
                _CAPS,
                "refusal = _refusal(_usage(_counting(others, now)), cost, max_actions, max_hourly)",
                "refusal = _refusal(_usage(()), cost, max_actions, max_hourly)",
            ),
        ),
    ),
)

_ROLLOUT = (
    Bug(
        "rollout-ignored",
        (15,),
        (
            Edit(
                _RAILS,
                "allowed, why = rollout.of(case.owner, case.subject.account)",
                "allowed, why = Mode.ENFORCE, None",
            ),
            Edit(
                _BUILD,
                "rule = at_most(rule, inputs.rollout.of(_owner_now(ref, findings, case), ref.account)[0])",
                "pass",
            ),
        ),
    ),
    Bug(
        "rollout-step-not-told",
        (15,),
        (Edit(_ROLL, "bar = _untold(told_at, now)", "bar = None"),),
    ),
)

DECIDING: tuple[Bug, ...] = (*_MEASURING, *_ROLLOUT, *_PROTECTING, *_LADDER, *_LOSING, *_CAPPING)
