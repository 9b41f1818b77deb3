"""One door to Alibaba Cloud: identity, accounts, and every request with its pacing, retries and errors."""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from costguard.domain.errors import (
    AccessDeniedError,
    InvalidInputError,
    ProviderError,
    RefusedError,
)
from costguard.domain.refs import Shard
from costguard.ports import CallCount, Target
from costguard.providers.alibaba.core import errors
from costguard.providers.alibaba.core.fields import flattened, items_in
from costguard.providers.alibaba.core.products import HOME_REGIONS, PRODUCTS, host_of
from costguard.providers.alibaba.core.rates import RATES, region_of
from costguard.providers.alibaba.core.times import needed_time
from costguard.providers.alibaba.core.transport import Question, Transport, WireError, check_endpoint
from costguard.providers.alibaba.iam.permissions import REACH
from costguard.providers.kit.core.credentials import Keys
from costguard.providers.kit.core.fields import account_id, as_documented, named, part, text
from costguard.providers.kit.core.gate import Gate
from costguard.providers.kit.core.pacing import Pacer, pacer_for
from costguard.providers.kit.core.paging import by_token
from costguard.providers.kit.core.redaction import without_secrets
from costguard.providers.kit.core.retry import RetryPolicy
from costguard.providers.kit.iam.purposes import Purpose

_OWN = ""  # the account key of the credentials we started with
_READ_SECONDS = 30.0  # one request in all
_CHANGE_SECONDS = 90.0  # the SDK itself waits 86 s for CreateSnapshot
_ROLE_LASTS = timedelta(hours=1)
_RENEWED_BEFORE = timedelta(minutes=10)  # the end: a page takes seconds, a slow shard minutes
_ASSUME = "sts:AssumeRole"
_WHO = "sts:GetCallerIdentity"


@dataclass(frozen=True, slots=True)
class Identity:
    """Who the credentials are. `kind` is Account (root), RAMUser or AssumedRoleUser."""

    account: str
    arn: str
    kind: str


@dataclass(frozen=True, slots=True)
class _Entered:
    """Keys for one account; `renew_at` None: those we started with, which nobody here can renew."""

    account: str
    keys: Keys
    renew_at: datetime | None = None


