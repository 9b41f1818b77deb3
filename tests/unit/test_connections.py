"""Clouds are connected when a target names them, and not where the surroundings would lead to another account."""

from __future__ import annotations

import pytest
from tests.builders import NOW, policy

from cloudstand.clock import MovedClock
from costguard.connections import Connections
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
