"""Clouds are connected when a target names them, and not where the surroundings would lead to another account."""

from __future__ import annotations

from importlib import import_module

import pytest
from tests.builders import NOW, policy

from cloudstand.clock import MovedClock
from costguard.connections import Connections
from costguard.connections.clouds import PARTS
from costguard.domain.errors import InvalidInputError
from costguard.ports import Target
from costguard.settings import load_settings

OTHERS_KEY = {"ALIYUN_ACCESS_KEY_ID": "somebody-elses"}


@pytest.mark.parametrize("cloud", ["alibaba", "alibaba-intl"])
def test_a_key_that_the_sdk_would_prefer_stops_everything_on_alibaba_cloud(cloud: str) -> None:
    with (
        Connections(load_settings(OTHERS_KEY), policy(), MovedClock(NOW)) as connections,
        pytest.raises(InvalidInputError, match=r"ALIYUN_ACCESS_KEY_ID is set.*unset it"),
    ):
        connections.open((Target(cloud),))


@pytest.mark.parametrize("cloud", ["aws", "aws-cn", "tencent", "tencent-intl"])
def test_it_is_nothing_to_the_other_clouds(cloud: str) -> None:
    with Connections(load_settings(OTHERS_KEY), policy(), MovedClock(NOW)) as connections:
        assert set(connections.open((Target(cloud),))) == {cloud}


def test_without_it_alibaba_cloud_is_connected_and_nothing_is_sent() -> None:
    with Connections(load_settings({}), policy(), MovedClock(NOW)) as connections:
        ports = connections.open((Target("alibaba"),))["alibaba"]
        assert list(ports.calls.calls_made()) == []


@pytest.mark.parametrize("provider", ["aws", "alibaba", "tencent"])
def test_every_part_of_the_table_is_there_in_every_provider_that_has_it(provider: str) -> None:
    """They are imported by name, when somebody opens them."""
    for field, part in PARTS.items():
        if provider not in part.lacking:
            module = import_module(f"costguard.providers.{provider}.{part.module}")
            assert callable(getattr(module, f"{provider.title()}{part.name}")), field
