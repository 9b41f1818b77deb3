"""Every rig for the contract suites of `NetworkSource` and `NetworkRemediator`: a further provider adds its row."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from functools import partial

from tests.contract.alibaba_network import alibaba_network
from tests.contract.aws_network import aws_network
from tests.contract.network_rigs import NetworkRig, bare
from tests.contract.tencent_network import tencent_network

NETWORKS: Mapping[str, Callable[[], AbstractContextManager[NetworkRig]]] = {
    "tencent": tencent_network,
    "aws": aws_network,
    "alibaba": alibaba_network,
    "world-alibaba": partial(bare, "alibaba"),
    "world-aws": partial(bare, "aws"),
    "world-tencent": partial(bare, "tencent"),
}
"""Name → a rig, for all tests of a module. Those called `world-…` have no wire."""

WIRED = [name for name in NETWORKS if not name.startswith("world-")]
"""Those of a provider, over a session of its own."""
