"""What the providers share: patience, pages, one pass over a shard, discovery, and what an executor holds to."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta, timezone
from typing import Any

import pytest
from tests.builders import NOW, SHARD, instance, ref

from costguard.domain.actions import Action, Verb
from costguard.domain.errors import (
    AccessDeniedError,
    InvalidInputError,
    NotFoundError,
    OutcomeUnknownError,
    ProviderError,
    RefusedError,
    ThrottledError,
    TruncatedReadError,
    UnavailableError,
)
from costguard.domain.refs import ResourceRef, Shard
from costguard.domain.resources import Gap
from costguard.ports import Target
from costguard.providers.kit.compute.executor import require_acting, require_instance, require_volume
from costguard.providers.kit.compute.source import Reading, batches, by_id, known_among
from costguard.providers.kit.core.accounts import Discoverer, Members, Regions
from costguard.providers.kit.core.calls import DEADLINE, by_token, gap_kind, signal_gaps
from costguard.providers.kit.core.fields import after_sending, tag_value
from costguard.providers.kit.core.pacing import Pacer, RetryPolicy, clock_skew, date_told


def gap(shard: Shard, what: str, error: ProviderError) -> Gap:
    return Gap(shard, what, gap_kind(error), str(error))


class Slow:
    """Time that passes by sleeping only, and answers that come after some failures."""

    def __init__(self, *failures: ProviderError, seconds: float = 1000.0) -> None:
        self.left = seconds
        self.failures = list(failures)
        self.tries = 0

    def patience(self, **more: Any) -> RetryPolicy:
        def sleep(seconds: float) -> None:
            self.left -= seconds

        return RetryPolicy(Pacer({}, monotonic=lambda: 0.0, sleep=sleep, chance=lambda: 1.0), lambda: self.left, **more)

    def send(self) -> str:
        self.tries += 1
        if self.failures:
            raise self.failures.pop(0)
        return "answer"


def busy(code: str = "Busy") -> ProviderError:
    return UnavailableError("busy", operation="a:B", code=code)


def throttled() -> ProviderError:
    return ThrottledError("too often", operation="a:B")


@pytest.mark.parametrize(("failures", "tries"), [([throttled()] * 7, 8), ([busy()] * 3, 4), ([], 1)])
def test_a_read_is_tried_again_while_that_helps(failures: list[ProviderError], tries: int) -> None:
    slow = Slow(*failures)
    assert slow.patience().ask("a:B", lambda: 0.0, slow.send, changes=False) == "answer"
    assert slow.tries == tries


@pytest.mark.parametrize(
    ("failures", "changes", "tries"),
    [
        ([throttled()] * 8, False, 8),
        ([busy()] * 4, False, 4),
        ([throttled()], True, 1),
        ([busy()], True, 1),
        ([busy("Hopeless")], False, 1),
        ([AccessDeniedError("no", operation="a:B")], False, 1),
    ],
)
def test_a_change_is_sent_once_and_what_helps_no_more_ends(
    failures: list[ProviderError], tries: int, *, changes: bool
) -> None:
    slow, last = Slow(*failures), failures[-1]
    with pytest.raises(type(last)):
        slow.patience(final=("Hopeless",)).ask("a:B", lambda: 0.0, slow.send, changes=changes)
    assert slow.tries == tries


def test_no_wait_goes_past_the_deadline() -> None:
    slow = Slow(seconds=2.0)
    with pytest.raises(UnavailableError) as caught:
        slow.patience().ask("a:B", lambda: 2.0, slow.send, changes=False)
    assert (caught.value.code, slow.tries, slow.left) == (DEADLINE, 0, 2.0)


def test_where_time_ends_between_two_tries_the_reason_of_the_first_is_told() -> None:
    slow = Slow(throttled(), seconds=0.1)
    with pytest.raises(ThrottledError):
        slow.patience().ask("a:B", lambda: 0.0, slow.send, changes=False)
    assert slow.tries == 1


def pages(tokens: Iterator[str]) -> Iterator[list[Any]]:
    def ask(page: dict[str, str]) -> dict[str, Any]:
        return {"Items": [page], "NextToken": next(tokens)}

    return by_token("a:B", ask, lambda answer: list(answer["Items"]), lambda answer: str(answer["NextToken"]))


def test_pages_follow_their_tokens() -> None:
    assert list(pages(iter(["x", "y", ""]))) == [[{}], [{"NextToken": "x"}], [{"NextToken": "y"}]]


@pytest.mark.parametrize(
    ("tokens", "code"),
    [(lambda: iter(["x", "y", "x"]), "RepeatedToken"), (lambda: map(str, range(10**9)), "TooManyPages")],
)
def test_pages_in_a_circle_or_without_end_are_no_list(tokens: Callable[[], Iterator[str]], code: str) -> None:
    with pytest.raises(TruncatedReadError) as caught:
        list(pages(tokens()))
    assert caught.value.code == code


def test_an_instance_that_comes_twice_is_kept_once_unless_it_changed() -> None:
    reading = Reading(SHARD, "a:B", gap=gap, undescribed="{}")
    for native_id in ("i-1", "i-2", "i-1"):
        reading.keep(instance(native_id))
    assert [one.ref.native_id for one in reading.found] == ["i-1", "i-2"]
    with pytest.raises(TruncatedReadError, match="i-1 is described twice, and differently"):
        reading.keep(instance("i-1", tags={"owner": "vision"}))


def test_each_type_that_nobody_describes_is_a_gap_once() -> None:
    reading = Reading(SHARD, "a:B", gap=gap, undescribed="a:Types: {} is not described")
    for found in (frozenset({"new.large", "odd{}.large"}), frozenset({"new.large"}), frozenset()):
        reading.learn(found.copy)
    assert [(one.what, one.detail) for one in reading.gaps] == [
        ("types", "a:Types: new.large, odd{}.large is not described")
    ]


def test_what_is_described_in_two_ways_is_no_answer() -> None:
    twice = [{"InstanceId": "i-1", "State": "running"}, {"InstanceId": "i-1", "State": "stopped"}]
    with pytest.raises(TruncatedReadError):
        by_id("a:B", twice, ["i-1"])
    assert list(by_id("a:B", [*twice[:1] * 2, {"InstanceId": "i-0"}], ["i-2", "i-0", "i-1"])) == ["i-0", "i-1"]


def test_one_unknown_id_does_not_hide_the_others() -> None:
    def describe(ids: Any) -> dict[str, dict[str, Any]]:
        if "i-gone" in ids:
            raise NotFoundError("gone", operation="a:B")
        return {one: {"InstanceId": one} for one in ids}

    assert list(known_among(["i-1", "i-gone", "i-2"], describe)) == ["i-1", "i-2"]
    assert known_among(["i-gone"], describe) == {}


def test_of_two_hundred_ids_one_that_nobody_knows_costs_no_request_an_id() -> None:
    asked: list[int] = []

    def describe(ids: Sequence[str]) -> dict[str, dict[str, Any]]:
        asked.append(len(ids))
        if "i-117" in ids:
            raise NotFoundError("no such instance", operation="ec2:DescribeInstances")
        return {native_id: {} for native_id in ids}

    ids = [f"i-{number}" for number in range(200)]
    assert list(known_among(ids, describe)) == [native_id for native_id in ids if native_id != "i-117"]
    assert len(asked) <= 17


def test_ids_are_asked_for_each_once_shard_by_shard_and_few_together() -> None:
    west = Shard("aws", SHARD.account, "us-west-2")
    refs = [ref("i-3", shard=west), *(ref(f"i-{n}") for n in (2, 1, 3, 2))]
    assert list(batches(refs, 2)) == [(SHARD, ["i-1", "i-2"]), (SHARD, ["i-3"]), (west, ["i-3"])]


@dataclass(frozen=True)
class Identity:
    account: str


class Cloud:
    """Accounts that may be entered, and the regions of each."""

    def __init__(self, regions: Mapping[str, str] | ProviderError, *closed_to_us: str) -> None:
        self.listed = regions
        self.closed_to_us = closed_to_us

    def identity(self) -> Identity:
        return Identity("1")

    def for_account(self, target: Target, account: str) -> None:
        del target
        if account in self.closed_to_us:
            raise AccessDeniedError("no role", operation="sts:AssumeRole")

    def regions(self, whole: Shard) -> Mapping[str, str]:
        if isinstance(self.listed, ProviderError):
            raise self.listed
        return self.listed if whole.account else {}

    def discover(self, *named: str, every: bool = False, members: Members | None = None) -> tuple[list[str], list[str]]:
        def listed(_: str) -> Members:
            if members is None:
                raise busy()
            return members

        regions = Regions(
            listed=self.regions,
            usable=lambda _, state: state == "open",
            likely=lambda name: name.startswith("cn-"),
            unusable=lambda shard, _: Gap(shard, "regions", gap_kind(busy()), shard.region),
            always=frozenset({"cn-old"}),
        )
        target = Target("alibaba", organisation=members is not None, regions=None if every else named)
        found = Discoverer(self, listed, regions, gap).discover(target)
        return (
            [f"{shard.account}/{shard.region}" for shard in found.shards],
            [f"{one.shard.account}/{one.what}" for one in found.gaps],
        )


DENIED = AccessDeniedError("no", operation="a:Regions")


def test_no_region_named_is_none_and_not_every_one() -> None:
    cloud = Cloud({"cn-b": "open", "cn-a": "open", "cn-shut": "shut"})
    assert cloud.discover() == ([], [])
    assert cloud.discover(every=True) == (["1/cn-a", "1/cn-b"], [])
    assert cloud.discover("cn-b", "cn-shut", "cn-b", "moon-1") == (["1/cn-b"], ["1/regions"] * 2)


def test_a_denied_list_of_regions_leaves_those_named_and_is_a_gap_where_all_are_meant() -> None:
    assert Cloud(DENIED).discover("cn-a", "moon-1") == (["1/cn-a"], ["1/regions"])
    assert Cloud(DENIED).discover("cn-old") == (["1/cn-old"], []), "needs no asking"
    assert Cloud(DENIED).discover(every=True) == ([], ["1/regions"])
    assert Cloud(busy()).discover("cn-a") == ([], ["1/regions"]), "no answer is no permission to guess"


def test_a_member_that_cannot_be_entered_hides_no_other() -> None:
    cloud = Cloud({"cn-a": "open"}, "2")
    assert cloud.discover(every=True, members=Members(["1", "2", "3"])) == (["1/cn-a", "3/cn-a"], ["2/accounts"])


def action(**changes: Any) -> Action:
    return replace(Action("a", "d", Verb.STOP, ref(), ref(), "1", "c", 1, "research", "r"), **changes)


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"resource": ref("i-2")}, "the instance of its case"),
        ({"resource": ref(kind="volume"), "subject": ref(kind="volume")}, "needs an AWS instance"),
        ({"resource": ref(""), "subject": ref("")}, "no id or region"),
        ({"resource": ref(shard=Shard("tencent", "1", "x")), "subject": ref(shard=Shard("tencent", "1", "x"))}, "AWS"),
    ],
)
def test_what_does_not_fit_is_refused_before_it_is_sent(changed: dict[str, ResourceRef], why: str) -> None:
    require_instance(action(), ("aws",), "an AWS instance")
    with pytest.raises(RefusedError, match=why):
        require_instance(action(**changed), ("aws",), "an AWS instance")


def test_a_volume_is_copied_only_where_its_instance_is() -> None:
    volume = ref("vol-1", kind="volume")
    require_volume(action(resource=volume), ("aws",), "an AWS volume")
    elsewhere = ref("vol-1", kind="volume", shard=Shard("aws", SHARD.account, "us-west-2"))
    with pytest.raises(RefusedError, match="one account and region"):
        require_volume(action(resource=elsewhere), ("aws",), "an AWS volume")


def test_an_answer_that_cannot_be_read_leaves_a_change_unknown() -> None:
    with pytest.raises(OutcomeUnknownError, match="it may have taken effect"), after_sending("a:B"):
        raise KeyError("RequestId")


def test_an_executor_needs_a_session_made_for_acting() -> None:
    require_acting("ThatSession", may_change=True)
    with pytest.raises(InvalidInputError, match=r"ThatSession\.acting\(\)"):
        require_acting("ThatSession", may_change=False)


def test_the_clocks_are_compared_in_the_middle_of_the_question() -> None:
    ours = iter([NOW, NOW + timedelta(seconds=2)])
    ahead = NOW + timedelta(minutes=10, seconds=1)
    assert clock_skew(lambda: next(ours), lambda: ahead) == timedelta(minutes=10, seconds=0.5)
    assert clock_skew(lambda: NOW, lambda: None) is None


@pytest.mark.parametrize(
    "header",
    [
        None,
        "",
        7,
        "soon",
        "Mon, 02 Mar 2026 09:00:00",
        "Mon, 02 Mar 2026 09:00:00 -0000",
        "Fri, 31 Dec 9999 23:59:59 -2300",
    ],
)
def test_a_date_that_tells_no_moment_is_none(header: object) -> None:
    assert date_told(header) is None
    assert date_told("Mon, 02 Mar 2026 09:00:00 GMT") == datetime(2026, 3, 2, 9, tzinfo=timezone.utc)


def test_each_way_of_failing_is_one_gap_that_names_a_few() -> None:
    failures = {ref(f"i-{n}"): busy() if n else throttled() for n in range(8)}
    told = [one.detail for one in signal_gaps(SHARD, failures, 9, gap)]
    assert told == ["too often (1 of 9 instances: i-0)", "busy (7 of 9 instances: i-1, i-2, i-3, i-4, i-5, …)"]
    everybody = {ref("i-1"): busy(), ref("i-2"): busy()}
    assert [one.detail for one in signal_gaps(SHARD, everybody, 2, gap)] == ["busy"]


@pytest.mark.parametrize(
    ("pattern", "tags", "found"),
    [
        ("group", {"group": "blue"}, "blue"),
        ("group", {"group": ""}, "group"),
        ("group", {"groups": "blue"}, None),
        ("cluster/*", {"cluster/b": "x", "cluster/a": "y"}, "a"),
        ("cluster/*", {"cluster/": "x"}, "cluster/"),
        ("cluster/*", {"clusters": "x"}, None),
    ],
)
def test_a_controller_is_named_by_its_tag(pattern: str, tags: dict[str, str], found: str | None) -> None:
    assert tag_value(pattern, tags) == found
