"""Every change of a key or a network is judged when it is made, by what the world is and what people were told."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta

from tests.simulation.chronicle import PolicyRead
from tests.simulation.hub import Process
from tests.simulation.oracle.judge import SKEW, Violation
from tests.simulation.settings import KeyRuleSpec, NetRuleSpec, SettingsVersion
from tests.simulation.settings_chronicle import Announced, Book, Call, Intended, KeysShown, NetworkShown
from tests.simulation.trace import Trace

from cloudstand.world.cloud import World
from costguard.domain.keys import EncryptionKey
from costguard.domain.network import NetworkInventory
from costguard.domain.refs import ResourceRef

LONGEST_TRUST = timedelta(days=7)
OF_KEYS = frozenset({"set_rotation", "rotate_key"})


@dataclass(frozen=True, slots=True)
class JudgedCall:
    """One change and what bears on it: the last look of its process, and the rule that process went by."""

    call: Call
    intent: Intended
    subject: ResourceRef
    version: SettingsVersion
    rule: KeyRuleSpec | NetRuleSpec
    seen: KeysShown | NetworkShown
    key: EncryptionKey | None
    book: Book
    world: World

    @property
    def key_rule(self) -> KeyRuleSpec:
        """The rule, of a key."""
        assert isinstance(self.rule, KeyRuleSpec)
        return self.rule

    @property
    def net_rule(self) -> NetRuleSpec:
        """The rule, of a network."""
        assert isinstance(self.rule, NetRuleSpec)
        return self.rule

    @property
    def before(self) -> NetworkInventory:
        """The network in truth, just before the call."""
        assert self.call.network is not None
        return self.call.network[0]

    @property
    def after(self) -> NetworkInventory:
        """The network in truth, just after it."""
        assert self.call.network is not None
        return self.call.network[1]

    def notices(self) -> list[Announced]:
        """What people could read that announces this change to this very subject, by the rule as it still stands."""
        from tests.simulation.oracle.settings_checks import announces

        found = (one for one in self.book.told if one.subject == str(self.subject) and one.rule == self.rule.name)
        standing = (one for one in found if one.version is not None and one.version.named(one.rule) == self.rule)
        return [one for one in standing if announces(self.call, one.title)]


SettingCheck = Callable[[JudgedCall], str]
"""What is wrong with a change by one rule; empty when nothing is."""


class SettingsJudge:
    """Keeps the violations of one simulation of settings."""

    def __init__(
        self,
        world: World,
        book: Book,
        versions: Sequence[SettingsVersion],
        checks: Sequence[tuple[int, SettingCheck]],
        of_undo: Sequence[tuple[int, Callable[[Call, Book, World], str]]],
        trace: Trace,
        *,
        durable: bool,
    ) -> None:
        self.violations: list[Violation] = []
        self._world = world
        self._book = book
        self._versions = versions
        self._checks = checks
        self._of_undo = of_undo
        self._trace = trace
        self._durable = durable

    def add(self, violation: Violation) -> None:
        """Keep one, and show it where it happened."""
        self.violations.append(violation)
        self._trace.note(violation.at, f"VIOLATION {violation}")

    def attempted(self, call: Call) -> None:
        """Rules 17 and 18: no decision is sent twice, whatever became of it, nor anything after a lost answer."""
        for number, what in self._again(call):
            self._say(number, call, what)

    def changed(self, call: Call) -> None:
        """Judge one change at the moment it is made."""
        for number, what in self._found(call):
            self._say(number, call, what)

    def _say(self, number: int, call: Call, what: str) -> None:
        self._trace.note(call.at, f"{call.kind} {call.subject.native_id} {dict(call.said)}")
        self.add(Violation(number, call.at, call.subject.native_id, f"{call.kind}: {what}"))

    def _again(self, call: Call) -> Iterator[tuple[int, str]]:
        number = 17 if call.kind in OF_KEYS else 18
        if call.intent is None:
            yield 19, "no intent of this call stands in the audit"
            return
        for earlier in self._book.calls:
            if earlier.intent is None:
                continue
            mine, theirs = call.intent.action, earlier.intent.action
            if theirs.action_id == mine.action_id:
                yield number, "the same decision was called before"
            elif call.undoes and call.undoes == earlier.undoes and not earlier.refused:
                yield number, "it was taken back before, or may have been"
            elif call.undoes or earlier.undoes or theirs.case_id != mine.case_id or earlier.refused:
                continue
            elif earlier.unanswered:
                yield number, "it was called again after an answer was lost"
            elif earlier.changed:
                yield number, "one violation was mended twice"

    def _found(self, call: Call) -> Iterator[tuple[int, str]]:
        if not self._durable:
            yield 19, "by a ledger that does not outlive its process"
        if call.intent is None:
            return
        if call.undoes:
            yield from self._broken_undo(call)
            return
        seen = self._last_look(call)
        if seen is None:
            yield 8, "the process that did it had not looked"
            return
        good = in_force(self._book.policies, call.process)
        if good is None or good.version is None or call.at - good.at > LONGEST_TRUST + SKEW:
            yield 11, "there was no policy that could be read"
            return
        version, subject = self._versions[good.version], call.intent.action.subject
        key = seen.keys.get(call.subject) if isinstance(seen, KeysShown) else None
        rule = self._rule(call, version, key)
        if rule is None:
            yield 11, "no rule of the policy asks for it"
            return
        judged = JudgedCall(call, call.intent, subject, version, rule, seen, key, self._book, self._world)
        for number, check in self._checks:
            what = check(judged)
            if what:
                yield number, what

    def _broken_undo(self, call: Call) -> Iterator[tuple[int, str]]:
        for number, check in self._of_undo:
            what = check(call, self._book, self._world)
            if what:
                yield number, what

    def _rule(
        self, call: Call, version: SettingsVersion, key: EncryptionKey | None
    ) -> KeyRuleSpec | NetRuleSpec | None:
        if call.kind in OF_KEYS:
            return None if key is None else version.key_rule(key.tags)
        check = {
            "release_address": "unattached_public_address",
            "detach_address": "public_ip",
            "revoke_rule": "open_admin_port",
            "narrow_rule": "open_admin_port",
            "enable_flow_logs": "flow_logs_off",
            "require_imdsv2": "imds_v1",
        }[call.kind]
        rule = version.net_rule(check)
        allowed = {call.kind, "narrow_rule"} if call.kind == "revoke_rule" else {call.kind}  # narrowed to nobody else
        return rule if rule is not None and allowed & set(rule.mend) else None

    def _last_look(self, call: Call) -> KeysShown | NetworkShown | None:
        if call.kind in OF_KEYS:
            close = (one for one in reversed(self._book.keys) if one.process is call.process and one.closely)
            return next((one for one in close if one.shard == call.subject.shard), None)
        shown = (one for one in reversed(self._book.networks) if one.process is call.process)
        return next((one for one in shown if one.shard == call.subject.shard), None)


def in_force(reads: Sequence[PolicyRead], process: Process, *, first: bool = False) -> PolicyRead | None:
    """The policy a process went by: what it read last (or first), or where that failed the last good one."""
    mine = [one for one in reads if one.process is process]
    if not mine:
        return None
    read = mine[0] if first else mine[-1]
    if read.version is not None:
        return read
    earlier = (one for one in reversed(reads) if one.version is not None and one.number <= read.number)
    return next(earlier, None)
