"""How fast Alibaba Cloud and Tencent Cloud are asked: near their limits, never beyond, and pages before their turn."""

from __future__ import annotations

import threading

import pytest
from tests.builders import NOW

from cloudstand.clock import MovedClock
from costguard.connections import Connections
from costguard.policy.model.policy import default_policy
from costguard.ports import Target
from costguard.providers.alibaba.core.session import RATES as ALIBABA
from costguard.providers.kit.core.pacing import Pacer, pacer_for
from costguard.providers.tencent.core.session import RATES as TENCENT
from costguard.providers.tencent.core.session import Prefetch
from costguard.settings import load_settings


@pytest.mark.parametrize(
    ("rates", "operation", "limit"),
    [
        (ALIBABA, "cms:DescribeMetricList", 50),
        (TENCENT, "monitor:GetMonitorData", 20),
        (TENCENT, "cvm:DescribeInstances", 40),
        (TENCENT, "cvm:StopInstances", 10),
        (TENCENT, "sts:GetCallerIdentity", 20),
    ],
)
def test_no_second_is_full_and_hardly_any_is_wasted(
    rates: dict[str, tuple[float, float]], operation: str, limit: int
) -> None:
    """Requests bunch up on their way: a twentieth of the limit is left for that."""
    pacer = Pacer(rates, monotonic=lambda: 0.0)
    sent = [pacer.reserve("1", "r", operation) for _ in range(20 * limit)]

    within = [sum(begin <= at < begin + 1 for at in sent) for begin in sent[: 10 * limit]]
    assert max(within) <= 0.95 * limit
    assert sent[-1] <= 1.25 * len(sent) / limit


def test_a_list_of_one_page_is_asked_once() -> None:
    asked: list[int] = []
    with Prefetch(asked.append, 100) as ahead:
        ahead.take(0, 0)
    assert asked == [0]


def test_pages_are_asked_ahead_and_taken_in_order() -> None:
    """The first of them is answered last; nothing beyond what is announced is asked for."""
    asked: list[int] = []
    last_was_asked = threading.Event()

    def read(offset: int) -> int:
        asked.append(offset)
        if offset == 300:
            last_was_asked.set()
        assert last_was_asked.wait(timeout=10)
        return offset

    with Prefetch(read, 100) as ahead:
        taken = [ahead.take(offset, 350) for offset in (100, 200, 300)]
    assert taken == [100, 200, 300]
    assert sorted(asked) == [100, 200, 300]


def test_what_fails_ahead_fails_in_its_turn() -> None:
    def read(offset: int) -> int:
        if offset == 200:
            raise LookupError
        return offset

    with Prefetch(read, 100) as ahead:
        assert ahead.take(100, 500) == 100
        with pytest.raises(LookupError):
            ahead.take(200, 500)


def test_a_page_that_was_not_announced_is_read_on_the_spot() -> None:
    with Prefetch(lambda offset: offset, 100) as ahead:
        assert [ahead.take(offset, 200) for offset in (0, 100, 200)] == [0, 100, 200]


@pytest.mark.parametrize("endpoint", ["http://127.0.0.1:8080", "http://localhost:1", "http://[::1]:9/"])
def test_a_stand_in_on_this_machine_is_asked_as_fast_as_it_answers(endpoint: str) -> None:
    unhurried = pacer_for({"ce": (1, 2)}, endpoint)
    assert [unhurried.reserve("1", "r", family) for family in ("ce", "other") for _ in range(50)] == [0.0] * 100


@pytest.mark.parametrize("endpoint", ["", None, "https://vpce-1.ec2.us-east-1.vpce.amazonaws.com", "http://10.0.0.7"])
def test_every_other_endpoint_is_a_clouds(endpoint: str | None) -> None:
    paced = pacer_for({"ce": (1, 2)}, endpoint)
    assert max(paced.reserve("1", "r", "ce") for _ in range(50)) > 10


@pytest.mark.parametrize(("pace", "waits"), [("", False), ("vendor", True)])
def test_a_stand_in_is_asked_at_the_vendors_rates_where_that_is_asked_for(*, pace: str, waits: bool) -> None:
    """A benchmark shows what users wait for only at those rates."""
    names = ("AWS_ENDPOINT_URL", "COSTGUARD_ALIBABA_ENDPOINT", "COSTGUARD_TENCENT_ENDPOINT")
    settings = load_settings({**dict.fromkeys(names, "http://127.0.0.1:9"), "COSTGUARD_PACE": pace})
    with Connections(settings, default_policy(), MovedClock(NOW)) as connections:
        connections.open([Target(cloud=cloud) for cloud in ("aws", "alibaba", "tencent")])
        for cloud, ports in connections.clouds.items():
            pacer = ports.calls._pacer  # type: ignore[attr-defined]  # noqa: SLF001 - what hides how fast it asks
            assert (max(pacer.reserve("1", "r", "any") for _ in range(200)) > 0) is waits, cloud
