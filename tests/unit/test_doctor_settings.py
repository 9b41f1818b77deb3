"""The doctor asks whether keys and networks can be read, once an account, and takes silence for no answer."""

from __future__ import annotations

from typing import Any

import pytest

from costguard.domain.errors import AccessDeniedError, ThrottledError
from costguard.domain.keys import EncryptionKey, KeyInventory
from costguard.domain.network import NetworkInventory, Vpc
from costguard.domain.refs import ResourceRef, Shard
from costguard.domain.resources import Gap, GapKind
from costguard.engine.doctor.settings import examine_keys, examine_networks
from costguard.engine.run.scan import CloudReaders
from costguard.ports import Discovery, Target
from costguard.report.doctor.checks import Code, DoctorCheck, Health

EAST, WEST, OTHER = (Shard("aws", *where) for where in (("1", "us-east-1"), ("1", "us-west-2"), ("2", "us-east-1")))
DENIED = AccessDeniedError("no", operation="kms:ListKeys")
PART = Gap(EAST, "flow_logs", GapKind.DENIED, "no", "allow ec2:DescribeFlowLogs")


class Source:
    """Answers every shard with this, or fails with that."""

    def __init__(self, answer: Any) -> None:
        self.answer = answer
        self.asked: list[Shard] = []

    def read(self, shard: Shard) -> Any:
        self.asked.append(shard)
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer

    def look(self, ref: ResourceRef) -> EncryptionKey | None:
        del ref
        return None

    def discover(self, target: Target) -> Discovery:
        del target
        return Discovery((EAST, WEST, OTHER))


def examined(which: Any, answer: Any) -> tuple[list[DoctorCheck], list[Shard]]:
    source: Any = Source(answer)
    readings = {"aws": CloudReaders(source, source, source)}
    return list(which([Target("aws", organisation=True)], readings, {"aws": source})), source.asked


def test_each_account_is_asked_once_and_in_one_region() -> None:
    for which, answer in ((examine_keys, KeyInventory(EAST, ())), (examine_networks, NetworkInventory(EAST))):
        checks, asked = examined(which, answer)
        assert asked == [EAST, OTHER]
        assert [check.target for check in checks] == ["aws:1", "aws:2"]


@pytest.mark.parametrize(
    ("which", "answer", "code"),
    [
        (examine_keys, KeyInventory(EAST, ()), Code.KEYS_READ),
        (examine_keys, KeyInventory(EAST, (), (PART,)), Code.KEYS_DENIED),
        (examine_keys, DENIED, Code.KEYS_DENIED),
        (examine_keys, ThrottledError("slow down"), Code.KEYS_UNTOLD),
        (examine_networks, NetworkInventory(EAST), Code.NETWORKS_READ),
        (examine_networks, NetworkInventory(EAST, gaps=(PART,)), Code.NETWORKS_DENIED),
        (examine_networks, DENIED, Code.NETWORKS_DENIED),
        (examine_networks, ThrottledError("slow down"), Code.NETWORKS_UNTOLD),
    ],
)
def test_every_answer_has_its_code_and_bars_nothing_else(which: Any, answer: Any, code: Code) -> None:
    checks, _ = examined(which, answer)
    assert {check.code for check in checks} == {code}
    whole = code in {Code.KEYS_READ, Code.NETWORKS_READ}
    assert {check.health for check in checks} == {Health.OK if whole else Health.WARNING}


def test_what_is_there_is_counted_and_what_is_denied_is_named_with_its_permission() -> None:
    networks = NetworkInventory(EAST, vpcs=(Vpc(ResourceRef("aws", "1", "us-east-1", "vpc", "vpc-1"), ()),))
    (check, _), _ = examined(examine_networks, networks)
    assert check.facts["count"] == 1
    (denied, _), _ = examined(examine_networks, NetworkInventory(EAST, gaps=(PART,)))
    assert denied.details[0].fix == "allow ec2:DescribeFlowLogs"
    (refused, _), _ = examined(examine_keys, DENIED)
    assert refused.details[0].fix == "allow kms:ListKeys"
