"""The parts of a session that readers need, enough for what stands in for one, and lists that come in pages."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Protocol

from costguard.domain.errors import TruncatedReadError
from costguard.domain.refs import Shard
from costguard.providers.kit.core.fields import as_documented


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


MOST_PAGES = 10_000
"""A million instances of a hundred a page: a list without end is no answer."""


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
        if not token:
            return
        if token in seen:
            message = f"{operation}: the same page token came twice, after {len(seen) + 1} pages"
            raise TruncatedReadError(message, operation=operation, code="RepeatedToken")
        seen.add(token)
        page = {"NextToken": token}
    message = f"{operation}: more than {MOST_PAGES} pages"
    raise TruncatedReadError(message, operation=operation, code="TooManyPages")
