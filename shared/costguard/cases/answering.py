"""Whether an answer counts, and what it comes to. Pure: what is known in, accepted or refused with a code out.

Nothing here lifts a rail. An accepted answer is written to the ledger, and the next run heeds it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from enum import Enum

from typing_extensions import assert_never

from costguard.cases.case import Case, CaseStatus, Phase, decision_id, ladder, speaks_for
from costguard.domain.actions import Verb
from costguard.domain.answers import Answer, AnswerCode, AnswerKind, Person
from costguard.domain.money import Money
from costguard.domain.reasons import FactValue, ReasonCode
from costguard.guards import OF_MACHINES
from costguard.guards.rules.common import Mode
from costguard.guards.rules.idle import SPENT
from costguard.policy.model.policy import AnswerTerms
from costguard.policy.model.terms import rule_from_terms

VOTE_VALID_FOR = timedelta(hours=24)  # long enough for the next scheduled run, short enough to be meant
LONGEST_KEEP = timedelta(days=90)  # longer needs an exception, which has an approver
START_VALID_FOR = timedelta(hours=48)  # for so long runs try to start a machine: also those of a daily schedule
SLACK, LINK, CLI = "slack", "link", "cli"


class Role(str, Enum):
    """As what somebody agrees. `UNLISTED`: whoever may write to the ledger, by a name that the policy does not list."""

    UNLISTED = ""
    OWNER = "owner"
    APPROVER = "approver"
    BOTH = "both"


@dataclass(frozen=True, slots=True)
class Vote:
    """One person's word for one decision. `asked`: they had asked for it to be stopped as well."""

    by: str
    at: datetime
    expires_at: datetime
    asked: bool = False
    role: Role = Role.UNLISTED


def live_votes(votes: Iterable[Vote], now: datetime) -> tuple[Vote, ...]:
    """The votes that still count at `now`."""
    return tuple(vote for vote in votes if now < vote.expires_at)


def enough(votes: Iterable[Vote], needed: int, now: datetime, *, apart: bool = False) -> bool:
    """Whether `needed` different people agree, not only whoever asked for it; of several not owners alone.

    `apart`: an approver is among them who did not ask, and who is not at once the one owner who agrees.
    """
    counted = live_votes(votes, now)
    if needed > 1 and all(vote.role is Role.OWNER for vote in counted):
        return False
    if apart and not _apart(counted):
        return False
    return len({vote.by for vote in counted}) >= max(1, needed) and any(not vote.asked for vote in counted)


def _apart(votes: Iterable[Vote]) -> bool:
    """A person who says so in Slack and at the command line is one person: ids are compared without their channel."""
    people = {person_id(vote.by) for vote in votes}
    return any(
        vote.role is Role.APPROVER or (vote.role is Role.BOTH and len(people) > 1) for vote in votes if not vote.asked
    )


def person_id(by: str) -> str:
    """A person's id without the channel that proved it."""
    return by.rpartition("/")[2].rpartition(":")[2].rstrip(")")


def with_vote(votes: Iterable[Vote], vote: Vote, now: datetime) -> tuple[Vote, ...]:
    """The live votes with one more; whoever voted already has said nothing new."""
    counted = live_votes(votes, now)
    return counted if any(other.by == vote.by for other in counted) else (*counted, vote)


@dataclass(frozen=True, slots=True)
class AnsweredNotice:
    """What the notice says that the answer is to. `channel` as the policy writes it, `sent_to` as the channel says it.

    `hourly` None: nobody knows what the subject costs.
    """

    channel: str
    sent_to: str
    hourly: Money | None


@dataclass(frozen=True, slots=True)
class AnswerContext:
    """What is known where an answer is weighed.

    `came_through` is the channel that the answer came through, in the channel's own words. `told` are the notices that
    offered it; `anywhere`: whoever may answer for it need not come through their channel. `votes` are those for the
    same thing, `asked` those who want the subject of the case stopped now. `people` may answer for the case's owner.
    `kept_until` is None where nobody keeps it. `disowned` are the names that count no more. `policy_usable` is False
    while the policy in force is too old to act on. `may_start`: it lets machines be started again. `start_until` is
    when trying ends that somebody asked for, None where nobody did. `longest_exception` is zero where nobody else could
    agree to one.
    """

    case: Case | None
    told: tuple[AnsweredNotice, ...]
    terms: AnswerTerms
    now: datetime
    came_through: str = ""
    people: tuple[str, ...] = ()
    votes: tuple[Vote, ...] = ()
    asked: frozenset[str] = frozenset()
    kept_until: datetime | None = None
    disowned: frozenset[str] = frozenset()
    policy_usable: bool = True
    anywhere: bool = False
    may_start: bool = False
    start_until: datetime | None = None
    longest_exception: timedelta = timedelta(0)


