"""Reads networks, ports, prefixes and names of policy documents. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from datetime import timedelta
from ipaddress import IPv4Network, IPv6Network, collapse_addresses, ip_address, ip_network

from costguard.domain.refs import CLOUDS, provider_of
from costguard.policy.syntax import units
from costguard.policy.syntax import values as cloud_values
from costguard.policy.syntax.problems import BadValueError

_SHORTEST_UNATTACHED = timedelta(hours=1)  # an address that moves between machines is without use for minutes
_LAST_PORT = 65_535
_RULE_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_./:#-]{0,255}")
_BUCKET = re.compile(r"arn:(aws|aws-cn|aws-us-gov):s3:::[!-~]{3,256}")
_LOG_GROUP = re.compile(r"arn:(aws|aws-cn|aws-us-gov):logs:[a-z0-9-]+:[0-9]{12}:log-group:[!-~]{1,512}")
_LOG_STORE = re.compile(r"[a-z0-9][a-z0-9-]{1,61}[a-z0-9]/[a-z0-9][a-z0-9_-]{1,61}[a-z0-9]")
_TOPIC = re.compile(r"[A-Za-z0-9][A-Za-z0-9-]{7,63}")

Network = IPv4Network | IPv6Network


def network(text: str) -> str:
    """A network in canonical CIDR form; one address is written with its whole prefix."""
    expected = "expected a network such as 203.0.113.0/24 or 2001:db8::/32"
    try:
        found = ip_network(text, strict=False)
    except ValueError as err:
        message = f"{text!r} is not a network; {expected}"
        raise BadValueError(message) from err
    canonical = str(found)
    if "/" not in text:
        message = f"{text} has no prefix; {expected}"
        raise BadValueError(message, f"write {canonical}")
    if text != canonical:
        host = text.partition("/")[0]
        beyond = found.prefixlen < found.max_prefixlen and ip_address(host) != found.network_address
        message = f"{text} has bits of a host beyond its prefix" if beyond else f"{text} is not in its usual form"
        raise BadValueError(message, f"write {canonical}" + (f", or {_alone(host)} for that one" if beyond else ""))
    return canonical


def _alone(host: str) -> str:
    return str(ip_network(host))


def not_the_world(texts: tuple[str, ...]) -> tuple[str, ...]:
    """Networks that are not, alone or together, every address there is."""
    advice = "name the networks that are meant"
    for index, text in enumerate(texts):
        if ip_network(text).prefixlen == 0:
            message = f"{text} is the whole internet"
            raise BadValueError(message, advice, at=(index,))
    for version in (4, 6):
        if any(each.prefixlen == 0 for each in _together(texts, version)):
            raise BadValueError("together these are the whole internet", advice)
    return texts


def is_wide(text: str, trusted: Sequence[str], widest_v4: int, widest_v6: int) -> bool:
    """Whether a network lets in more than one of the widest prefix, and is in none that is trusted."""
    asked = ip_network(text)
    if asked.prefixlen >= (widest_v4 if asked.version == 4 else widest_v6):  # noqa: PLR2004 - the two versions
        return False
    return not any(_within(asked, each) for each in _together(trusted, asked.version))


def _within(inner: Network, outer: Network) -> bool:
    if isinstance(inner, IPv4Network) and isinstance(outer, IPv4Network):
        return inner.subnet_of(outer)
    return isinstance(inner, IPv6Network) and isinstance(outer, IPv6Network) and inner.subnet_of(outer)


def _together(texts: Sequence[str], version: int) -> Sequence[Network]:
    """As few networks as hold the same addresses."""
    networks = [ip_network(text) for text in texts]
    if version == 4:  # noqa: PLR2004 - the two versions
        return list(collapse_addresses(each for each in networks if isinstance(each, IPv4Network)))
    return list(collapse_addresses(each for each in networks if isinstance(each, IPv6Network)))


def port(raw: object) -> int:
    """A port, 1 to 65535."""
    expected = f"expected a port from 1 to {_LAST_PORT}"
    if isinstance(raw, str) and re.fullmatch(r"[0-9]{1,5}-[0-9]{1,5}", raw):
        message = f"{raw!r} is a range; {expected}"
        raise BadValueError(message, "list every port that matters")
    if isinstance(raw, bool) or not isinstance(raw, int):
        fix = f"write {raw} without quotes" if isinstance(raw, str) and raw.isdecimal() else ""
        message = f"{raw!r} is not a port; {expected}"
        raise BadValueError(message, fix)
    if not 1 <= raw <= _LAST_PORT:
        message = f"{raw} is not a port; {expected}"
        raise BadValueError(message)
    return raw


def prefix(longest: int) -> Callable[[object], int]:
    """The length of a prefix, 1 to `longest`."""

    def check(raw: object) -> int:
        expected = f"expected the length of a prefix, from 1 to {longest}"
        if isinstance(raw, bool) or not isinstance(raw, int):
            bare = raw.removeprefix("/") if isinstance(raw, str) else ""
            message = f"{raw!r} is not a length; {expected}"
            raise BadValueError(message, f"write {bare}" if bare.isdecimal() else "")
        if raw == 0:
            raise BadValueError("no network is wider than /0, so nothing would ever be wide", f"write 1 to {longest}")
        if not 1 <= raw <= longest:
            message = f"{raw} is not a length; {expected}"
            raise BadValueError(message)
        return raw

    return check


def unattached(raw: object) -> timedelta:
    """How long an address may be without use: at least an hour."""
    length = units.parse_duration(raw)
    if length < _SHORTEST_UNATTACHED:
        message = f"{raw} is too short: an address that moves to another machine is without use for a while"
        raise BadValueError(message, "write 7d if unsure; at least 1h")
    return length


def kept(text: str) -> str:
    """An address, the id of an address, rule or group, or a whole id of ours."""
    bare, slash, _ = text.partition("/")
    if _is_address(bare):
        if slash or str(ip_address(bare)) != bare:
            message = f"{text} names an address in another form than clouds do"
            raise BadValueError(message, f"write {ip_address(bare)}")
        return text
    if text.count(":") >= 4:  # noqa: PLR2004 - cloud, account, region, kind and id have four between them
        return cloud_values.resource_id(text)
    if _RULE_ID.fullmatch(text) is None:
        message = f"{text!r} names no address, rule or group"
        raise BadValueError(message, "write an address such as 203.0.113.7, or an id such as sgr-0123456789abcdef0")
    return text


def _is_address(text: str) -> bool:
    try:
        ip_address(text)
    except ValueError:
        return False
    return True


def destination(text: str) -> str:
    """Where flow logs go, in the form of one of the vendors."""
    if not clouds_writing_to(text):
        message = f"{text!r} is no place that flow logs can be written to"
        fix = "write the ARN of a bucket or log group (aws), project/logstore (alibaba) or the id of a topic (tencent)"
        raise BadValueError(message, fix)
    return text


def clouds_writing_to(text: str) -> tuple[str, ...]:
    """The clouds whose flow logs can go there; empty where it is in no vendor's form."""
    arn = _BUCKET.fullmatch(text) or _LOG_GROUP.fullmatch(text)
    if arn is not None:
        return (arn[1],)
    provider = "alibaba" if _LOG_STORE.fullmatch(text) else "tencent" if _TOPIC.fullmatch(text) else ""
    return tuple(cloud for cloud in CLOUDS if provider_of(cloud) == provider)


def is_log_group(text: str) -> bool:
    """Whether it is a log group of CloudWatch, to which AWS writes by a role."""
    return _LOG_GROUP.fullmatch(text) is not None
