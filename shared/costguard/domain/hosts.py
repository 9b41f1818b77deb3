"""Which hosts nothing that a policy names may be: where clouds keep what only their own machines may ask. Pure.

Sources: AWS "Instance metadata" (169.254.169.254, fd00:ec2::254) and "Task metadata" (169.254.170.2); Google Cloud
"About VM metadata" (metadata.google.internal, fd20:ce::254); Azure "What is IP address 168.63.129.16"; Alibaba Cloud
"Instance metadata" (100.100.100.200); Tencent Cloud "Instance metadata" (metadata.tencentyun.com, 169.254.0.23).
"""

from __future__ import annotations

import ipaddress
import re

IpAddress = ipaddress.IPv4Address | ipaddress.IPv6Address
"""Either kind."""

_NEVER = tuple(
    ipaddress.ip_network(network)
    for network in (
        *("169.254.0.0/16", "fe80::/10", "100.100.100.200/32", "168.63.129.16/32"),
        *("fd00:ec2::/32", "fd20:ce::254/128", "0.0.0.0/32", "::/128"),
    )
)
"""Where clouds hand credentials to whoever asks from inside, and what means this machine itself."""

_NAMES = frozenset(
    {
        *("metadata.google.internal", "metadata.goog", "metadata", "metadata.tencentyun.com"),
        *("instance-data", "instance-data.ec2.internal"),
    }
)
_NAT64 = ipaddress.ip_network("64:ff9b::/96")
_IPV4_BITS = 0xFFFFFFFF
_NUMBER = re.compile(r"0[xX][0-9a-fA-F]{0,16}|[0-9]{1,20}", re.ASCII)
_MOST_PARTS = 4

KEPT = "an address that clouds keep for their machines (link-local or metadata)"
DISGUISED = "an IP address in another form than 192.0.2.1 or 2001:db8::1"


def refused_host(host: str) -> str:
    """What is wrong with a host as an address names it; nothing where it may be asked.

    Names are not looked up: whoever connects judges what they stand for, by `is_kept`.
    """
    plain = host.strip("[]").rstrip(".").lower()
    if plain in _NAMES:
        return KEPT
    try:
        return KEPT if is_kept(ipaddress.ip_address(plain.partition("%")[0])) else ""
    except ValueError:
        pass
    number = _inet_aton(plain)
    if number is None:
        return ""
    return KEPT if is_kept(number) else DISGUISED


def is_kept(address: IpAddress) -> bool:
    """Whether it is, or stands for, an address that nothing may be sent to."""
    return any(each in network for each in (address, *stands_for(address)) for network in _NEVER)


def stands_for(address: IpAddress) -> tuple[ipaddress.IPv4Address, ...]:
    """The IPv4 addresses that an IPv6 one stands for."""
    if isinstance(address, ipaddress.IPv4Address):
        return ()
    found = [address.ipv4_mapped, address.sixtofour, *(address.teredo or ())]
    low = int(address)
    if address in _NAT64 or 1 < low <= _IPV4_BITS:  # ::1 is this machine, and no old form of 0.0.0.1
        found.append(ipaddress.IPv4Address(low & _IPV4_BITS))
    return tuple(each for each in found if each is not None)


def _inet_aton(text: str) -> ipaddress.IPv4Address | None:
    """What every resolver makes of `2852039166`, `0xa9fe.0xa9fe` or `0251.0376.0251.0376`; None for a name."""
    parts = text.split(".")
    if len(parts) > _MOST_PARTS or not all(_NUMBER.fullmatch(part) for part in parts):
        return None
    try:
        *first, last = [_number(part) for part in parts]
        whole = sum(value << (8 * (3 - index)) for index, value in enumerate(first)) + last
        return ipaddress.IPv4Address(whole)
    except ValueError:
        return None


def _number(text: str) -> int:
    if text[:2].lower() == "0x":
        return int(text[2:] or "0", 16)
    return int(text, 8) if text.startswith("0") and text != "0" else int(text)
