"""Every kind of race, by name."""

from __future__ import annotations

from tests.races.contest import Contest
from tests.races.contests_caps import CapContest
from tests.races.contests_cases import CaseContest, ClaimContest
from tests.races.contests_people import ApprovalContest, OutboxContest
from tests.races.contests_runs import RunContest
from tests.races.contests_unsent import UnsentContest

_ALL: tuple[Contest, ...] = (
    CapContest("cap-actions", by_money=False),
    CapContest("cap-money", by_money=True),
    UnsentContest(),
    CaseContest("case-move", opening=False),
    CaseContest("case-open", opening=True),
    ClaimContest("claim", moving=False),
    ClaimContest("claim-moving", moving=True),
    ApprovalContest(),
    OutboxContest(),
    RunContest(),
)
CONTESTS = {contest.name: contest for contest in _ALL}
