"""What people answer to a notice: weighed, and written before anybody is told so. Effects come with the next run."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta

from typing_extensions import assert_never

from costguard.cases import Case
from costguard.cases.answering import (
    CLI,
    LINK,
    VOTE_VALID_FOR,
    Accepted,
    AnswerContext,
    AnsweredNotice,
    Refused,
    Vote,
    Weighed,
    approval_code,
    enough,
    person_id,
    weigh,
)
from costguard.domain.answers import Answer, AnswerCode, AnswerKind, AnswerRef, Person
from costguard.engine.ledger.memory import Memory
from costguard.engine.ledger.notices import OutboxNotice
from costguard.engine.ledger.snoozes import Snooze
from costguard.engine.ledger.starts import START_REASON, STOPPED, StartRequest
from costguard.policy.model.policy import AnswerTerms, Policy

HELD = "-held"  # what the id of a notice ends in that tells of a decision waiting for people


def reply(
    memory: Memory,
    policy: Policy | None,
    answer: Answer,
    now: datetime,
    *,
    came_through: str = "",
    case: Case | None = None,
    policy_usable: bool = True,
) -> Weighed:
    """Take an answer: what it came to, written already where it counts. Safe to repeat.

    `came_through` is the channel it came through in the channel's own words: a Slack channel's id, or of a link the
    address it was sent to. Without `case` the answer is about that of the notice it names; with it the person named a
    resource by themselves, and where they stood does not matter if they may answer for it.

    Raises:
        LedgerError: it is not known whether the answer was written.
    """
    named, weighed = _weighed(memory, policy, answer, now, came_through, case, policy_usable=policy_usable)
    if isinstance(weighed, Refused) or named is None:
        return weighed
    return _written(memory, answer, named, weighed, now)


def look(
    memory: Memory, policy: Policy | None, answer: Answer, now: datetime, *, came_through: str = ""
) -> tuple[Case | None, Weighed]:
    """What an answer would come to, and for which case. Nothing is written."""
    return _weighed(memory, policy, answer, now, came_through, None, policy_usable=True)


def _weighed(
    memory: Memory,
    policy: Policy | None,
    answer: Answer,
    now: datetime,
    came_through: str,
    case: Case | None,
    *,
    policy_usable: bool,
) -> tuple[Case | None, Weighed]:
    notices = _notices(memory, answer.of)
    named = case if case is not None else _case_of(memory, notices)
    ground = _ground(memory, policy, answer, notices, named, now)
    ground = replace(ground, came_through=came_through, policy_usable=policy_usable, anywhere=case is not None)
    return named, weigh(answer, ground)


def _notices(memory: Memory, of: AnswerRef) -> tuple[OutboxNotice, ...]:
    """What was delivered that offers this answer: the warning, or what told that it waits for people's word."""
    found = (
        memory.outbox.get(of.decision_id),
        memory.outbox.get(of.decision_id + HELD),
        memory.outbox.said_of(of.case_id),
        memory.outbox.get(stop_notice(of)),
    )
    offered = {notice.notice_id: notice for notice in found if notice is not None and _offers(notice, of)}
    return tuple(offered.values())


def stop_notice(of: AnswerRef) -> str:
    """The id of the news of a stop that this answer, which names no decision, would be to."""
    return f"{of.case_id}-stopped-{of.decision_id.removeprefix(STOPPED)}"


def _offers(notice: OutboxNotice, of: AnswerRef) -> bool:
    return bool(notice.receipt) and (
        notice.decision_id == of.decision_id or any(choice.of == of for choice in notice.choices)
    )


def _case_of(memory: Memory, notices: tuple[OutboxNotice, ...]) -> Case | None:
    """The latest case under the key of the notice, which may be another one by now."""
    key = next((notice.case_key for notice in notices if notice.case_key), "")
    return memory.cases.get(key) if key else None


def _ground(
    memory: Memory,
    policy: Policy | None,
    answer: Answer,
    notices: tuple[OutboxNotice, ...],
    case: Case | None,
    now: datetime,
) -> AnswerContext:
    told = tuple(AnsweredNotice(notice.channel, notice.receipt.rpartition(":")[0], notice.hourly) for notice in notices)
    terms = policy.answers if policy is not None else AnswerTerms()
    ground = AnswerContext(case, told, terms, now)
    if case is None:
        return ground
    owners = policy.owners if policy is not None else ()
    subject = str(case.subject)
    snooze, _ = memory.snoozes.of(subject, now)
    asked = memory.haste.of_case(case.case_id, now)
    votes: tuple[Vote, ...] = ()
    if answer.kind is AnswerKind.STOP_NOW:
        votes = next((haste.votes for haste in asked if haste.of == answer.of), ())
    elif answer.kind is AnswerKind.APPROVE:
        votes = memory.approvals.votes(answer.of.decision_id, now)
    return replace(
        ground,
        people=tuple(one for owner in owners if owner.name == case.owner for one in owner.people),
        votes=votes,
        asked=frozenset(vote.by for haste in asked for vote in haste.votes),
        kept_until=snooze.until if snooze is not None else None,
        disowned=memory.disowned.of(subject)[0],
        may_start=policy is not None and policy.start_again,
        start_until=_start_until(memory, subject) if answer.kind is AnswerKind.START else None,
        longest_exception=_longest(policy, answer.by),
    )


