"""The Tencent Cloud emulator on the wire: signatures, headers, parameters, limits, faults, many threads."""

from __future__ import annotations

import hashlib
import hmac
import json
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from typing import Any

import pytest
import requests
from tencentcloud.common.common_client import CommonClient
from tencentcloud.common.credential import Credential
from tencentcloud.common.exception.tencent_cloud_sdk_exception import TencentCloudSDKException
from tencentcloud.common.profile.client_profile import ClientProfile
from tencentcloud.common.profile.http_profile import HttpProfile
from tencentcloud.common.retry import StandardRetryer
from tests.contract.test_sandbox_tencent import AT, LEADER, MEMBER, VERSIONS, Cloud, cloud, machine

from cloudstand.tencent.core.actions import PRODUCTS
from cloudstand.tencent.core.protocol import Signed, signature
from cloudstand.tencent.core.settings import PUBLISHED_RATES
from cloudstand.wire.faults import Fault, FaultKind
from cloudstand.wire.keys import Keys
from cloudstand.wire.messages import Request
from cloudstand.world.kinds import Billing

HEADER = "AuthFailure.InvalidAuthorization"
SCOPE = f"Credential=AKID{'0' * 32}/2026-03-02/cvm/tc3_request"


@pytest.fixture(scope="module")
def lasting() -> Iterator[Cloud]:
    """For what only asks and is refused."""
    with cloud(machine()) as here:
        yield here


# --- signatures


def test_a_wrong_secret_an_unknown_key_and_a_foreign_one_are_refused() -> None:
    with cloud(machine(), machine("other", account=MEMBER)) as here:
        keys = here.emulator.keys
        ask = "cvm", "DescribeInstances"
        assert here.refused(*ask, replace(keys, secret="wrong")) == "AuthFailure.SignatureFailure"
        swapped = Keys(keys.key_id, here.emulator.keys_of(MEMBER).secret)
        assert here.refused(*ask, swapped) == "AuthFailure.SignatureFailure"
        assert here.refused(*ask, Keys(f"AKID{'0' * 32}", keys.secret)) == "AuthFailure.SecretIdNotFound"
        assert here.refused(*ask, Keys("LTAI0000", keys.secret)) == "AuthFailure.InvalidSecretId"
        assert here.emulator.calls == []


@pytest.mark.parametrize("seconds", [-360, 360])
def test_a_clock_more_than_five_minutes_off_is_refused(seconds: int) -> None:
    def wall() -> datetime:
        return datetime.now(timezone.utc) + timedelta(seconds=seconds)

    with cloud(machine(), wall=wall) as here:
        assert here.refused("cvm", "DescribeInstances") == "AuthFailure.SignatureExpire"


def test_a_clock_a_little_off_is_not_refused() -> None:
    with cloud(machine(), wall=lambda: datetime.now(timezone.utc) + timedelta(seconds=290)) as here:
        assert here.call("cvm", "DescribeInstances")["TotalCount"] == 1


def sent(here: Cloud, keys: Keys, body: str = "{}", /, **changed: str | None) -> dict[str, Any]:
    """A request signed by hand, with some headers changed after signing; the whole answer."""
    now = datetime.now(timezone.utc)
    host = here.emulator.url.removeprefix("http://")
    headers = {"content-type": "application/json", "host": host}
    signed = Signed(keys.key_id, now.strftime("%Y-%m-%d"), "cvm", ("content-type", "host"), "")
    stamp = str(int(now.timestamp()))
    value = signature(Request("POST", "/", "", headers, body.encode()), signed, keys.secret, stamp)
    scope = f"{keys.key_id}/{signed.date}/cvm/tc3_request"
    headers |= {
        "authorization": f"TC3-HMAC-SHA256 Credential={scope}, SignedHeaders=content-type;host, Signature={value}",
        "x-tc-action": "DescribeInstances",
        "x-tc-version": "2017-03-12",
        "x-tc-region": "ap-guangzhou",
        "x-tc-timestamp": stamp,
    }
    for name, text in changed.items():
        header = name.replace("_", "-")
        headers.pop(header, None)
        if text is not None:
            headers[header] = text
    request = urllib.request.Request(here.emulator.url, body.encode(), headers, method="POST")  # noqa: S310 - loopback
    with urllib.request.urlopen(request, timeout=10) as answer:  # noqa: S310 - loopback
        assert answer.status == 200
        assert answer.headers["Content-Type"] == "application/json"  # exactly, or the SDK sees no errors
        found: dict[str, Any] = json.load(answer)["Response"]
        return found


