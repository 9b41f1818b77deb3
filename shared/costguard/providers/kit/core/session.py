"""What the sessions of all clouds are: identity, accounts and their roles, and requests with their pace and retries.

A cloud says how it names itself, how a role there is taken, and how one request is sent.
"""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from copy import copy
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Generic, TypedDict, TypeVar

from typing_extensions import Self

from costguard.domain.actions import Receipt
from costguard.domain.errors import AccessDeniedError, InvalidInputError, ProviderError
from costguard.domain.refs import Shard
from costguard.ports import CallCount, Target
from costguard.providers.kit.core.calls import by_token
from costguard.providers.kit.core.credentials import without_secrets
from costguard.providers.kit.core.fields import Fields, after_sending, as_documented, cut_short, named, text
from costguard.providers.kit.core.gate import Gate
from costguard.providers.kit.core.pacing import Pacer, RetryPolicy, pacer_for
from costguard.providers.kit.iam.permissions import Operation, Purpose

OWN = ""
"""The account key of the credentials we started with."""

WHO = "sts:GetCallerIdentity"
ASSUME = "sts:AssumeRole"


@dataclass(frozen=True, slots=True)
class Identity:
    """Who the credentials are, by the cloud's name of the principal; `kind` and `partition` where it tells them."""

    account: str
    arn: str
    kind: str = ""
    partition: str = ""


class Common(TypedDict, total=False):
    """What every session takes; see `Session`."""

    cloud: str
    may_change: bool
    may_dry_run: bool
    home_region: str
    deadline: Callable[[], float] | None
    pacer: Pacer | None
    paced: bool
    purpose: Purpose
    mark: str


@dataclass(frozen=True, slots=True)
class Nature:
    """What a cloud's sessions share: where account-wide questions are asked, what each purpose may send, how fast.

    `name` is the provider's, `kind` what one of its clouds is (`site`). Errors whose code is among `final` are not
    worth a second try; those that are `is_stale` say that a role's keys are accepted no more: fresh ones may be.
    """

    name: str
    kind: str
    home_regions: Mapping[str, str]
    reach: Mapping[Purpose, Mapping[str, Operation]]
    rates: Mapping[str, tuple[float, float]]
    role_lasts: timedelta
    final: Collection[str] = ()
    is_stale: Callable[[ProviderError], bool] = lambda _: False

    def known(self, cloud: str) -> str:
        """`cloud`, where it is one of this provider.

        Raises:
            InvalidInputError: it is none.
        """
        if cloud not in self.home_regions:
            expected = ", ".join(self.home_regions)
            message = f"{cloud!r} is not a {self.kind} of {self.name} that costguard knows; expected one of {expected}"
            raise InvalidInputError(message)
        return cloud


Held = TypeVar("Held")
"""What stands for the credentials of one account."""

GateT = TypeVar("GateT", bound=Gate)