def _longest(policy: Policy | None, by: Person) -> timedelta:
    """How long an exception may last that they ask for: somebody else has to be there who may agree."""
    others = {*policy.answers.approvers} - {person_id(str(by))} if policy is not None else set()
    needed = 2 if by.via == LINK else 1
    return policy.longest_exception if policy is not None and len(others) >= needed else timedelta(0)


def _start_until(memory: Memory, subject: str) -> datetime | None:
    request, _ = memory.starts.of(subject)
    return request.until if request is not None and request.is_open else None


def _written(memory: Memory, answer: Answer, case: Case, accepted: Accepted, now: datetime) -> Weighed:
    """What it comes to, once it is written: another answer may have been first, and then its word counts as well."""
    vote = Vote(str(answer.by), now, now + VOTE_VALID_FOR, accepted.asked, accepted.role)
    match answer.kind:
        case AnswerKind.KEEP:
            return _kept(memory, answer, case, accepted, now)
        case AnswerKind.STOP_NOW:
            haste = memory.haste.vote(answer.of, vote, accepted.needed, now)
            done = enough(haste.votes, haste.needed, now)
            return replace(accepted, code=AnswerCode.STOP_ASKED if done else AnswerCode.STOP_NEEDS_ANOTHER)
        case AnswerKind.APPROVE:
            approval = memory.approvals.vote(answer.of.decision_id, vote, accepted.needed, now, apart=accepted.apart)
            code = approval_code(approval.votes, approval.needed, now, apart=approval.apart)
            return replace(accepted, code=code)
        case AnswerKind.NOT_MINE:
            added = memory.disowned.add(str(case.subject), case.owner, str(answer.by), now)
            return accepted if added else Refused(AnswerCode.DISOWNED_BEFORE, accepted.facts)
        case AnswerKind.START:
            return _start_asked(memory, answer, case, accepted, now)
        case AnswerKind.EXCEPT:
            return _exception_asked(memory, answer, case, accepted, now)
        case _:
            assert_never(answer.kind)


def _exception_asked(memory: Memory, answer: Answer, case: Case, accepted: Accepted, now: datetime) -> Weighed:
    from costguard.cases.excepting import ExceptionAsk  # here: most answers need none of it

    wanted = ExceptionAsk(
        ref_text=str(case.subject),
        case_key=case.key,
        case_id=case.case_id,
        rule=case.rule,
        owner=case.owner,
        by=spoken(answer.by),
        reason=answer.reason,
        until=accepted.until or now,
        asked_at=now,
    )
    stands = memory.exceptions.ask(wanted)
    if stands is None:
        return accepted
    return Refused(AnswerCode.EXCEPTION_WAITS, {**accepted.facts, "until": stands.until.isoformat(timespec="minutes")})


def _start_asked(memory: Memory, answer: Answer, case: Case, accepted: Accepted, now: datetime) -> Weighed:
    """Kept first, so that nothing ends what is to be started; then the word for it, of which there is one at a time."""
    until = accepted.until or now
    by = spoken(answer.by)
    memory.snoozes.lengthen(Snooze(str(case.subject), until, by, answer.reason or START_REASON, now))
    wanted = StartRequest(str(case.subject), case.key, case.case_id, case.run_epoch, by, now, until)
    stands = memory.starts.ask(wanted)
    if stands == wanted:
        return accepted
    return Refused(AnswerCode.START_STANDS, {**accepted.facts, "until": stands.until.isoformat(timespec="minutes")})


def _kept(memory: Memory, answer: Answer, case: Case, accepted: Accepted, now: datetime) -> Weighed:
    if accepted.until is None:
        return Refused(AnswerCode.BAD_LENGTH, accepted.facts)
    wanted = Snooze(str(case.subject), accepted.until, spoken(answer.by), answer.reason, now)
    holds = memory.snoozes.lengthen(wanted)
    if holds == wanted:
        return accepted
    return Refused(AnswerCode.KEPT_LONGER, {**accepted.facts, "until": holds.until.isoformat(timespec="minutes")})


def spoken(by: Person) -> str:
    """A person as others read who said something: by name where there is one, and by what was proven."""
    if by.via == CLI:
        return by.id
    return f"{by.name} ({by})" if by.name else str(by)