def test_action_version_and_region_are_not_signed_and_taken_as_they_come() -> None:
    """A proxy could change them, and neither the cloud nor this would know."""
    with cloud(machine(), machine("far", region="ap-shanghai")) as here:
        keys = here.emulator.keys
        assert sent(here, keys)["TotalCount"] == 1
        elsewhere = sent(here, keys, x_tc_region="ap-shanghai")["InstanceSet"]
        assert elsewhere[0]["InstanceName"] == "far"
        assert "ZoneSet" in sent(here, keys, x_tc_action="DescribeZones")


@pytest.mark.parametrize(
    ("changed", "code"),
    [
        ({"authorization": None}, "MissingParameter"),
        ({"authorization": "Basic x"}, HEADER),
        ({"authorization": f"TC3-HMAC-SHA256 {SCOPE}, SignedHeaders=host, Signature={'0' * 64}"}, HEADER),
        ({"authorization": f"TC3-HMAC-SHA256 {SCOPE}, SignedHeaders=content-type;host, Signature=0"}, HEADER),
        ({"x_tc_timestamp": None}, "MissingParameter"),
        ({"x_tc_timestamp": "today"}, "InvalidParameter"),
        ({"x_tc_timestamp": "1551113065"}, "AuthFailure.SignatureExpire"),
        ({"x_tc_action": None}, "MissingParameter"),
        ({"x_tc_version": None}, "MissingParameter"),
        ({"x_tc_region": None}, "MissingParameter"),
        ({"x_tc_action": "DescribeNothing"}, "InvalidAction"),
        ({"x_tc_version": "2016-01-01"}, "NoSuchVersion"),
        ({"x_tc_region": "cn-hangzhou"}, "UnsupportedRegion"),
        ({"content_type": "text/plain"}, "AuthFailure.SignatureFailure"),
    ],
)
def test_headers_are_checked(lasting: Cloud, changed: dict[str, str | None], code: str) -> None:
    assert sent(lasting, lasting.emulator.keys, **changed)["Error"]["Code"] == code


def test_a_body_that_is_no_object_is_refused(lasting: Cloud) -> None:
    for body in ("", "[]", "{", "\ufffd"):
        assert sent(lasting, lasting.emulator.keys, body)["Error"]["Code"] == "InvalidParameter"


def test_a_product_that_is_not_here_is_refused(lasting: Cloud) -> None:
    keys, http = lasting.emulator.keys, HttpProfile(protocol="http", endpoint=lasting.emulator.url[len("http://") :])
    profile = ClientProfile(httpProfile=http)
    client = CommonClient("cdb", "2017-03-20", Credential(keys.key_id, keys.secret), "ap-guangzhou", profile)
    with pytest.raises(TencentCloudSDKException, match="NoSuchProduct"):
        client.call_json("DescribeDBInstances", {})


def test_the_signature_is_the_documented_one() -> None:
    """The key is derived from date, service and `tc3_request`; recomputed here step by step."""
    request = Request("POST", "/", "", {"content-type": "application/json", "host": "cvm.tencentcloudapi.com"}, b"{}")
    signed = Signed("AKIDx", "2019-02-25", "cvm", ("content-type", "host"), "")
    first = signature(request, signed, "secret", "1551113065")
    assert len(first) == 64
    assert signature(replace(request, body=b"{ }"), signed, "secret", "1551113065") != first
    unsigned = replace(request, headers={**request.headers, "x-tc-content-sha256": "UNSIGNED-PAYLOAD"})
    assert signature(unsigned, signed, "secret", "1551113065") != first
    canonical = "POST\n/\n\ncontent-type:application/json\nhost:cvm.tencentcloudapi.com\n\ncontent-type;host\n"
    hashed = hashlib.sha256((canonical + hashlib.sha256(b"{}").hexdigest()).encode()).hexdigest()
    to_sign = f"TC3-HMAC-SHA256\n1551113065\n2019-02-25/cvm/tc3_request\n{hashed}"
    key = b"TC3secret"
    for part in (b"2019-02-25", b"cvm", b"tc3_request", to_sign.encode()):
        key = hmac.new(key, part, hashlib.sha256).digest()
    assert key.hex() == first


