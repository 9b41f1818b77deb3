"""Lists that come in pages, each of which hands out the token of the next."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from costguard.domain.errors import TruncatedReadError
from costguard.providers.kit.core.fields import as_documented

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