@dataclass(frozen=True, slots=True)
class Accepted:
    """The answer counts. `needed` people must say the same, of whom one is `apart` as `enough` has it.

    `until` is when a `KEEP` ends; `asked` and `role` are those of a `Vote`.
    """

    code: AnswerCode
    facts: Mapping[str, FactValue] = field(default_factory=dict)
    needed: int = 1
    until: datetime | None = None
    asked: bool = False
    role: Role = Role.UNLISTED
    apart: bool = False


@dataclass(frozen=True, slots=True)
class Refused:
    """The answer changes nothing, and why."""

    code: AnswerCode
    facts: Mapping[str, FactValue] = field(default_factory=dict)


Weighed = Accepted | Refused


def weigh(answer: Answer, ground: AnswerContext) -> Weighed:
    """What `answer` comes to. Who may say it is asked before anything is told about the case."""
    foreign = _foreign(answer.by, ground)
    case = ground.case
    if foreign is not None or case is None:
        return Refused(foreign or AnswerCode.UNKNOWN)
    named: dict[str, FactValue] = {"resource": str(case.subject), "name": case.name, "owner": case.owner}
    if case.case_id != answer.of.case_id or case.status is CaseStatus.CLOSED:
        return Refused(AnswerCode.OVER, named)
    match answer.kind:
        case AnswerKind.KEEP:
            found = _keep(answer, case, ground)
        case AnswerKind.STOP_NOW:
            found = _stop_now(answer, case, ground)
        case AnswerKind.APPROVE:
            found = _approve(answer, case, ground)
        case AnswerKind.NOT_MINE:
            found = _not_mine(answer, case, ground)
        case AnswerKind.START:
            found = _start(answer, case, ground)
        case AnswerKind.EXCEPT:
            found = _except(answer, case, ground)
        case _:
            assert_never(answer.kind)
    return replace(found, facts={**named, **found.facts})


def takes_two(hourly: Money | None, terms: AnswerTerms) -> bool:
    """Whether stopping what costs this much takes two people; an unknown price does where amounts are set."""
    return is_above(hourly, terms.two_above or None)


def is_above(hourly: Money | None, amounts: Iterable[Money] | None) -> bool:
    """Whether this costs more than its currency's amount, or nobody can say so; nothing does where none are set."""
    if amounts is None:
        return False
    limit = next((money for money in amounts if hourly is not None and money.currency == hourly.currency), None)
    return hourly is None or limit is None or hourly.amount > limit.amount


def _foreign(by: Person, ground: AnswerContext) -> AnswerCode | None:
    """Why nobody there may answer at all; the command line is whoever may write to the ledger."""
    if by.via == CLI:
        return None
    if by.via == SLACK:
        if not ground.terms.slack_team:
            return AnswerCode.NOT_SET_UP
        if by.team != ground.terms.slack_team:
            return AnswerCode.FOREIGN_TEAM
    if ground.case is None:
        return AnswerCode.UNKNOWN
    if ground.anywhere and by.id in {*ground.people, *ground.terms.approvers}:
        return None
    came = {told.sent_to if by.via == SLACK else told.channel for told in ground.told}
    return None if ground.came_through and ground.came_through in came else AnswerCode.FOREIGN_CHANNEL


def _keep(answer: Answer, case: Case, ground: AnswerContext) -> Weighed:
    length = answer.length
    if length is None or not timedelta(0) < length <= LONGEST_KEEP:
        return Refused(AnswerCode.BAD_LENGTH, {"days": LONGEST_KEEP.days})
    until = ground.now + length
    if ground.kept_until is not None and ground.kept_until >= until:
        return Refused(AnswerCode.KEPT_LONGER, {"until": _moment(ground.kept_until)})
    late = case.phase is not Phase.WAITING and _verb_of(case) is not Verb.WARN
    code = AnswerCode.KEPT_LATE if late else AnswerCode.KEPT
    return Accepted(code, {"until": _moment(until)}, until=until)


def _stop_now(answer: Answer, case: Case, ground: AnswerContext) -> Weighed:
    by = answer.by
    if by.via != CLI and (by.via != SLACK or by.id not in {*ground.people, *ground.terms.approvers}):
        return Refused(AnswerCode.NOT_AMONG_OWNERS)
    bar = _not_to_be_stopped(answer, case, ground)
    if bar is not None:
        return bar
    needed = _needed(ground)
    standing = _standing(answer, ground, needed)
    if standing is not None:
        return Refused(AnswerCode.STOP_STANDS if standing else AnswerCode.STOP_WAITS)
    vote = Vote(str(by), ground.now, ground.now + VOTE_VALID_FOR)
    done = enough(with_vote(ground.votes, vote, ground.now), needed, ground.now)
    return Accepted(AnswerCode.STOP_ASKED if done else AnswerCode.STOP_NEEDS_ANOTHER, needed=needed)


