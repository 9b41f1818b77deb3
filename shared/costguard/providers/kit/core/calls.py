"""The parts of a session that readers need, lists that come in pages, and what a failed read leaves open."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Protocol

from costguard.domain.errors import (
    AccessDeniedError,
    ProviderError,
    ThrottledError,
    TruncatedReadError,
    UnavailableError,
)
from costguard.domain.refs import ResourceRef, Shard
from costguard.domain.resources import Gap, GapKind
from costguard.providers.kit.core.credentials import without_secrets
from costguard.providers.kit.core.fields import as_documented

MOST_PAGES = 10_000
"""A million instances of a hundred a page: a list without end is no answer."""

DEADLINE = "DeadlineExceeded"
"""A code of our own: not asked, because the time allowed is used up."""

NAMED = 5  # things named in a gap; the others are counted


class Calls(Protocol):
    """Asks single questions."""

    def call(self, shard: Shard, service: str, operation: str, /, **parameters: Any) -> Mapping[str, Any]:
        """One request, retried within the deadline; raises ProviderError."""


class Lists(Protocol):
    """Reads lists that come in pages."""

    def pages(
        self, shard: Shard, service: str, operation: str, result_key: str, /, **parameters: Any
    ) -> Iterator[Sequence[Any]]:
        """The list under `result_key` of every page; raises ProviderError."""


class Reads(Calls, Lists, Protocol):
    """Both."""


def listed(session: Lists, shard: Shard, api: str, result_key: str, /, **parameters: Any) -> Iterator[Any]:
    """Every item of the list under `result_key` of every page of `api` (`ec2:DescribeVolumes`), as `pages`."""
    service, _, operation = api.partition(":")
    for page in session.pages(shard, service, operation, result_key, **parameters):
        yield from page


def by_token(
    operation: str,
    ask: Callable[[dict[str, str]], dict[str, Any]],
    items_in: Callable[[dict[str, Any]], list[Any]],
    token_in: Callable[[dict[str, Any]], str],
) -> Iterator[list[Any]]:
    """What `items_in` finds in every answer, one page at a time; `ask` is given the parameter that names the page.

    Raises:
        TruncatedReadError: a token seen before, or pages without end.
    """
    seen: set[str] = set()
    page: dict[str, str] = {}
    for _ in range(MOST_PAGES):
        answer = ask(page)
        yield items_in(answer)
        with as_documented(operation):
            token = token_in(answer)
        del answer  # a page of 1,000 machines has 10 MB, and the next is on its way
        if not token:
            return
        if token in seen:
            message = f"{operation}: the same page token came twice, after {len(seen) + 1} pages"
            raise TruncatedReadError(message, operation=operation, code="RepeatedToken")
        seen.add(token)
        page = {"NextToken": token}
    message = f"{operation}: more than {MOST_PAGES} pages"
    raise TruncatedReadError(message, operation=operation, code="TooManyPages")


def gap_kind(error: ProviderError) -> GapKind:
    """Why something could not be read, from the error that reading it ended in."""
    if error.code == DEADLINE:
        return GapKind.DEADLINE
    if isinstance(error, AccessDeniedError):
        return GapKind.DENIED
    if isinstance(error, ThrottledError):
        return GapKind.THROTTLED
    if isinstance(error, TruncatedReadError):
        return GapKind.TRUNCATED
    if isinstance(error, UnavailableError):
        return GapKind.UNAVAILABLE
    return GapKind.UNREADABLE


class Gaps(list[Gap]):
    """What one reading of a shard leaves open; `because` makes a gap of an error, as the cloud's errors.py does."""

    def __init__(self, shard: Shard, because: Callable[[Shard, str, ProviderError], Gap]) -> None:
        super().__init__()
        self.shard = shard
        self._because = because

    def add(self, what: str, err: ProviderError) -> None:
        """This part could not be read, or not in full."""
        self.append(self._because(self.shard, what, err))

    @contextmanager
    def part(self, what: str) -> Iterator[None]:
        """What fails to be read in here is a gap of this name; what was read before it stays."""
        try:
            yield
        except ProviderError as err:
            self.add(what, err)


def named_gaps(
    what: str,
    failures: Iterable[tuple[Shard, str, ProviderError]],
    of: str,
    gap: Callable[[Shard, str, ProviderError], Gap],
) -> Iterator[Gap]:
    """One gap for each way of failing in a shard, naming some of the ids; `of` counts all asked for (`12 keys`)."""
    ways: dict[tuple[Shard, str, str], list[tuple[str, ProviderError]]] = {}
    for shard, native_id, err in failures:
        ways.setdefault((shard, err.operation, err.code), []).append((native_id, err))
    for (shard, _, _), found in ways.items():
        one = gap(shard, what, found[0][1])
        names = ", ".join([without_secrets(native_id) for native_id, _ in found[:NAMED]] + ["…"] * (len(found) > NAMED))
        yield replace(one, detail=f"{one.detail} ({len(found)} of {of}: {names})")


def signal_gaps(
    shard: Shard,
    failures: Mapping[ResourceRef, ProviderError],
    seen: int,
    gap: Callable[[Shard, str, ProviderError], Gap],
) -> Iterator[Gap]:
    """One gap for each way of failing, naming the instances unless it is all of the `seen`."""
    refs_of: dict[str, list[ResourceRef]] = {}
    errors: dict[str, ProviderError] = {}
    for ref, error in failures.items():
        refs_of.setdefault(str(error), []).append(ref)
        errors.setdefault(str(error), error)
    for told, refs in refs_of.items():
        found = gap(shard, "signals", errors[told])
        if len(refs) == seen:
            yield found
            continue
        names = [ref.native_id for ref in refs[:NAMED]] + (["…"] if len(refs) > NAMED else [])
        yield replace(found, detail=f"{found.detail} ({len(refs)} of {seen} instances: {', '.join(names)})")
