"""Every provider's rig for the contract suites of `KeySource` and `KeyRotator`: a further provider adds its row."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager

from tests.contract.alibaba_keys import alibaba_keys
from tests.contract.aws_keys import aws_keys
from tests.contract.key_rigs import KeyRig
from tests.contract.tencent_keys import tencent_keys

KEYS: Mapping[str, Callable[[], AbstractContextManager[KeyRig]]] = {
    "alibaba": alibaba_keys,
    "aws": aws_keys,
    "tencent": tencent_keys,
}
"""Provider → its rig, for all tests of a module."""
