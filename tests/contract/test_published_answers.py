"""Every answer of the three emulators is held against what their vendors publish: `tests/answers`.

The suite does it for each of its tests (`tests/conftest.py`); here stands that it is done, and what is seen.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from decimal import Decimal

import pytest
from botocore.exceptions import ClientError
from tests.answers import alibaba, tencent
from tests.answers.watch import Watch, strange
from tests.contract import alibaba_asking as of_alibaba
from tests.contract import test_sandbox_aws as of_aws
from tests.contract import test_sandbox_tencent as of_tencent

from cloudstand.alibaba.core.actions import ACTIONS
from cloudstand.alibaba.tables import PRODUCTS as VERSIONS
from cloudstand.aws.core.server import Refused
from cloudstand.fleets import ALIBABA_ACCOUNT, alibaba_machine
from cloudstand.tencent.core.actions import PRODUCTS
from cloudstand.wire.messages import Answer, Ending, Request
from cloudstand.wire.watching import watching
from cloudstand.world import workload as does
from cloudstand.world.money import ChargeCategory, Money
from cloudstand.world.records import OtherCharge

UNLISTED = "a value that is not listed"
NOT_ABROAD = {"DescribeInstanceTypeConfigs", "InquiryPriceTerminateInstances", "DescribeVpcPeeringConnections"}


@dataclass
class Asked:
    """What was answered to what, in order."""

    seen: list[tuple[str, Request, Answer]] = field(default_factory=list)

    def __call__(self, cloud: str, request: Request, answer: Answer) -> None:
        self.seen.append((cloud, request, answer))


@contextmanager
def recording() -> Iterator[Asked]:
    asked = Asked()
    with watching(asked):
        yield asked


def instances_of_tencent() -> tuple[str, Request, Answer]:
    with of_tencent.cloud(of_tencent.machine()) as here, recording() as asked:
        here.call("cvm", "DescribeInstances")
    return asked.seen[-1]


def instances_of_alibaba() -> tuple[str, Request, Answer]:
    machine = alibaba_machine("own", does.idle(), of_alibaba.AT - 9 * of_alibaba.DAY)
    with of_alibaba.cloud_of(machine) as here, recording() as asked:
        here.ask("DescribeInstances")
    return asked.seen[-1]


def instances_of_aws() -> tuple[str, Request, Answer]:
    with of_aws.Aws(of_aws.machine()) as here, recording() as asked:
        here.client("ec2").describe_instances()
    return asked.seen[-1]


def accounts_of_aws() -> tuple[str, Request, Answer]:
    with of_aws.Aws(of_aws.machine()) as here, recording() as asked:
        here.client("organizations").list_accounts()
    return asked.seen[-1]


ASKED = {
    "tencent": instances_of_tencent,
    "alibaba": instances_of_alibaba,
    "aws in XML": instances_of_aws,
    "aws in JSON": accounts_of_aws,
}


@pytest.mark.parametrize(
    ("of", "old", "new", "field", "why"),
    [
        ("tencent", '"ImageId"', '"Ours": 1, "ImageId"', "Instance.Ours", "no such field"),
        ("tencent", '"OsName": "Ubuntu Server 22.04 LTS 64bit"', '"OsName": 22', "Instance.OsName", "no string"),
        ("tencent", '"Memory": 32', '"Memory": null', "Instance.Memory", "null"),
        ("tencent", '"Memory": 32', '"Memory": true', "Instance.Memory", "no int64"),
        ("tencent", '"NOTISOLATED"', '"ALONE"', "Instance.IsolatedSource", UNLISTED),
        ("tencent", ':00Z", "ExpiredTime"', ':00", "ExpiredTime"', "Instance.CreatedTime", "no datetime_iso"),
        ("alibaba", '"ImageId"', '"Ours":1,"ImageId"', "DescribeInstances.Instances.Instance.Ours", "no such field"),
        ("alibaba", '"PostPaid"', '"Free"', "DescribeInstances.Instances.Instance.InstanceChargeType", UNLISTED),
        ("alibaba", '"Cpu":8', '"Cpu":"8"', "DescribeInstances.Instances.Instance.Cpu", "no int"),
        ("aws in XML", "<imageId>", "<ours>1</ours><imageId>", "Instance.ours", "no such field"),
        ("aws in XML", "<name>running</name>", "<name>busy</name>", "InstanceState.name", UNLISTED),
        ("aws in XML", "<code>16</code>", "<code>sixteen</code>", "InstanceState.code", "no integer"),
        ("aws in JSON", '"Arn"', '"Ours": 1, "Arn"', "Account.Ours", "no such field"),
        ("aws in JSON", '"ACTIVE"', '"BUSY"', "Account.Status", UNLISTED),
    ],
)
def test_what_is_not_published_is_seen(of: str, old: str, new: str, field: str, why: str) -> None:
    cloud, request, answer = ASKED[of]()
    assert [*strange(cloud, request, answer)] == []
    assert old.encode() in answer.body, answer.body
    damaged = replace(answer, body=answer.body.replace(old.encode(), new.encode(), 1))
    assert (field, why) in {(each.field, each.why) for each in strange(cloud, request, damaged)}


def test_every_action_of_the_emulators_has_a_published_answer() -> None:
    versions = {service: version for version, service in VERSIONS.items()}
    for service, action in ACTIONS:
        assert alibaba.shape_of(f"{service} {versions[service]}", action).name == action
    for service, product in PRODUCTS.items():
        for action in product.actions:
            assert tencent.shape_of("tencent", f"{service} {product.version}", action).name == f"{action}Response"


def test_what_the_international_site_does_not_publish_is_named() -> None:
    """The emulator has them there as well, for nobody knows whether they are only left out of its pages."""
    published = json.loads(tencent.FILE.read_text("utf-8"))["products"].values()
    assert {action for product in published for action in product["international"]["missing"]} == NOT_ABROAD


def test_an_answer_that_cannot_be_looked_at_is_strange() -> None:
    watch = Watch()
    cloud, request, answer = instances_of_tencent()
    watch(cloud, request, replace(answer, body=b'{"Response": '))
    (found,) = watch.taken()
    assert "could not be looked at" in found
    assert watch.taken() == []


@pytest.mark.parametrize("ending", [Ending.RESET, Ending.STALLED])
def test_what_never_arrives_is_not_looked_at(ending: Ending) -> None:
    cloud, request, answer = instances_of_tencent()
    assert [*strange(cloud, request, replace(answer, body=b"{}", ending=ending))] == []


FAILS = pytest.mark.xfail(strict=True, raises=pytest.fail.Exception, reason="the suite looks at every answer")


@FAILS
def test_a_field_of_ours_fails_the_test_that_asked_tencent() -> None:
    with of_tencent.cloud(of_tencent.machine()) as here:
        here.emulator.desk.set_up_budget("gpus", "100", account=of_tencent.LEADER, Ours="1")
        answer = here.call("billing", "DescribeBudget", None, "", PageNo=1, PageSize=9)
        assert answer["Data"]["Records"][0]["Ours"] == "1"


@FAILS
def test_a_word_of_ours_fails_the_test_that_asked_alibaba() -> None:
    begins = of_alibaba.AT - 4 * of_alibaba.DAY
    charge = OtherCharge(
        *("alibaba", ALIBABA_ACCOUNT, of_alibaba.HANGZHOU, "support", ChargeCategory.USAGE),
        *(begins, begins + of_alibaba.DAY, Money(Decimal(1), "EUR"), "support-1"),
    )
    with of_alibaba.cloud_of(alibaba_machine("own", does.idle(), begins)) as here:
        here.world.charge(charge)
        assert here.ask("DescribeInstanceBill", {"BillingCycle": "2026-02"})["Success"]


@FAILS
def test_an_error_of_ours_fails_the_test_that_asked_aws() -> None:
    with of_aws.Aws(of_aws.machine()) as here:
        here.embedded.gateway.refused.append(Refused("kms", "ListKeys", "OursException", "no"))
        with pytest.raises(ClientError):
            here.client("kms").list_keys()
