"""Every provider's stand-in, for the suites that run on each: a further provider adds its row to both tables."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager

from tests.contract.alibaba_world import alibaba, alibaba_preflight
from tests.contract.cloud_worlds import World, aws
from tests.contract.preflight_worlds import Asked, aws_preflight
from tests.contract.tencent_world import tencent, tencent_preflight

NewWorld = Callable[[], AbstractContextManager[World]]
NewAccount = Callable[[], AbstractContextManager[Asked]]

WORLDS: Mapping[str, Callable[[], AbstractContextManager[NewWorld]]] = {
    "aws": aws,
    "alibaba": alibaba,
    "tencent": tencent,
}
"""Provider → a server for a module's tests, from which each test gets a world of its own."""

PREFLIGHTS: Mapping[str, Callable[[], AbstractContextManager[NewAccount]]] = {
    "aws": aws_preflight,
    "alibaba": alibaba_preflight,
    "tencent": tencent_preflight,
}
"""Provider → a server for a module's tests, from which each test gets an account of its own."""