def _not_to_be_stopped(answer: Answer, case: Case, ground: AnswerContext) -> Refused | None:
    """Only right behind a delivered notice, and only where the next step is a stop that waits."""
    if not ground.policy_usable:
        return Refused(AnswerCode.POLICY_BROKEN)
    if case.guard not in OF_MACHINES:
        return Refused(AnswerCode.NOTHING_TO_STOP)
    if case.mode is not Mode.ENFORCE:
        return Refused(AnswerCode.ONLY_REHEARSED)
    if ground.kept_until is not None and ground.kept_until > ground.now:
        return Refused(AnswerCode.IS_KEPT, {"until": _moment(ground.kept_until)})
    if not speaks_for(answer.of.decision_id, case) or case.status is CaseStatus.SNOOZED:
        return Refused(AnswerCode.OUTDATED)  # a snooze that has ended begins the wait anew, with another notice
    if _verb_of(case) is Verb.WARN and case.phase is not Phase.WAITING:
        told = answer.of.decision_id == (case.decision_id or decision_id(case))  # its delivery is being noted just now
        return None if told and _verb_of(case, 1) is Verb.STOP else Refused(AnswerCode.NOTHING_TO_STOP)
    if _verb_of(case) is not Verb.STOP or not case.climbed or case.climbed[-1].verb is not Verb.WARN:
        return Refused(AnswerCode.NOTHING_TO_STOP)
    if case.phase is not Phase.WAITING:
        return Refused(AnswerCode.UNDER_WAY)
    waits = case.status is CaseStatus.HELD and case.reason.code is ReasonCode.APPROVAL_NEEDED
    return Refused(AnswerCode.WAITS_FOR_APPROVAL) if waits else None


def _approve(answer: Answer, case: Case, ground: AnswerContext) -> Weighed:
    by = answer.by
    role = _role(by, case, ground)
    if by.via != CLI and (by.via != SLACK or role is Role.UNLISTED):
        return Refused(AnswerCode.NOT_AMONG_OWNERS)
    if not ground.policy_usable:
        return Refused(AnswerCode.POLICY_BROKEN)
    if ground.kept_until is not None and ground.kept_until > ground.now:
        return Refused(AnswerCode.IS_KEPT, {"until": _moment(ground.kept_until)})
    waiting = case.status is CaseStatus.HELD and case.reason.code is ReasonCode.APPROVAL_NEEDED
    if not waiting or not case.decision_id:
        old = answer.of.decision_id != case.decision_id
        return Refused(AnswerCode.OUTDATED if old else AnswerCode.NOTHING_TO_APPROVE)
    if answer.of.decision_id != case.decision_id:
        return Refused(AnswerCode.OUTDATED)
    needed, asked, apart = _needed(ground), str(by) in ground.asked, _takes_approver(case, ground)
    standing = _standing(answer, ground, needed, apart=apart)
    if standing is not None:
        return Refused(AnswerCode.APPROVAL_STANDS if standing else AnswerCode.APPROVAL_WAITS)
    if asked and needed == 1 and not apart:
        return Refused(AnswerCode.ASKED_BY_THEMSELVES)
    vote = Vote(str(by), ground.now, ground.now + VOTE_VALID_FOR, asked, role)
    code = approval_code(with_vote(ground.votes, vote, ground.now), needed, ground.now, apart=apart)
    until = _moment(ground.now + VOTE_VALID_FOR)
    return Accepted(code, {"until": until}, needed=needed, asked=asked, role=role, apart=apart)


def approval_code(votes: Iterable[Vote], needed: int, now: datetime, *, apart: bool) -> AnswerCode:
    """What these votes for a waiting decision come to."""
    counted = live_votes(votes, now)
    if enough(counted, needed, now, apart=apart):
        return AnswerCode.APPROVED
    owners_alone = needed > 1 and all(vote.role is Role.OWNER for vote in counted)
    missing = owners_alone or (apart and not _apart(counted))
    return AnswerCode.APPROVAL_NEEDS_APPROVER if missing else AnswerCode.APPROVAL_NEEDS_ANOTHER


def _role(by: Person, case: Case, ground: AnswerContext) -> Role:
    """Whose word it is: an owner whom somebody disowned counts no more, whoever their people are."""
    owns = by.id in ground.people and case.owner not in ground.disowned
    if by.id in ground.terms.approvers:
        return Role.BOTH if owns else Role.APPROVER
    return Role.OWNER if owns else Role.UNLISTED