def test_get_requests_are_understood_and_so_are_proxies() -> None:
    with cloud(machine("a"), machine("b", zone="ap-guangzhou-7")) as here:
        got = here.client("cvm", reqMethod="GET").call_json(
            "DescribeInstances", {"Limit": 1, "Filters": [{"Name": "zone", "Values": ["ap-guangzhou-7"]}]}
        )
        assert [each["InstanceName"] for each in got["Response"]["InstanceSet"]] == ["b"]
        keys = here.emulator.keys
        profile = ClientProfile(httpProfile=HttpProfile(protocol="http", proxy=here.emulator.url))
        credential = Credential(keys.key_id, keys.secret)
        client = CommonClient("cvm", VERSIONS["cvm"], credential, "ap-guangzhou", profile)
        assert client.call_json("DescribeInstances", {})["Response"]["TotalCount"] == 2


def test_the_language_of_messages_is_the_callers_choice_and_chinese_without_one() -> None:
    with cloud(machine()) as here:
        body = '{"Bogus": 1}'
        english = sent(here, here.emulator.keys, body, x_tc_language="en-US")["Error"]
        chinese = sent(here, here.emulator.keys, body)["Error"]
        assert english["Code"] == chinese["Code"] == "UnknownParameter"
        assert english["Message"] == "The parameter `Bogus` is not recognized."
        assert chinese["Message"] == "未知参数`Bogus`。"


# --- parameters


@pytest.mark.parametrize(
    ("given", "code"),
    [
        ({"Bogus": 1}, "UnknownParameter"),
        ({"limit": 1}, "UnknownParameter"),
        ({"Limit": "5"}, "InvalidParameter"),
        ({"Limit": True}, "InvalidParameter"),
        ({"Limit": 5.0}, "InvalidParameter"),
        ({"Limit": None}, "InvalidParameter"),
        ({"Limit": 0}, "InvalidParameterValue.LimitExceeded"),
        ({"Offset": -1}, "InvalidParameterValue"),
        ({"InstanceIds": "ins-12345678"}, "InvalidParameter"),
        ({"InstanceIds": [1]}, "InvalidParameter"),
        ({"Filters": [{"Name": "zone"}]}, "MissingParameter"),
        ({"Filters": [{"Name": "zone", "Values": ["x"], "Value": "x"}]}, "UnknownParameter"),
        ({"Filters": {"Name": "zone", "Values": ["x"]}}, "InvalidParameter"),
        ({"Filters": ["zone"]}, "InvalidParameter"),
    ],
)
def test_parameters_are_checked_by_name_type_and_range(lasting: Cloud, given: dict[str, Any], code: str) -> None:
    assert lasting.refused("cvm", "DescribeInstances", **given) == code


@pytest.mark.parametrize(
    ("given", "code"),
    [
        ({}, "MissingParameter"),
        ({"InstanceIds": []}, "InvalidParameterValue"),
        ({"InstanceIds": ["ins-12345678"], "StopType": "GENTLE"}, "InvalidParameterValue"),
        ({"InstanceIds": ["ins-12345678"], "StoppedMode": "stop_charging"}, "InvalidParameterValue"),
        ({"InstanceIds": ["ins-12345678"], "ForceStop": "true"}, "InvalidParameter"),
        ({"InstanceIds": ["ins-12345678"], "ForceStop": True, "StopType": "SOFT"}, "InvalidParameterCombination"),
    ],
)
def test_changes_are_checked_as_well(lasting: Cloud, given: dict[str, Any], code: str) -> None:
    assert lasting.refused("cvm", "StopInstances", **given) == code


