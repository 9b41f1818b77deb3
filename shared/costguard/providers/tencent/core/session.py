"""One door to Tencent Cloud: identity, accounts, and every request with its pacing, retries and errors."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from typing import Any

from costguard.domain.errors import ProviderError, TruncatedReadError
from costguard.domain.refs import Shard
from costguard.ports import CallCount, Target
from costguard.providers.kit.core.credentials import Keys
from costguard.providers.kit.core.fields import as_documented, whole
from costguard.providers.kit.core.gate import Gate
from costguard.providers.kit.core.pacing import Pacer, pacer_for
from costguard.providers.kit.core.retry import RetryPolicy
from costguard.providers.kit.iam.purposes import Purpose
from costguard.providers.tencent.core import errors
from costguard.providers.tencent.core.credentials import OWN, Identity, Roles
from costguard.providers.tencent.core.prefetch import Ahead
from costguard.providers.tencent.core.products import HOME_REGIONS, PAGES, Paging, known_cloud
from costguard.providers.tencent.core.rates import RATES
from costguard.providers.tencent.core.transport import SendingError, Transport
from costguard.providers.tencent.iam.permissions import REACH

_MOST_PAGES = 10_000  # a million instances


class TencentSession:
    """Credentials, clients and requests for one site of Tencent Cloud; serves many threads.

    `may_change` False refuses, before anything leaves the process, whatever permissions.py does not list
    as reading. `endpoint` stands in for every product; it may be http on this machine only.
    `deadline` returns the seconds left; no wait goes past it. `now` is the clock on the wall. `pages`: how long the
    pages of each list are. `mark` is what its role sessions are called, and in its user agent: see
    `domain/deployments.py`.

    Raises:
        InvalidInputError: `cloud` is no site of Tencent Cloud, or `endpoint` no safe address.
    """

    def __init__(
        self,
        *,
        cloud: str = "tencent",
        keys: Keys | None,
        endpoint: str = "",
        may_change: bool = False,
        home_region: str = "",
        deadline: Callable[[], float] | None = None,
        pacer: Pacer | None = None,
        now: Callable[[], datetime],
        purpose: Purpose = Purpose.GUARD,
        pages: Mapping[str, Paging] = PAGES,
        mark: str = "",
    ) -> None:
        self.cloud = known_cloud(cloud)
        self.home_region = home_region or HOME_REGIONS[cloud]
        self.may_change = may_change
        self.purpose = purpose
        self._operations = REACH[purpose]
        self._pages = pages
        self._keys = keys
        self._endpoint = endpoint
        self._deadline = deadline
        self._pacer = pacer or pacer_for(RATES, endpoint)
        self._patience = RetryPolicy(self._pacer, deadline)
        self.now = now
        self._gate = Gate(self._operations, may_change=may_change)
        self.mark = mark or "costguard"
        self._transport = Transport(cloud, endpoint, agent=self.mark)
        self._roles = Roles(self._ask_sts, keys, now, self.mark)
        self._date: datetime | None = None

    def acting(self) -> TencentSession:
        """A session that may change things, for the same accounts, with credentials and connections of its own."""
        return self._twin()

    def only_for(self, purpose: Purpose, *, may_change: bool = True) -> TencentSession:
        """A session that knows this purpose's operations and no other; unless it `may_change`, it only reads."""
        return self._twin(purpose, may_change=may_change)

    def _twin(self, purpose: Purpose = Purpose.GUARD, *, may_change: bool = True) -> TencentSession:
        twin = TencentSession(
            cloud=self.cloud,
            keys=self._keys,
            endpoint=self._endpoint,
            may_change=may_change,
            home_region=self.home_region,
            deadline=self._deadline,
            pacer=self._pacer,
            now=self.now,
            pages=self._pages,
            purpose=self.purpose.narrowed(purpose),
            mark=self.mark,
        )
        twin._roles.routes = self._roles.routes  # shared: accounts found later count as well
        return twin

    def identity(self) -> Identity:
        """Who we are, asked once: the first request of all.

        Raises:
            AccessDeniedError: no credentials, or Tencent Cloud does not accept them.
        """
        return self._roles.identity()

    def for_account(self, target: Target, account: str) -> None:
        """Make `account` readable: with our own credentials, or the target's role there.

        The role is a `qcs::` ARN, a name, or either with `{account}` in it.

        Raises:
            AccessDeniedError: no role to assume, it may not be assumed, or it leads to another account.
        """
        self._roles.routes[account] = target
        self._roles.enter(account)

    def call(self, shard: Shard, service: str, action: str, /, **parameters: Any) -> dict[str, Any]:
        """One request (`call(shard, "cvm", "DescribeInstances", Limit=100)`) and the fields of its answer.

        Reads are tried again on throttling and passing faults while time lasts; a change is sent once.
        An empty region means the home region.

        Raises:
            OutcomeUnknownError: a change was sent and its answer lost.
            ProviderError: another of its kinds, see domain/errors.py.
        """
        operation = f"{service}:{action}"
        self._gate.check(operation)
        region = shard.region or self.home_region
        key = self._roles.enter(shard.account)
        try:
            return self._send(key, region, service, action, parameters)
        except ProviderError as err:
            if key == OWN or not errors.is_stale(err) or self._operations[operation].changes_something:
                raise
            self._roles.forget(key)
        return self._send(self._roles.enter(shard.account), region, service, action, parameters)

    def pages(
        self, shard: Shard, service: str, action: str, result_key: str, /, **parameters: Any
    ) -> Iterator[list[Any]]:
        """The list under `result_key` of every page, in order; once their number is known, some are asked for ahead.

        An offset moves when something before it vanishes, and then an item is passed over: fewer in all than
        before, or fewer than announced, is an error and never a short list. Whichever of two pages was answered
        first, the one that was answered after something vanished tells the smaller count.

        Raises:
            TruncatedReadError: a page without that list, pages that contradict their own count, or without end.
        """
        operation = f"{service}:{action}"
        paging = self._pages.get(operation)
        if paging is None:
            yield _listed(self.call(shard, service, action, **parameters), result_key, operation)
            return

        def page(offset: int) -> tuple[list[Any], int]:
            answer = self.call(shard, service, action, **parameters, **paging.asked(offset))
            with as_documented(operation):
                total = whole(answer, paging.total) if result_key in answer else 0
            if paging.may_be_null and total == 0 and answer.get(result_key, "") is None:
                return [], 0
            return _listed(answer, result_key, operation), total

        seen, most, last = 0, 0, None
        with Ahead(page, paging.most) as ahead:
            for _ in range(_MOST_PAGES):
                items, total = ahead.take(seen, most)
                yield items
                if items and items == last:
                    raise _cut_short(operation, f"the same page came twice, after {seen} items", "RepeatedPage")
                seen, last = seen + len(items), items
                if _is_last(operation, paging, items, seen, total, most):
                    return
                most = max(most, total)
        raise _cut_short(operation, f"more than {_MOST_PAGES} pages", "TooManyPages")

    def ask_time(self) -> datetime | None:
        """The cloud's clock, to the second, by the `Date` of an answer of STS; None where no answer told it."""
        self._date = None
        with suppress(ProviderError):  # what it says of us is not the question, and a wrong clock is refused
            self.call(Shard(self.cloud, ""), "sts", "GetCallerIdentity")
        return self._date

    def calls_made(self) -> Sequence[CallCount]:
        """Every operation this session sent, counted where requests leave the process."""
        return self._gate.calls_made()

    def close(self) -> None:
        """Close all connections."""
        self._transport.close()

    def _ask_sts(self, key: str, action: str, parameters: dict[str, Any]) -> dict[str, Any]:
        self._gate.check(f"sts:{action}")
        return self._send(key, self.home_region, "sts", action, parameters)

    def _send(self, key: str, region: str, service: str, action: str, parameters: dict[str, Any]) -> dict[str, Any]:
        operation = f"{service}:{action}"
        changes = self._operations[operation].changes_something
        return self._patience.ask(
            operation,
            lambda: self._pacer.reserve(key, region, operation),
            lambda: self._send_once(key, region, service, action, parameters, changes=changes),
            changes=changes,
        )

    def _send_once(
        self, key: str, region: str, service: str, action: str, parameters: dict[str, Any], *, changes: bool
    ) -> dict[str, Any]:
        operation = f"{service}:{action}"
        keys = self._roles.keys_of(key)
        try:
            reply = self._transport.send(
                keys,
                region,
                service,
                action,
                parameters,
                sending=lambda: self._gate.sending(operation),
                anew=changes,
                seconds=None if self._deadline is None else self._deadline(),
            )
        except SendingError as err:
            raise errors.from_sending(err, operation, changes=changes) from err
        if reply.date is not None:
            self._date = reply.date
        if reply.error is not None:
            code, message = reply.error
            stand_in = self._transport.is_stand_in
            raise errors.from_answer(code, message, operation, changes=changes, stand_in=stand_in)
        return dict(reply.fields)


def _listed(answer: dict[str, Any], result_key: str, operation: str) -> list[Any]:
    items = answer.get(result_key)
    if not isinstance(items, list):
        raise _cut_short(operation, f"answered without {result_key}: not as documented", "MissingResult")
    return items


def _is_last(operation: str, paging: Paging, items: list[Any], seen: int, total: int, most: int) -> bool:
    """Whether this page was the last one."""
    if len(items) > paging.most:
        raise _cut_short(operation, f"a page of {len(items)} items where {paging.most} were asked for", "TooLong")
    if total < most:
        raise _cut_short(operation, f"{most} items became {total} while they were read", "Shifted")
    if len(items) < paging.most and seen < total:
        raise _cut_short(operation, f"ended after {seen} of {total} items", "EndedEarly")
    return len(items) < paging.most or seen == total


def _cut_short(operation: str, what: str, code: str) -> TruncatedReadError:
    return TruncatedReadError(f"{operation}: {what}", operation=operation, code=code)