class Session(ABC, Generic[Held, GateT]):
    """Credentials, connections and requests for one cloud; serves many threads.

    `may_change` False refuses, before anything leaves the process, whatever permissions.py does not list as reading;
    with `may_dry_run` it lets a change out that is sent with `DryRun` true. `deadline` returns the seconds left; no
    wait goes past it. `paced` keeps the vendor's rates whatever answers. `mark` is what its role sessions are called,
    and in its user agent: see `domain/refs.py`.

    Raises:
        InvalidInputError: `cloud` is none of this provider.
    """

    def __init__(self, nature: Nature, endpoint: str, common: Common) -> None:
        self._nature = nature
        self.cloud = nature.known(common.get("cloud") or next(iter(nature.home_regions)))
        self.home_region = common.get("home_region") or nature.home_regions[self.cloud]
        self.may_change = common.get("may_change", False)
        self.may_dry_run = common.get("may_dry_run", False)
        self.purpose = common.get("purpose", Purpose.GUARD)
        self.mark = common.get("mark") or "costguard"
        self._endpoint = endpoint
        self._deadline = common.get("deadline")
        self._pacer = common.get("pacer") or pacer_for(nature.rates, "" if common.get("paced") else endpoint)
        self._retry = RetryPolicy(self._pacer, self._deadline, nature.final)
        self._routes: dict[str, Target] = {}
        self._begin()

    def _begin(self) -> None:
        """Start with nothing but the settings: no identity, no connection, nothing sent."""
        self._operations = self._nature.reach[self.purpose]
        self._gate = self._new_gate()
        self._identity: Identity | None = None
        self._date: datetime | None = None
        self._entering = threading.RLock()
        self._accounts: defaultdict[str, threading.Lock] = defaultdict(threading.Lock)

    def acting(self) -> Self:
        """A session that may change things, for the same accounts, with credentials and connections of its own."""
        return self._twin(may_change=True)

    def dry_running(self) -> Self:
        """A session that asks what it would be allowed to change and can change nothing; as `acting` otherwise."""
        return self._twin(may_dry_run=True)

    def only_for(self, purpose: Purpose, *, may_change: bool = True) -> Self:
        """A session that knows this purpose's operations and no other; unless it `may_change`, it only reads."""
        return self._twin(purpose, may_change=may_change)

    def _twin(self, purpose: Purpose = Purpose.GUARD, *, may_change: bool = False, may_dry_run: bool = False) -> Self:
        twin = copy(self)  # of the settings; `_routes` is shared: accounts found later count as well
        twin.purpose = self.purpose.narrowed(purpose)
        twin.may_change, twin.may_dry_run = may_change, may_dry_run
        twin._begin()  # noqa: SLF001 - its own
        return twin

    def identity(self) -> Identity:
        """Who we are, asked once: the first request of all.

        Raises:
            InvalidInputError: the credentials belong to another partition than this session's cloud.
            AccessDeniedError: no credentials, or the cloud does not accept them.
        """
        with self._entering:
            if self._identity is None:
                self._identity = self._who(self._own())
            return self._identity

    def for_account(self, target: Target, account: str) -> None:
        """Make `account` readable: with our own credentials, or the target's role there.

        The role is the cloud's full name of one, its short name, or either with `{account}` in it.

        Raises:
            AccessDeniedError: no role to assume, it may not be assumed, or it leads to another account.
        """
        self._routes[account] = target
        self._enter(account)

    def call(self, shard: Shard, service: str, operation: str, /, **parameters: Any) -> dict[str, Any]:
        """One request (`call(shard, "ec2", "DescribeInstances", MaxResults=1000)`) and its answer.

        Reads are tried again on throttling and passing faults while time lasts; a change is sent once.
        An empty region means the home region.

        Raises:
            OutcomeUnknownError: a change was sent and its answer lost.
            ProviderError: another of its kinds, see domain/errors.py.
        """
        self._check(service, operation, parameters)
        return self._send(self._enter(shard.account), shard.region or self.home_region, service, operation, parameters)

    def change(
        self,
        shard: Shard,
        service: str,
        operation: str,
        made: Callable[[Fields], str] = lambda _: "",
        /,
        **parameters: Any,
    ) -> Receipt:
        """As `call`, of a change: its receipt, with what `made` finds in the answer.

        Raises:
            OutcomeUnknownError: also where the answer cannot be read.
        """
        answer = self.call(shard, service, operation, **parameters)
        with after_sending(f"{service}:{operation}"):
            return Receipt(self._request_id(answer), made(answer))

    def _request_id(self, answer: Fields) -> str:
        """What the cloud calls the request that it answers."""
        return named(answer, "RequestId")

    def call_as_own(self, service: str, operation: str, /, **parameters: Any) -> dict[str, Any]:
        """As `call`, in the home region with the credentials we started with; nobody asks first who we are."""
        self._check(service, operation, parameters)
        return self._send(self._own(f"{service}:{operation}"), self.home_region, service, operation, parameters)

    def pages(
        self, shard: Shard, service: str, operation: str, result_key: str, /, **parameters: Any
    ) -> Iterator[list[Any]]:
        """The list under `result_key` of every page, by `NextToken`, one page at a time.

        Raises:
            TruncatedReadError: a page without that list, or pages that contradict each other or have no end.
        """
        api = f"{service}:{operation}"

        def ask(page: dict[str, str]) -> dict[str, Any]:
            return self.call(shard, service, operation, **{**parameters, **page})

        yield from by_token(api, ask, lambda answer: self._items_in(answer, result_key, api), self._next_token)

    def _items_in(self, answer: Fields, result_key: str, operation: str) -> list[Any]:
        """The list of one page."""
        items = answer.get(result_key)
        if not isinstance(items, list):
            raise cut_short(operation, f"answered without {result_key}: not as documented", "MissingResult")
        return items

    def _next_token(self, answer: Fields) -> str:
        """What names the next page; empty on the last."""
        return text(answer, "NextToken")

    def ask_time(self) -> datetime | None:
        """The cloud's clock, to the second, by the `Date` of an answer of STS; None where no answer told it."""
        self._date = None
        with suppress(ProviderError):  # what it says of us is not the question, and a wrong clock is refused
            self.call(Shard(self.cloud, OWN), "sts", "GetCallerIdentity")
        return self._date

    def calls_made(self) -> Sequence[CallCount]:
        """Every operation this session sent, counted where requests leave the process."""
        return self._gate.calls_made()

    @abstractmethod
    def close(self) -> None:
        """Close all connections."""

    @abstractmethod
    def _new_gate(self) -> GateT:
        """What every request passes."""

    @abstractmethod
    def _own(self, operation: str = WHO) -> Held:
        """The credentials we started with; `operation` is what they are for.

        Raises:
            AccessDeniedError: there are none.
        """

    @abstractmethod
    def _held(self, account: str) -> Held | None:
        """The credentials of an account that a role was taken in, while they are good."""

    @abstractmethod
    def _role_name(self, role: str, account: str) -> str:
        """The cloud's full name of a role."""

    @abstractmethod
    def _take(self, account: str, asked: Mapping[str, Any]) -> tuple[Held, Callable[[], Held]]:
        """Take a role: credentials that say who that makes us, and what makes them the account's. API: AssumeRole."""

    @abstractmethod
    def _lane(self, held: Held, region: str, operation: str) -> tuple[str, str, str]:
        """Account, region and family of calls that a request is counted in."""

    @abstractmethod
    def _sender(
        self, held: Held, region: str, service: str, operation: str, parameters: Mapping[str, Any], *, changes: bool
    ) -> Callable[[], dict[str, Any]]:
        """What sends one request, once."""

    def _enter(self, account: str) -> Held:
        """The credentials for `account`, obtained or renewed if need be."""
        identity = self.identity()
        target = self._routes.get(account)
        if account in (OWN, identity.account) and (target is None or not target.own_role):
            return self._own()
        held = self._held(account)
        if held is not None:
            return held
        if target is None or not target.role:
            message = (
                f"the credentials belong to account {identity.account}, not {account}, "
                "and the target names no role to assume there"
            )
            raise AccessDeniedError(message, operation=ASSUME, code="NoRole")
        with self._entering:
            one_at_a_time = self._accounts[account]
        with one_at_a_time:
            return self._held(account) or self._assume(target, account)

    def _assume(self, target: Target, account: str) -> Held:
        """Take the role, and ask who that makes us before anything else is done with it."""
        role = self._role_name(target.role.replace("{account}", account), account)
        asked = {
            "RoleArn": role,
            "RoleSessionName": self.mark,
            "DurationSeconds": int(self._nature.role_lasts.total_seconds()),
        }
        if target.external_id:
            asked["ExternalId"] = target.external_id
        trial, keep = self._take(account, asked)
        found = self._who(trial).account
        if found != account:
            message = f"role {without_secrets(role)} leads to account {found}, not {account}: not used"
            raise AccessDeniedError(message, operation=ASSUME, code="WrongAccount")
        return keep()

    def _ask_sts(self, held: Held, operation: str, parameters: Mapping[str, Any]) -> dict[str, Any]:
        self._check("sts", operation, parameters)
        return self._send(held, self.home_region, "sts", operation, parameters)

    def _who(self, held: Held) -> Identity:
        answer = self._ask_sts(held, "GetCallerIdentity", {})
        with as_documented(WHO):
            return self._identity_in(answer)

    @abstractmethod
    def _identity_in(self, answer: Mapping[str, Any]) -> Identity:
        """Who an answer of GetCallerIdentity says that we are."""

    def _check(self, service: str, operation: str, parameters: Mapping[str, Any]) -> None:
        self._gate.check(f"{service}:{operation}", dry_run=parameters.get("DryRun") is True)

    def _send(
        self, held: Held, region: str, service: str, operation: str, parameters: Mapping[str, Any]
    ) -> dict[str, Any]:
        """What passed the gate's check: one request, and its tries."""
        api = f"{service}:{operation}"
        changes = self._operations[api].changes_something and parameters.get("DryRun") is not True
        send = self._sender(held, region, service, operation, parameters, changes=changes)
        lane = self._lane(held, region, api)
        return self._retry.ask(api, lambda: self._pacer.reserve(*lane), send, changes=changes)
