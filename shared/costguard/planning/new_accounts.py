"""Accounts seen for the first time: for a while every rule only observes there. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta

from costguard.cases import Case
from costguard.domain.reasons import Reason, ReasonCode
from costguard.domain.refs import ResourceRef, Shard


def account_key(of: ResourceRef | Shard) -> str:
    """`cloud:account`: what an account is remembered by."""
    return f"{of.cloud}:{of.account}"


def observing(
    accounts: Iterable[str], first_seen: Mapping[str, datetime], wait: timedelta, now: datetime
) -> dict[str, datetime]:
    """Of these accounts those in which every rule only observes, each until when.

    An account that nobody remembers is seen for the first time now.
    """
    until = {account: first_seen.get(account, now) + wait for account in accounts} if wait else {}
    return {account: end for account, end in until.items() if end > now}


def observed(accounts: Mapping[str, datetime], case: Case, gentle: Reason | None) -> Reason | None:
    """Why a mode keeps something from being done: where that is the account's newness, that; else `gentle`."""
    until = accounts.get(account_key(case.subject))
    if gentle is None or until is None:
        return gentle
    facts = {"account": case.subject.account, "until": until.isoformat(timespec="minutes")}
    return Reason(ReasonCode.ACCOUNT_NEW, facts)