def _takes_approver(case: Case, ground: AnswerContext) -> bool:
    """Whether any notice of it names a price above what its rule leaves to its owner, or names none."""
    above = rule_from_terms(case.terms).limits.local_disk_approver_above if case.guard in OF_MACHINES else None
    return any(is_above(told.hourly, above) for told in ground.told or (_PRICELESS,))


def _not_mine(answer: Answer, case: Case, ground: AnswerContext) -> Weighed:
    by = answer.by
    if by.via == LINK:
        return Refused(AnswerCode.NOT_AMONG_OWNERS)
    if case.guard not in OF_MACHINES:
        return Refused(AnswerCode.NO_MACHINE)
    if not case.owner:
        return Refused(AnswerCode.NO_OWNER)
    if case.owner in ground.disowned:
        return Refused(AnswerCode.DISOWNED_BEFORE)
    theirs = {*ground.people, *ground.terms.approvers} if ground.people else None
    if by.via != CLI and theirs is not None and by.id not in theirs:
        return Refused(AnswerCode.NOT_AMONG_OWNERS)  # else one stranger could keep all further notices from the owner
    if case.phase is not Phase.WAITING and _verb_of(case) is not Verb.WARN:
        return Refused(AnswerCode.UNDER_WAY)
    return Accepted(AnswerCode.DISOWNED)


def _start(answer: Answer, case: Case, ground: AnswerContext) -> Weighed:
    """Counts as long as the case is the same and the machine still as Costguard stopped it: doing so harms nobody.

    A signed link proves who was sent it, as for a `KEEP`. What a spent budget stopped no answer starts.
    """
    by = answer.by
    if by.via not in {CLI, LINK} and _role(by, case, ground) is Role.UNLISTED:
        return Refused(AnswerCode.NOT_AMONG_OWNERS)
    if case.guard not in OF_MACHINES:
        return Refused(AnswerCode.NO_MACHINE)
    if case.climbed_at(Verb.STOP) is None:
        return Refused(AnswerCode.NOTHING_TO_START)
    if case.check == SPENT:
        return Refused(AnswerCode.START_SPENT)
    if not ground.policy_usable:
        return Refused(AnswerCode.POLICY_BROKEN)
    if not ground.may_start:
        return Refused(AnswerCode.START_OFF)
    if case.phase is not Phase.WAITING and _verb_of(case) is Verb.TERMINATE:
        return Refused(AnswerCode.UNDER_WAY)
    if ground.start_until is not None and ground.now < ground.start_until:
        return Refused(AnswerCode.START_STANDS, {"until": _moment(ground.start_until)})
    until = ground.now + START_VALID_FOR
    return Accepted(AnswerCode.START_ASKED, {"until": _moment(until)}, until=until)


def _except(answer: Answer, case: Case, ground: AnswerContext) -> Weighed:
    """Whoever may keep may ask: nothing is held by it before somebody else agrees."""
    if case.guard not in OF_MACHINES:
        return Refused(AnswerCode.EXCEPTION_NO_MACHINE)
    length, longest = answer.length, ground.longest_exception
    if not ground.policy_usable or not longest:
        return Refused(AnswerCode.EXCEPTION_OFF if ground.policy_usable else AnswerCode.POLICY_BROKEN)
    if length is None or not timedelta(0) < length <= longest:
        return Refused(AnswerCode.EXCEPTION_TOO_LONG, {"days": longest.days})
    until = ground.now + length
    if ground.kept_until is not None and ground.kept_until >= until:
        return Refused(AnswerCode.KEPT_LONGER, {"until": _moment(ground.kept_until)})
    return Accepted(AnswerCode.EXCEPTION_ASKED, {"until": _moment(until)}, until=until)


def _needed(ground: AnswerContext) -> int:
    """Two where any notice of it names a price above the amount, or names none."""
    return 2 if any(takes_two(told.hourly, ground.terms) for told in ground.told or (_PRICELESS,)) else 1


def _standing(answer: Answer, ground: AnswerContext, needed: int, *, apart: bool = False) -> bool | None:
    """True where the matter is settled already, False where this person's word is there and another's is missing."""
    if enough(ground.votes, needed, ground.now, apart=apart):
        return True
    return False if any(vote.by == str(answer.by) for vote in live_votes(ground.votes, ground.now)) else None


def _verb_of(case: Case, ahead: int = 0) -> Verb | None:
    """What the current rung of the case does; `ahead` looks further up."""
    if case.guard not in OF_MACHINES:
        return None
    rungs = ladder(rule_from_terms(case.terms), None)
    return rungs[case.rung + ahead].verb if case.rung + ahead < len(rungs) else None


def _moment(at: datetime) -> str:
    return at.isoformat(timespec="minutes")


_PRICELESS = AnsweredNotice("", "", None)
