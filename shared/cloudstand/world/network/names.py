"""What the parts of made-up networks are called, in each vendor's form."""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import blake2b

from cloudstand.world.places import Place, Ref

_PREFIXES: Mapping[str, Mapping[str, str]] = {
    "aws": {
        "vpc": "vpc-",
        "subnet": "subnet-",
        "route_table": "rtb-",
        "security_group": "sg-",
        "access_list": "acl-",
        "entry": "aclentry-",
        "interface": "eni-",
        "address": "eipalloc-",
        "nat_gateway": "nat-",
        "flow_log": "fl-",
        "peering": "pcx-",
        "internet": "igw-",
        "rule": "sgr-",
    },
    "alibaba": {
        "vpc": "vpc-bp1",
        "subnet": "vsw-bp1",
        "route_table": "vtb-bp1",
        "security_group": "sg-bp1",
        "access_list": "nacl-bp1",
        "entry": "nae-bp1",
        "interface": "eni-bp1",
        "address": "eip-bp1",
        "nat_gateway": "ngw-bp1",
        "flow_log": "fl-bp1",
        "peering": "pcc-bp1",
        "internet": "ipv6gw-bp1",
        "rule": "sgr-bp1",
        "forward": "fwd-bp1",
    },
    "tencent": {
        "vpc": "vpc-",
        "subnet": "subnet-",
        "route_table": "rtb-",
        "security_group": "sg-",
        "access_list": "acl-",
        "entry": "aclentry-",
        "interface": "eni-",
        "address": "eip-",
        "nat_gateway": "nat-",
        "flow_log": "fl-",
        "peering": "pcx-",
        "internet": "ipv6gw-",
        "rule": "rule-",  # it has none; by the time a rule is in a group its place is its id
        "forward": "forward-",
    },
}
_DIGITS = {"aws": 17, "alibaba": 17, "tencent": 8}


def network_ref(shard: Place, kind: str, name: str) -> Ref:
    """A part of a made-up network; always the same for the same words."""
    digest = blake2b(f"{shard}/{kind}/{name}".encode(), digest_size=9).hexdigest()
    native_id = _PREFIXES[shard.provider][kind] + digest[: _DIGITS[shard.provider]]
    return Ref(shard.cloud, shard.account, shard.region, kind, native_id)