def test_what_is_published_and_not_modelled_is_never_overlooked(lasting: Cloud) -> None:
    one = {"InstanceIds": ["ins-12345678"]}
    role = {"RoleArn": f"qcs::cam::uin/{LEADER}:roleName/costguard", "RoleSessionName": "x1"}
    for service, action, given in (
        ("sts", "AssumeRole", {**role, "Policy": "%7B%7D"}),
        ("organization", "DescribeOrganizationMembers", {"Offset": 0, "Limit": 10, "SearchKey": "x"}),
        ("cvm", "TerminateInstances", {**one, "ReleasePrepaidDataDisks": True}),
        ("cvm", "ModifyInstancesAttribute", {**one, "HostName": "x"}),
        ("cvm", "DescribeInstances", {"Filters": [{"Name": "vpc-id", "Values": ["vpc-1"]}]}),
        ("cbs", "CreateSnapshot", {"DiskId": "disk-12345678", "LocalSnap": True}),
        ("cbs", "DescribeDisks", {"Filters": [{"Name": "instance-name", "Values": ["x"]}]}),
        ("vpc", "DescribeAddresses", {"Filters": [{"Name": "network-interface-id", "Values": ["eni-1"]}]}),
    ):
        assert lasting.refused(service, action, **given) == "Emulator.NotModelled", f"{service}:{action}"
    kept = {**one, "ReleaseAddress": False, "ReleasePrepaidDataDisks": False}  # what happens anyway
    assert lasting.refused("cvm", "TerminateInstances", **kept) == "InvalidInstanceId.NotFound"


def test_every_action_refuses_an_unknown_parameter(lasting: Cloud) -> None:
    for service, product in PRODUCTS.items():
        for action in product.actions:
            given = {f"Never{action}": 1}
            assert lasting.refused(service, action, **given) == "UnknownParameter", f"{service}:{action}"


def test_every_action_has_a_published_rate() -> None:
    named = {action for product in PRODUCTS.values() for action in product.actions}
    assert named - PUBLISHED_RATES.keys() == set()


# --- limits and faults


def test_rates_are_kept_by_action_account_and_region() -> None:
    rates = {"DescribeInstances": (2.0, 0.001), "AssumeRole": (0.0, 0.0), "DescribeAddresses": (0.0, 0.0)}
    with cloud(machine(), machine("far", region="ap-shanghai"), machine("x", account=MEMBER), rates=rates) as here:
        for _ in range(2):
            here.call("cvm", "DescribeInstances")
        assert here.refused("cvm", "DescribeInstances") == "RequestLimitExceeded"
        assert here.call("cvm", "DescribeInstances", None, "ap-shanghai")["TotalCount"] == 1
        assert here.call("cvm", "DescribeInstances", here.emulator.keys_of(MEMBER))["TotalCount"] == 1
        assert here.call("cvm", "DescribeZones")["TotalCount"] > 0
        # two products have words of their own, which do not look like it
        role = {"RoleArn": f"qcs::cam::uin/{LEADER}:roleName/costguard", "RoleSessionName": "x1"}
        assert here.refused("sts", "AssumeRole", **role) == "InvalidParameter.OverLimit"
        assert here.refused("vpc", "DescribeAddresses") == "LimitExceeded.ActionLimited"
        assert here.emulator.limits.throttled == 3


def stop(here: Cloud) -> dict[str, Any]:
    return here.call("cvm", "StopInstances", InstanceIds=[here.world.fleet[0].native_id])


def state(here: Cloud) -> str:
    return str(here.machine(here.world.fleet[0].native_id)["InstanceState"])


def test_a_refusal_on_request_changes_nothing() -> None:
    with cloud(machine()) as here:
        code = "RequestLimitExceeded.UinLimitExceeded"
        here.emulator.faults.add(Fault(FaultKind.REFUSED, "StopInstances", code=code))
        assert here.refused("cvm", "StopInstances", InstanceIds=[here.world.fleet[0].native_id]) == code
        assert state(here) == "RUNNING"
        here.emulator.faults.add(Fault(FaultKind.REFUSED, code="x", status=503))
        with pytest.raises(TencentCloudSDKException, match="ServerNetworkError"):
            stop(here)