class AlibabaSession:
    """Credentials, connections and requests for one site of Alibaba Cloud; serves many threads.

    `keys` are those we start with; None means that there are none. `endpoint` stands in for the whole cloud.
    `may_change` False refuses, before anything leaves the process, whatever permissions.py does not list as reading;
    with `may_dry_run` it lets a change out that is sent with `DryRun=true`. `deadline` returns the seconds left; no
    wait goes past it. `now` is the clock on the wall. `mark` is what its role sessions are called, and in its user
    agent: see `domain/deployments.py`.
    """

    def __init__(
        self,
        *,
        keys: Keys | None,
        now: Callable[[], datetime],
        cloud: str = "alibaba",
        endpoint: str = "",
        may_change: bool = False,
        may_dry_run: bool = False,
        home_region: str = "",
        deadline: Callable[[], float] | None = None,
        pacer: Pacer | None = None,
        purpose: Purpose = Purpose.GUARD,
        mark: str = "",
    ) -> None:
        if cloud not in HOME_REGIONS:
            message = (
                f"{cloud!r} is not a site of Alibaba Cloud that costguard knows; "
                f"expected one of {', '.join(HOME_REGIONS)}"
            )
            raise InvalidInputError(message)
        self.cloud = cloud
        self.home_region = home_region or HOME_REGIONS[cloud]
        self.may_change = may_change
        self.may_dry_run = may_dry_run
        self.purpose = purpose
        self._operations = REACH[purpose]
        self._endpoint = check_endpoint(endpoint) if endpoint else ""
        self._keys = keys
        self._now = now
        self._deadline = deadline
        self._pacer = pacer or pacer_for(RATES, endpoint)
        self._patience = RetryPolicy(self._pacer, deadline)
        self._gate = Gate(self._operations, may_change=may_change, may_dry_run=may_dry_run)
        self.mark = mark or "costguard"
        self._transport = Transport(self._gate, agent=self.mark)
        self._routes: dict[str, Target] = {}
        self._entered: dict[str, _Entered] = {}
        self._identity: Identity | None = None
        self._date: datetime | None = None
        self._entering = threading.RLock()
        self._accounts: defaultdict[str, threading.Lock] = defaultdict(threading.Lock)

    def acting(self) -> AlibabaSession:
        """A session that may change things, for the same accounts, with credentials and connections of its own."""
        return self._twin(may_change=True)

    def dry_running(self) -> AlibabaSession:
        """A session that asks what it would be allowed to change and can change nothing; as `acting` otherwise."""
        return self._twin(may_dry_run=True)

    def only_for(self, purpose: Purpose, *, may_change: bool = True) -> AlibabaSession:
        """A session that knows this purpose's operations and no other; unless it `may_change`, it only reads."""
        return self._twin(purpose, may_change=may_change)

    def _twin(
        self, purpose: Purpose = Purpose.GUARD, *, may_change: bool = False, may_dry_run: bool = False
    ) -> AlibabaSession:
        twin = AlibabaSession(
            keys=self._keys,
            now=self._now,
            cloud=self.cloud,
            endpoint=self._endpoint,
            may_change=may_change,
            may_dry_run=may_dry_run,
            home_region=self.home_region,
            deadline=self._deadline,
            pacer=self._pacer,
            purpose=self.purpose.narrowed(purpose),
            mark=self.mark,
        )
        twin._routes = self._routes  # shared: accounts found later count as well
        return twin

    def ask_time(self) -> datetime | None:
        """The cloud's clock, to the second, by the `Date` of an answer of STS; None where no answer told it."""
        self._date = None
        with suppress(ProviderError):  # what it says of us is not the question, and a wrong clock is refused
            self.call(Shard(self.cloud, ""), "sts", "GetCallerIdentity")
        return self._date

    def identity(self) -> Identity:
        """Who we are, asked once: the first request of all.

        Raises:
            AccessDeniedError: no credentials, or the cloud does not accept them.
        """
        with self._entering:
            if self._identity is None:
                if self._keys is None:
                    message = f"{_WHO}: there are no credentials for Alibaba Cloud"
                    raise AccessDeniedError(message, operation=_WHO, code=errors.NO_KEYS)
                own = _Entered(_OWN, self._keys)
                self._identity = self._ask_who(own)
                self._entered[_OWN] = own
            return self._identity

    def for_account(self, target: Target, account: str) -> None:
        """Make `account` readable: with our own credentials, or the target's role there.

        The role is an ARN (`acs:ram::…:role/…`), a name, or either with `{account}` in it.

        Raises:
            AccessDeniedError: no role to assume, it may not be assumed, or it leads to another account.
        """
        self._routes[account] = target
        self._enter(account)

    def call(self, shard: Shard, service: str, operation: str, /, **parameters: Any) -> dict[str, Any]:
        """One request (`call(shard, "ecs", "DescribeInstances", MaxResults=100)`) and its answer.

        Lists become `Name.1`, structures in them `Name.1.Key`, truth values `true` and `false`. Reads are tried again
        on throttling and passing faults while time lasts; a change is sent once. An empty region means the home one.

        Raises:
            OutcomeUnknownError: a change was sent and its answer lost.
            ProviderError: another of its kinds, see domain/errors.py.
        """
        region = shard.region or self.home_region
        entered = self._enter(shard.account)
        try:
            return self._send(entered, region, service, operation, parameters)
        except AccessDeniedError as err:
            renewable = entered.renew_at is not None and err.code in errors.EXPIRED
            if not renewable or self._operations[f"{service}:{operation}"].changes_something:
                raise
            self._forget(entered)  # they ended early, or our clock is behind
        return self._send(self._enter(shard.account), region, service, operation, parameters)

    def pages(
        self, shard: Shard, service: str, operation: str, result_key: str, /, **parameters: Any
    ) -> Iterator[list[Any]]:
        """The list under `result_key` (`Instances.Instance`) of every page, by `NextToken`, one page at a time.

        Raises:
            TruncatedReadError: no such list, a token seen before, or pages without end.
        """
        api = f"{service}:{operation}"

        def ask(page: dict[str, str]) -> dict[str, Any]:
            return self.call(shard, service, operation, **{**parameters, **page})

        yield from by_token(api, ask, lambda answer: items_in(answer, result_key, api), next_token)

    def calls_made(self) -> Sequence[CallCount]:
        """Every operation this session sent, counted where requests leave the process."""
        return self._gate.calls_made()

    def close(self) -> None:
        """Close all connections."""
        self._transport.close()

    def _enter(self, account: str) -> _Entered:
        """The credentials for `account`, obtained or renewed if need be."""
        identity = self.identity()
        target = self._routes.get(account)
        own = account in (_OWN, identity.account)
        if own and (target is None or not target.own_role):
            return self._entered[_OWN]
        fresh = self._fresh(account)
        if fresh is not None:
            return fresh
        if target is None or not target.role:
            message = (
                f"the credentials belong to account {identity.account}, not {account}, "
                "and the target names no role to assume there"
            )
            raise AccessDeniedError(message, operation=_ASSUME, code="NoRole")
        with self._entering:
            one_at_a_time = self._accounts[account]
        with one_at_a_time:
            return self._fresh(account) or self._assume(target, account)

    def _fresh(self, account: str) -> _Entered | None:
        entered = self._entered.get(account)
        return entered if entered is None or entered.renew_at is None or self._now() < entered.renew_at else None

    def _forget(self, entered: _Entered) -> None:
        with self._entering:
            if self._entered.get(entered.account) is entered:
                del self._entered[entered.account]

    def _assume(self, target: Target, account: str) -> _Entered:
        """Take the role, and ask who that makes us before anything else is done with it."""
        role = target.role.replace("{account}", account)
        arn = role if role.startswith("acs:") else f"acs:ram::{account}:role/{role}"
        parameters: dict[str, Any] = {
            "RoleArn": arn,
            "RoleSessionName": self.mark,
            "DurationSeconds": int(_ROLE_LASTS.total_seconds()),
        }
        if target.external_id:
            parameters["ExternalId"] = target.external_id
        answer = self._send(self._entered[_OWN], self.home_region, "sts", "AssumeRole", parameters)
        with as_documented(_ASSUME):
            issued = part(answer, "Credentials")
            keys = Keys(named(issued, "AccessKeyId"), named(issued, "AccessKeySecret"), named(issued, "SecurityToken"))
            ends_at = min(needed_time(issued, "Expiration"), self._now() + _ROLE_LASTS)
        entered = _Entered(account, keys, ends_at - _RENEWED_BEFORE)
        found = self._ask_who(entered).account
        if found != account:
            message = f"role {without_secrets(arn)} leads to account {found}, not {account}: not used"
            raise AccessDeniedError(message, operation=_ASSUME, code="WrongAccount")
        self._entered[account] = entered
        return entered

    def _ask_who(self, entered: _Entered) -> Identity:
        answer = self._send(entered, self.home_region, "sts", "GetCallerIdentity", {})
        with as_documented(_WHO):
            return Identity(
                account=account_id(answer, "AccountId"),
                arn=without_secrets(text(answer, "Arn")),
                kind=without_secrets(text(answer, "IdentityType")),
            )

    def _send(
        self, entered: _Entered, region: str, service: str, operation: str, parameters: Mapping[str, Any]
    ) -> dict[str, Any]:
        api = f"{service}:{operation}"
        dry_run = parameters.get("DryRun") is True
        self._gate.check(api, dry_run=dry_run)
        question = self._question(region, service, operation, parameters)
        changes = self._operations[api].changes_something and not dry_run
        return self._patience.ask(
            api,
            lambda: self._pacer.reserve(entered.account, region_of(api, region), api),
            lambda: self._send_once(entered.keys, question, changes=changes),
            changes=changes,
        )

    def _question(self, region: str, service: str, operation: str, parameters: Mapping[str, Any]) -> Question:
        api = f"{service}:{operation}"
        try:
            domain = self._endpoint or f"https://{host_of(self.cloud, service, region)}"
            given = flattened(parameters)
        except (ValueError, TypeError) as err:
            message = f"{api}: not sent: {without_secrets(str(err))}"
            raise RefusedError(message, operation=api, code="Unfit") from err
        # RegionId is signed with every request; left out, the SDK would name its own
        product, home = PRODUCTS[service], {"RegionId": region}
        if product.in_body:
            return Question(api, product.version, domain, home, given)
        return Question(api, product.version, domain, {**home, **given})

    def _send_once(self, keys: Keys, question: Question, *, changes: bool) -> dict[str, Any]:
        left = float("inf") if self._deadline is None else max(1.0, self._deadline())
        try:
            if changes:
                answer = self._transport.send_apart(keys, question, seconds=min(_CHANGE_SECONDS, left))
            else:
                answer = self._transport.send(keys, question, seconds=min(_READ_SECONDS, left))
        except WireError as err:
            raise errors.translate(err, question.operation, changes=changes) from err
        if answer.date is not None:
            self._date = answer.date
        return errors.fields_of(answer, question.operation, changes=changes)


def next_token(answer: dict[str, Any]) -> str:
    """The token of the next page; empty on the last."""
    return "" if answer.get("NextToken") is None else text(answer, "NextToken")
