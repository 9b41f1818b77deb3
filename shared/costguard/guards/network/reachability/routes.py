"""Where answers go: which route is in force for which peers, and whether what came in by an address gets out again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from costguard.domain.network import Hop, Route
from costguard.guards.network.reachability import ranges as r
from costguard.guards.network.reachability.filters import Unknown

_TRANSLATED = frozenset({Hop.INTERNET, Hop.NAT})


@dataclass(frozen=True, slots=True)
class Way:
    """The peers for which one route is in force; `route` None: no route matches. `doubt`: it may be in force."""

    peers: tuple[r.Range, ...]
    route: Route | None
    doubt: Unknown | None = None


def ways(routes: Sequence[Route], family: int) -> tuple[Way, ...]:
    """Every route by the longest prefix, for the peers that no longer one takes; last what no route matches.

    A destination that is no network (a list of networks by name) counts only where it leads to the internet, and then
    as a doubt: elsewhere it can only take peers away.
    """
    told = [(to, route) for route in routes if (to := r.parsed(route.destination)) and to[0] == family]
    told.sort(key=lambda each: each[0][2] - each[0][1])  # stable: of equals the first that is listed
    found: list[Way] = []
    taken: list[r.Range] = []
    for (_, first, last), route in told:
        left = r.minus([(first, last)], taken)
        if left:
            found.append(Way(tuple(left), route))
            taken = r.merged([*taken, (first, last)])
    rest = tuple(r.minus([r.WHOLE[family]], taken))
    if rest:
        found.append(Way(rest, None))
    for route in routes:
        if r.parsed(route.destination) is None and route.hop is Hop.INTERNET and route.active:
            unknown = Unknown("routes", f"{route.destination} could not be resolved")
            found.append(Way((r.WHOLE[family],), route, unknown))
    return tuple(found)


def lets_out(route: Route | None, *, needs_gateway: bool) -> bool:
    """Whether answers of an address reach the internet by this route.

    Where an address suffices it goes before any default route, but not before a longer prefix or a dead end.
    """
    if needs_gateway:
        return route is not None and route.active and route.hop is Hop.INTERNET
    if route is None:
        return True
    if not route.active or route.hop is Hop.EGRESS_ONLY:
        return False
    return route.hop in _TRANSLATED or _is_default(route)


def _is_default(route: Route) -> bool:
    found = r.parsed(route.destination)
    return found is not None and (found[1], found[2]) == r.WHOLE[found[0]]
