"""Bugs in what is made of people's answers: whose count, how many it takes, for what, and until when."""

from __future__ import annotations

from tests.simulation.planting import Bug, Edit

_ANSWERING = "costguard.cases.answering"
_ADVANCE = "costguard.cases.advance"
_LAST = "costguard.planning.last_look"
_REPLIES = "costguard.engine.answers.replies"
_SPEAKS = "ref.case_id == case.case_id and speaks_for(ref.decision_id, case)"

ANSWERING: tuple[Bug, ...] = (
    Bug(
        "anybody-may-stop-now",
        (9, 15),
        (
            Edit(
                _ANSWERING,
                "    if by.via != CLI and (by.via != SLACK or by.id not in {*ground.people, *ground.terms.approvers}):",
                "    if False:",
            ),
        ),
    ),
    Bug(
        "anyones-approval-counts",
        (5,),
        (Edit(_ANSWERING, "    if by.via != CLI and (by.via != SLACK or role is Role.UNLISTED):", "    if False:"),),
    ),
    Bug(
        "owner-of-anything-answers-for-all",
        (5, 9, 15),
        (Edit(_REPLIES, "for owner in owners if owner.name == case.owner for", "for owner in owners for"),),
    ),
    Bug(
        "owner-alone-above-the-amount",
        (5,),
        (
            Edit(
                _ANSWERING,
                "    return any(is_above(told.hourly, above) for told in ground.told or (_PRICELESS,))",
                "    return False",
            ),
        ),
    ),
    Bug(
        "approval-passes-another-rail",
        (5, 7, 16),
        (
            Edit(
                "costguard.planning.build",
                "    if held is not None:\n        return held\n    others",
                "    if held is not None or approved:\n        return held\n    others",
            ),
            Edit(
                "costguard.engine.run.act",
                "    return Reason(taking) if isinstance(taking, ReasonCode) else taking\n\n\ndef _nothing_more",
                "    if isinstance(taking, ReasonCode):\n"
                "        approved = world.memory.approvals.valid(action.decision_id, now) is not None\n"
                "        return () if approved else Reason(taking)\n"
                "    return taking\n\n\ndef _nothing_more",
            ),
        ),
    ),
    Bug(
        "another-workspace-counts",
        (5, 9, 15),
        (Edit(_ANSWERING, "if by.team != ground.terms.slack_team:", "if False:"),),
    ),
    Bug(
        "one-of-two-is-enough",
        (5, 9, 15),
        (
            Edit(
                _ANSWERING,
                "return len({vote.by for vote in counted}) >= max(1, needed) and",
                "return len({vote.by for vote in counted}) >= 1 and",
            ),
        ),
    ),
    Bug(
        "one-person-counts-twice",
        (5, 9, 15),
        (
            Edit(_ANSWERING, "return len({vote.by for vote in counted}) >=", "return len(counted) >="),
            Edit(
                _ANSWERING,
                "return counted if any(other.by == vote.by for other in counted) else (*counted, vote)",
                "return (*counted, vote)",
            ),
            Edit(
                _ANSWERING,
                "    return False if any(vote.by == str(answer.by)",
                "    return None if any(vote.by == str(answer.by)",
            ),
        ),
    ),
    Bug(
        "stop-now-hastens-the-end-too",
        (9, 15),
        (
            Edit(_ADVANCE, "return told and verb is Verb.STOP and", "return"),
            Edit(
                _LAST,
                "ref.case_id == case.case_id and speaks_for(ref.decision_id, case)",
                "ref.case_id == case.case_id",
            ),
        ),
    ),
    Bug(
        "stop-now-outlives-its-notice",
        (9, 15),
        (
            Edit(
                _LAST,
                "ref.case_id == case.case_id and speaks_for(ref.decision_id, case)",
                "ref.case_id == case.case_id",
            ),
        ),
    ),
    Bug(
        "the-next-owner-is-not-told",
        (9, 15),
        (Edit(_ADVANCE, "    if not case.climbed:\n        return theirs\n", "    return theirs\n"),),
    ),
    Bug(
        "keeping-is-only-said",
        (9, 15, 16),
        (
            Edit(
                _REPLIES,
                "    holds = memory.snoozes.lengthen(wanted)\n",
                "    holds = wanted\n",
            ),
        ),
    ),
    Bug(
        "a-snooze-that-ends-in-time-is-forgotten",
        (9, 15),
        (
            Edit(_ADVANCE, "unheard = seen.snoozed_until is not None and", "unheard = False and"),
            # a Keep in the ledger counts by when it was said as well; one by tag has no such moment
            Edit(_ADVANCE, " or kept_since_told(case, seen.kept_at)", ""),
        ),
    ),
)
