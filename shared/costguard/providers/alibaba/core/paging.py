"""Lists that come in numbered pages, whose total says when they are whole."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from costguard.domain.errors import ProviderError, TruncatedReadError, UnavailableError
from costguard.domain.refs import Shard
from costguard.providers.alibaba.core.errors import WOULD_BE_ALLOWED
from costguard.providers.alibaba.core.fields import structures_in
from costguard.providers.alibaba.core.session import AlibabaSession
from costguard.providers.kit.core.fields import Fields, as_documented, named, whole
from costguard.providers.kit.core.paging import MOST_PAGES


def prove_permitted(session: AlibabaSession, shard: Shard, service: str, operation: str, **parameters: Any) -> None:
    """Return where a dry run says that asking is permitted, and in no other case.

    Raises:
        AccessDeniedError: it is not permitted.
        ProviderError: it could not be found out.
    """
    api = f"{service}:{operation}"
    try:
        session.call(shard, service, operation, **parameters, DryRun=True)
    except ProviderError as err:
        if err.code in WOULD_BE_ALLOWED:
            return
        raise
    message = f"{api}: a dry run was answered like the call itself, so it proves nothing"
    raise UnavailableError(message, operation=api, code="DryRunIgnored")


def numbered_pages(
    session: AlibabaSession,
    shard: Shard,
    api: str,
    result_key: str,
    named_by: str,
    size: int,
    /,
    **parameters: Any,
) -> Iterator[dict[str, Fields]]:
    """The pages of the list at `result_key` that `api` (`kms:ListKeys`) answers with, its items by name.

    Raises:
        TruncatedReadError: not as many came as there are, or one came twice: the list moved while it was read.
    """
    service, _, operation = api.partition(":")
    seen: set[str] = set()
    for number in range(1, MOST_PAGES + 1):
        answer = session.call(shard, service, operation, **parameters, PageNumber=number, PageSize=size)
        with as_documented(api):
            page = structures_in(answer, result_key, api)
            total = _total(answer)
            items = {named(item, named_by): item for item in page if named(item, named_by) not in seen}
        seen |= items.keys()
        yield items
        if len(items) == len(page) and len(seen) == total:
            return
        if len(items) < len(page) or not page or len(seen) > total:
            break
    raise moved(api, len(seen))


def moved(api: str, came: int) -> TruncatedReadError:
    """What left the first page moves something of the second out of sight."""
    message = f"{api}: {came} came, and that is not all, or not once each: the list moved"
    return TruncatedReadError(message, operation=api, code="MissingItem")


def _total(answer: Fields) -> int:
    """Some lists of VPC write it as a text."""
    told = answer.get("TotalCount")
    if isinstance(told, str) and told.isascii() and told.isdigit():
        return int(told)
    return whole(answer, "TotalCount")
