"""The networks of the region of a call, and lists of them in numbered pages and by token."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from cloudstand.alibaba.core.paging import place_of, token_of
from cloudstand.alibaba.core.shapes import wrapped
from cloudstand.alibaba.core.site import ApiCall
from cloudstand.world.cloud import World
from cloudstand.world.network.parts import NetworkInventory
from cloudstand.world.places import Place, Ref

MOST, USUAL = 50, 10


def networks_of(call: ApiCall, world: World) -> NetworkInventory:
    """The networks of the caller's account in the region of the call."""
    return world.networks.of(shard_of(call))


def shard_of(call: ApiCall) -> Place:
    """Where the call asks."""
    return Place(call.site.cloud, call.account, call.region)


def ref_of(call: ApiCall, kind: str, native_id: str) -> Ref:
    """Something there."""
    return Ref(call.site.cloud, call.account, call.region, kind, native_id)


def id_of(ref: Ref | None) -> str:
    """Its id; empty for nothing."""
    return "" if ref is None else ref.native_id


def numbered(
    call: ApiCall, outer: str, inner: str, items: Sequence[Any], *, usual: int = USUAL, in_words: bool = False
) -> dict[str, Any]:
    """A numbered page; `in_words` the counts are texts, as in some lists of VPC."""
    number = call.asked.whole("PageNumber") or 1
    size = min(call.asked.whole("PageSize") or usual, call.site.networks.page)
    counts: Mapping[str, int] = {"PageNumber": number, "PageSize": size, "TotalCount": len(items)}
    return {
        outer: wrapped(inner, items[(number - 1) * size : number * size]),
        **({name: str(count) for name, count in counts.items()} if in_words else counts),
    }


def by_token(
    call: ApiCall, items: Sequence[Any], *, most: int, usual: int, least: int = 1, named: str = "MaxResults"
) -> tuple[list[Any], str]:
    """A page and the token of the next; `least`: fewer are not given, whatever is asked.

    Raises:
        ApiError: a token that this action never gave out.
    """
    token = call.asked.text("NextToken")
    start = place_of(call.action, token) if token else 0
    wanted = call.asked.whole(named)
    size = min(max(least, min(most, usual if wanted is None else wanted)), call.site.networks.page)
    end = start + size
    return [*items[start:end]], token_of(call.action, end) if end < len(items) else ""
