"""Which accounts and regions a target means: the same rules for every cloud, over what each of them lists."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Protocol

from costguard.domain.errors import AccessDeniedError, ProviderError
from costguard.domain.refs import Shard
from costguard.domain.resources import Gap
from costguard.ports import Discovery, Target

_WORKERS = 8


class Identity(Protocol):
    """Who the credentials are."""

    @property
    def account(self) -> str:
        """The account they belong to."""


class Session(Protocol):
    """The part of a session that discovery needs."""

    def identity(self) -> Identity:
        """Who we are."""

    def for_account(self, target: Target, account: str) -> None:
        """Make `account` readable."""


@dataclass(frozen=True, slots=True)
class Members:
    """What an organisation lists: accounts to read, accounts that are closed, and what it leaves open."""

    accounts: Sequence[str]
    closed: Sequence[str] = ()
    gaps: Sequence[Gap] = ()


@dataclass(frozen=True, slots=True)
class Regions:
    """How a cloud tells which regions an account may use.

    `listed` asks for them and their states, of which `usable` judges one; `likely` judges the name alone, where asking
    is denied. `unusable` is the gap of a region that the policy names and that cannot be used. `always` need not be
    asked about.
    """

    listed: Callable[[Shard], Mapping[str, str]]
    usable: Callable[[str, str], bool]
    likely: Callable[[str], bool]
    unusable: Callable[[Shard, Mapping[str, str]], Gap]
    always: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Discoverer:
    """`members` lists the organisation as the account it is given sees it; `gap` makes a gap of an error."""

    session: Session
    members: Callable[[str], Members]
    regions: Regions
    gap: Callable[[Shard, str, ProviderError], Gap]

    def discover(self, target: Target) -> Discovery:
        """The shards of `target`, with credentials for each of its accounts at hand in the session.

        A member that cannot be entered is a gap; the others go on.

        Raises:
            AccessDeniedError: there are no credentials at all.
        """
        identity = self.session.identity()
        first = target.account or identity.account
        members = Members((first,))
        if target.organisation:
            try:
                self.session.for_account(target, first)
                members = self.members(first)
            except ProviderError as err:
                members = Members((first,), gaps=(self.gap(Shard(target.cloud, first), "accounts", err),))
        accounts, closed = tuple(members.accounts), tuple(members.closed)
        if target.regions == ():
            return Discovery((), tuple(members.gaps), closed, accounts)
        with ThreadPoolExecutor(max_workers=_WORKERS) as pool:
            found = list(pool.map(lambda account: self._shards(target, account), members.accounts))
        return Discovery(
            shards=tuple(shard for shards, _ in found for shard in shards),
            gaps=(*members.gaps, *(gap for _, own in found for gap in own)),
            closed_accounts=closed,
            accounts=accounts,
        )

    def _shards(self, target: Target, account: str) -> tuple[Sequence[Shard], Sequence[Gap]]:
        whole = Shard(target.cloud, account)
        try:
            self.session.for_account(target, account)
        except ProviderError as err:
            return (), (self.gap(whole, "accounts", err),)
        names = None if target.regions is None else tuple(dict.fromkeys(target.regions))
        if names is not None and self.regions.always.issuperset(names):  # none named are none, and never all
            return [Shard(target.cloud, account, name) for name in names], ()
        listed: Mapping[str, str] = {}
        try:
            listed = self.regions.listed(whole)
            usable = {name for name, state in listed.items() if self.regions.usable(name, state)}
        except AccessDeniedError as err:
            if names is None:
                return (), (self.gap(whole, "regions", err),)
            usable = {name for name in names if self.regions.likely(name)}
        except ProviderError as err:
            return (), (self.gap(whole, "regions", err),)
        if names is None:
            return [Shard(target.cloud, account, name) for name in sorted(usable)], ()
        return (
            [Shard(target.cloud, account, name) for name in names if name in usable],
            [self.regions.unusable(Shard(target.cloud, account, name), listed) for name in names if name not in usable],
        )
