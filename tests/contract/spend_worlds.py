"""Every `SpendSource` there is, for the suite that runs on each: a further provider adds its rig to `WIRES`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from functools import partial

from tests.contract.alibaba_spend import alibaba_spend
from tests.contract.aws_spend_rig import aws_spend
from tests.contract.spend_rigs import SpendRig, WireRig, WorldRig, scene
from tests.contract.tencent_spend import tencent_spend


def _world(cloud: str) -> Callable[[], AbstractContextManager[SpendRig]]:
    @contextmanager
    def rig() -> Iterator[SpendRig]:
        yield WorldRig(scene(cloud))

    return rig


WIRES: Mapping[str, Callable[[], AbstractContextManager[WireRig]]] = {
    "alibaba": alibaba_spend,
    "aws": aws_spend,
    "tencent": tencent_spend,
    "tencent-intl": partial(tencent_spend, "tencent-intl"),  # whose bill alone of the two tells a tax
}
"""Provider, or its other site → a rig for one test."""

WORLDS: Mapping[str, Callable[[], AbstractContextManager[SpendRig]]] = {
    "world of aws": _world("aws"),
    "world of alibaba": _world("alibaba"),
    "world of tencent": _world("tencent"),
    "world of tencent-intl": _world("tencent-intl"),
    **WIRES,
}
"""Every `SpendSource` there is."""