@pytest.mark.parametrize(
    ("kind", "error", "then"),
    [
        (FaultKind.RESET, TencentCloudSDKException, "RUNNING"),
        (FaultKind.LOST_ANSWER, TencentCloudSDKException, "STOPPING"),
        (FaultKind.TRUNCATED, requests.exceptions.ChunkedEncodingError, "STOPPING"),
        (FaultKind.NOT_JSON, json.JSONDecodeError, "RUNNING"),
    ],
)
def test_faults_break_the_answer_before_or_after_the_effect(kind: FaultKind, error: type[Exception], then: str) -> None:
    with cloud(machine()) as here:
        here.emulator.faults.add(Fault(kind, "StopInstances"))
        with pytest.raises(error):
            stop(here)
        assert state(here) == then


def test_the_sdks_own_retries_destroy_what_the_first_call_only_recycled() -> None:
    """It never forgets the first error: refused once for its frequency, it asks on until it has asked three times."""
    with cloud(machine(billing=Billing.PREPAID)) as here:
        here.emulator.faults.add(Fault(FaultKind.REFUSED, "TerminateInstances", code="RequestLimitExceeded"))
        client = here.client("cvm")
        client.profile.retryer = StandardRetryer(max_attempts=3, backoff_fn=lambda _: 0)
        with pytest.raises(TencentCloudSDKException, match="RequestLimitExceeded"):
            client.call_json("TerminateInstances", {"InstanceIds": [here.world.fleet[0].native_id]})
        assert here.call("cvm", "DescribeInstances")["TotalCount"] == 0
        assert [entry.what for entry in here.world.history][:3] == ["terminate", "terminate", "destroyed"]


def test_a_stalled_answer_comes_as_an_error_of_another_library() -> None:
    with cloud(machine()) as here:
        here.emulator.faults.add(Fault(FaultKind.STALLED, "DescribeInstances"))
        with pytest.raises(requests.exceptions.ConnectionError):
            here.client("cvm", reqTimeout=0.2).call_json("DescribeInstances", {})


def test_with_a_charset_behind_the_type_the_sdk_takes_an_error_for_an_answer() -> None:
    with cloud(machine()) as here:
        here.emulator.faults.add(Fault(FaultKind.WRONG_TYPE, "StopInstances"))
        answer = here.call("cvm", "StopInstances", InstanceIds=["ins-00000000"])
        assert answer["Error"]["Code"] == "InvalidInstanceId.NotFound"


def test_a_fault_strikes_whom_it_is_meant_for_and_as_often() -> None:
    with cloud(machine(), machine("x", account=MEMBER)) as here:
        here.emulator.faults.add(Fault(FaultKind.REFUSED, account=MEMBER, times=2, code="InternalError"))
        member = here.emulator.keys_of(MEMBER)
        here.call("cvm", "DescribeInstances")
        for _ in range(2):
            assert here.refused("cvm", "DescribeInstances", member) == "InternalError"
        assert here.call("cvm", "DescribeInstances", member)["TotalCount"] == 1


# --- many threads


def test_sixteen_threads_read_and_change_and_nothing_is_lost() -> None:
    with cloud(*(machine(f"m{place}") for place in range(160))) as here:
        ids = [spec.native_id for spec in here.world.fleet]

        def work(number: int) -> tuple[int, set[str]]:
            client = here.client("cvm")
            seen: set[str] = set()
            for offset in (0, 100):
                page = client.call_json("DescribeInstances", {"Offset": offset, "Limit": 100})["Response"]
                seen |= {each["InstanceId"] for each in page["InstanceSet"]}
            for native_id in ids[number::16]:
                client.call_json("StopInstances", {"InstanceIds": [native_id]})
            return number, seen

        with ThreadPoolExecutor(16) as pool:
            found = list(pool.map(work, range(16)))
        assert all(seen == set(ids) for _, seen in found)
        assert here.emulator.requests == 16 * 12 == len(here.emulator.calls)
        assert {entry.what for entry in here.world.history} == {"stop"}
        assert len(here.world.history) == 160


def test_the_clock_of_the_world_has_nothing_to_do_with_the_one_on_the_wall() -> None:
    with cloud(machine()) as here:
        assert abs(datetime.now(timezone.utc) - AT) > timedelta(days=1)
        here.pass_time(timedelta(days=400))
        assert here.call("cvm", "DescribeInstances")["TotalCount"] == 1
