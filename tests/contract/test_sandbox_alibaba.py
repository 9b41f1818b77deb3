"""The emulator of Alibaba Cloud believes who signs as the vendor documents it, once, in time, with keys that live."""

from __future__ import annotations

import http.client
import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta, timezone
from urllib.parse import urlencode, urlsplit

import pytest
from aliyunsdkcore.acs_exception.exceptions import ServerException
from aliyunsdkcore.request import RpcRequest
from tests.contract.alibaba_asking import AT, DAY, HANGZHOU, Cloud, Refused, cloud_of

from cloudstand.alibaba.core.signing import signature, string_to_sign
from cloudstand.alibaba.standalone import serve
from cloudstand.fleets import ALIBABA_ACCOUNT, alibaba_machine
from cloudstand.wire.keys import Keys
from cloudstand.world import workload as does

MEMBER, OTHER_MEMBER = "1098765432109876", "1098765432100000"
EXTERNAL_ID = "costguard-sandbox"
WALL = datetime(2026, 7, 1, 12, 0, tzinfo=timezone.utc)


@pytest.fixture(scope="module")
def cloud() -> Iterator[Cloud]:
    fleet = [
        alibaba_machine(f"gpu-{number}", does.idle(), AT - 3 * DAY, account=account)
        for account in (ALIBABA_ACCOUNT, MEMBER, OTHER_MEMBER)
        for number in range(2)
    ]
    with cloud_of(*fleet, external_id=EXTERNAL_ID) as opened:
        yield opened


class Wire:
    """Requests signed by hand, for what no SDK would send."""

    def __init__(self, cloud: Cloud, wall: datetime) -> None:
        self._address = urlsplit(cloud.emulator.url).netloc
        self._keys = cloud.emulator.keys
        self._wall = wall
        self._nonce = 0

    def parameters(self, **more: str) -> dict[str, str]:
        self._nonce += 1
        return {
            "Action": "DescribeRegions",
            "Version": "2014-05-26",
            "Format": "JSON",
            "RegionId": HANGZHOU,
            "Timestamp": self._wall.strftime("%Y-%m-%dT%H:%M:%SZ"),
            "SignatureMethod": "HMAC-SHA1",
            "SignatureVersion": "1.0",
            "SignatureNonce": f"nonce-{self._nonce}",
            "AccessKeyId": self._keys.key_id,
            **more,
        }

    def send(
        self, sent: dict[str, str] | list[tuple[str, str]], path: str = "/", keys: Keys | None = None
    ) -> tuple[int, dict[str, str]]:
        """Sign and send; an empty value leaves a parameter out."""
        pairs = list(sent.items()) if isinstance(sent, dict) else sent
        pairs = [(name, value) for name, value in pairs if value]
        signed = signature(string_to_sign("GET", dict(pairs)), (keys or self._keys).secret)
        return self.send_raw(f"{path}?{urlencode([*pairs, ('Signature', signed)])}")

    def send_raw(
        self, path: str, method: str = "GET", body: bytes | None = None, content_type: str = ""
    ) -> tuple[int, dict[str, str]]:
        connection = http.client.HTTPConnection(self._address, timeout=5)
        try:
            connection.request(method, path, body, {"Content-Type": content_type} if content_type else {})
            answer = connection.getresponse()
            return answer.status, json.loads(answer.read())
        finally:
            connection.close()


@pytest.fixture(scope="module")
def signed() -> Iterator[Wire]:
    with cloud_of(alibaba_machine("gpu", does.idle(), AT - DAY), wall=lambda: WALL) as opened:
        yield Wire(opened, WALL)


COMMON = "SignatureMethod=HMAC-SHA1 SignatureVersion=1.0 "
IN_THE_DOCUMENT = (
    "Timestamp=2016-02-23T12:46:24Z Format=XML AccessKeyId=testid Action=DescribeRegions "
    "SignatureNonce=3ee8c1b8-83d3-44af-a94f-4e0ad82fd6cf Version=2014-05-26"
)
IN_THE_COMPOSERS_TEST = (
    "Format=JSON Timestamp=7e1c7d12-7551-4856-8abb-1938ccac6bcc AccessKeyId=access_key_id SignatureType= "
    "SignatureNonce=2018-12-04T04:03:12Z"
)
IN_THE_SIGNERS_TEST = (
    "Format=None Timestamp=2018-12-02T11:03:01Z RegionId=cn-hangzhou AccessKeyId=access_key_id Version=version "
    "Action=action_name SignatureNonce=d5e6e832-7f95-4f26-9e28-017f735721f8 SignatureType="
)


@pytest.mark.parametrize(
    ("parameters", "secret", "expected"),
    [
        (IN_THE_DOCUMENT, "testsecret", "OLeaidS1JvxuMvnyHOwuJ+uX5qY="),
        (IN_THE_COMPOSERS_TEST, "access_key_secret", "5AYPtZduFYvj3ETTIQlivGqL7Ic="),
        (IN_THE_SIGNERS_TEST, "access_key_secret", "AmdeJh1ZOW6PgwM3+ROhEnbKII4="),
    ],
    ids=["the API's document", "the SDK's composer", "the SDK's signer"],
)
def test_published_signatures_come_out(parameters: str, secret: str, expected: str) -> None:
    pairs = dict(pair.split("=", 1) for pair in (COMMON + parameters).split())
    assert signature(string_to_sign("GET", pairs), secret) == expected


def test_the_sdk_is_believed_by_query_and_by_form(cloud: Cloud) -> None:
    by_query = cloud.ask("DescribeInstances", MaxResults="10", InstanceName="gpu-*", method="GET")
    by_form = cloud.ask("DescribeInstances", MaxResults="10", InstanceName="gpu-*", in_body=True)
    assert by_query["Instances"] == by_form["Instances"]
    odd = cloud.ask("DescribeInstances", InstanceName="a b+c*~/=&é中")  # escaping, both ways
    assert odd["Instances"]["Instance"] == []


def test_a_wrong_secret_is_told_apart_from_an_unknown_key(cloud: Cloud) -> None:
    """The SDK blames the secret where the server's string to sign is its own; of a CommonRequest it cannot tell."""
    wrong = Keys(cloud.emulator.keys.key_id, "wrong")
    assert cloud.refusal("DescribeRegions", keys=wrong) == "SignatureDoesNotMatch"
    request = RpcRequest("Ecs", "2014-05-26", "DescribeRegions")
    request.set_endpoint(cloud.emulator.url)
    with pytest.raises(ServerException) as caught:
        cloud.client(wrong).do_action_with_exception(request)
    assert caught.value.get_error_code() == "InvalidAccessKeySecret"
    assert cloud.refusal("DescribeRegions", keys=Keys("LTAIunknown", "any")) == "InvalidAccessKeyId.NotFound"


def test_an_error_has_the_vendors_body(signed: Wire) -> None:
    status, body = signed.send(signed.parameters(Action="DescribeInstances", RegionId="cn-nowhere"))
    assert status == 404
    assert set(body) == {"RequestId", "HostId", "Code", "Message", "Recommend"}
    assert body["HostId"] == "ecs.cn-nowhere.aliyuncs.com"
    assert body["Code"] == "InvalidRegionId.NotFound"
    assert body["RequestId"] in body["Recommend"]


def test_a_request_is_believed_once(signed: Wire) -> None:
    sent = signed.parameters()
    assert signed.send(sent)[0] == 200
    status, body = signed.send(sent)
    assert (status, body["Code"]) == (400, "SignatureNonceUsed")


@pytest.mark.parametrize(
    ("stamp", "code"),
    [
        (WALL - timedelta(minutes=15), ""),
        (WALL + timedelta(minutes=15), ""),
        (WALL - timedelta(minutes=15, seconds=1), "InvalidTimeStamp.Expired"),
        (WALL + timedelta(minutes=15, seconds=1), "InvalidTimeStamp.Expired"),
    ],
)
def test_a_request_is_believed_within_a_quarter_of_an_hour(signed: Wire, stamp: datetime, code: str) -> None:
    _, body = signed.send(signed.parameters(Timestamp=stamp.strftime("%Y-%m-%dT%H:%M:%SZ")))
    assert body.get("Code", "") == code


@pytest.mark.parametrize(
    ("changed", "code"),
    [
        ({"Action": ""}, "MissingAction"),
        ({"Version": ""}, "MissingVersion"),
        ({"AccessKeyId": ""}, "MissingAccessKeyId"),
        ({"Timestamp": ""}, "MissingTimestamp"),
        ({"SignatureNonce": ""}, "MissingSignatureNonce"),
        ({"SignatureMethod": ""}, "MissingSignatureMethod"),
        ({"SignatureVersion": ""}, "MissingSignatureVersion"),
        ({"Version": "2014-05-27"}, "InvalidVersion"),
        ({"Timestamp": "2026-07-01 12:00:00"}, "InvalidTimeStamp.Format"),
        ({"SecurityToken": "of nobody"}, "InvalidSecurityToken.Malformed"),
        ({"SignatureMethod": "HMAC-SHA256"}, "Emulator.NotModelled"),
        ({"Format": "XML"}, "Emulator.NotModelled"),
        ({"Action": "RunInstances"}, "Emulator.NotModelled"),
    ],
)
def test_what_the_protocol_asks_for_is_asked_for(signed: Wire, changed: dict[str, str], code: str) -> None:
    assert signed.send({**signed.parameters(), **changed})[1]["Code"] == code


def test_a_changed_request_is_not_believed(signed: Wire) -> None:
    sent = signed.parameters()
    made = signature(string_to_sign("GET", sent), "of another")
    status, body = signed.send_raw(f"/?{urlencode({**sent, 'Signature': made})}")
    assert (status, body["Code"]) == (400, "SignatureDoesNotMatch")
    assert body["Message"].split(":")[1] == string_to_sign("GET", sent)  # what the SDK compares with its own


def test_only_one_path_one_kind_of_body_and_one_value_a_name(signed: Wire) -> None:
    assert signed.send(signed.parameters(), path="/other")[1]["Code"] == "InvalidAction.NotFound"
    body = signed.send_raw("/?Action=DescribeRegions", "POST", b"{}", "application/json")[1]
    assert body["Code"] == "Emulator.NotModelled"
    twice = [*signed.parameters().items(), ("RegionId", "cn-beijing")]
    assert signed.send(twice)[1]["Code"] == "InvalidParameter"


def test_callers_are_told_who_they_are(cloud: Cloud) -> None:
    user = cloud.ask("GetCallerIdentity")
    assert (user["IdentityType"], user["AccountId"]) == ("RAMUser", ALIBABA_ACCOUNT)
    assert user["Arn"] == f"acs:ram::{ALIBABA_ACCOUNT}:user/costguard"
    session = cloud.ask("GetCallerIdentity", keys=cloud.assume(MEMBER, ExternalId=EXTERNAL_ID))
    assert (session["IdentityType"], session["AccountId"]) == ("AssumedRoleUser", MEMBER)
    assert session["Arn"] == f"acs:ram::{MEMBER}:assumed-role/costguard/costguard"
    assert session["PrincipalId"] == f"{session['RoleId']}:costguard"


def test_a_session_sees_the_account_of_its_role(cloud: Cloud) -> None:
    mine = cloud.ask("DescribeInstances")["Instances"]["Instance"]
    theirs = cloud.ask("DescribeInstances", keys=cloud.assume(MEMBER, ExternalId=EXTERNAL_ID))
    assert {one["InstanceId"] for one in mine}.isdisjoint(
        {one["InstanceId"] for one in theirs["Instances"]["Instance"]}
    )
    assert cloud.emulator.calls[-1].account == MEMBER


@pytest.mark.parametrize(
    ("changed", "code"),
    [
        ({"RoleArn": "acs:ram::1:user/x"}, "InvalidParameter.RoleArn"),
        ({"RoleArn": f"acs:ram::{MEMBER}:role/another"}, "EntityNotExist.Role"),
        ({"RoleArn": "acs:ram::9999999999999999:role/costguard"}, "EntityNotExist.Role"),
        ({"RoleSessionName": "a b"}, "InvalidParameter.RoleSessionName"),
        ({"RoleSessionName": "x"}, "InvalidParameter.RoleSessionName"),
        ({"DurationSeconds": "899"}, "InvalidParameter.DurationSeconds"),
        ({"DurationSeconds": "3601"}, "InvalidParameter.DurationSeconds"),
        ({"ExternalId": "another"}, "NoPermission"),
        ({"ExternalId": ""}, "InvalidParameter.ExternalId"),
        ({"RoleArn": ""}, "MissingRoleArn"),
        ({"Policy": "{}"}, "Emulator.NotModelled"),
    ],
)
def test_a_role_is_assumed_only_as_it_allows(cloud: Cloud, changed: dict[str, str], code: str) -> None:
    asked = {"RoleArn": f"acs:ram::{MEMBER}:role/costguard", "RoleSessionName": "cg", "ExternalId": EXTERNAL_ID}
    assert cloud.refusal("AssumeRole", {**asked, **changed}) == code


def test_members_roles_trust_the_management_account_alone(cloud: Cloud) -> None:
    asked = {"RoleArn": f"acs:ram::{MEMBER}:role/costguard", "RoleSessionName": "cg", "ExternalId": EXTERNAL_ID}
    assert cloud.refusal("AssumeRole", asked, keys=cloud.emulator.keys_of(OTHER_MEMBER)) == "NoPermission"
    own_role = cloud.assume(ALIBABA_ACCOUNT, ExternalId=EXTERNAL_ID)  # as a function's role would
    assert cloud.refusal("AssumeRole", asked, keys=own_role) == ""


def test_a_token_belongs_to_its_key_and_dies_with_the_worlds_time() -> None:
    with cloud_of(alibaba_machine("gpu", does.idle(), AT - DAY)) as cloud:
        keys = cloud.assume(ALIBABA_ACCOUNT, DurationSeconds="900")
        assert cloud.refusal("GetCallerIdentity", keys=keys) == ""
        other = cloud.assume(ALIBABA_ACCOUNT)
        mixed = Keys(keys.key_id, keys.secret, other.token)
        assert cloud.refusal("GetCallerIdentity", keys=mixed) == "InvalidSecurityToken.MismatchWithAccessKey"
        assert cloud.refusal("GetCallerIdentity", keys=Keys(keys.key_id, keys.secret)) == "MissingSecurityToken"
        cloud.clock.advance(timedelta(seconds=899))
        assert cloud.refusal("GetCallerIdentity", keys=keys) == ""
        cloud.clock.advance(timedelta(seconds=1))
        assert cloud.refusal("GetCallerIdentity", keys=keys) == "InvalidSecurityToken.Expired"


def test_members_are_listed_without_the_account_that_leads_them(cloud: Cloud) -> None:
    pages = cloud.pages("ListAccounts", ("Accounts", "Account"), MaxResults="1")
    assert [[one["AccountId"] for one in page] for page in pages] == [[MEMBER], [OTHER_MEMBER]]
    first = cloud.ask("ListAccounts", MaxResults="1")
    assert "Tags" not in first["Accounts"]["Account"][0]
    assert "Tags" in cloud.ask("ListAccounts", IncludeTags="true")["Accounts"]["Account"][0]
    assert (
        cloud.ask("ListAccounts", PageNumber="2", PageSize="1")["Accounts"]["Account"][0]["AccountId"] == OTHER_MEMBER
    )
    assert "NextToken" not in cloud.ask("ListAccounts", MaxResults="1", NextToken=first["NextToken"])
    assert cloud.refusal("ListAccounts", keys=cloud.emulator.keys_of(MEMBER)) == "NoPermission.Operator"


@pytest.mark.parametrize("token", ["x", "!!", "WyJEZXNjcmliZURpc2tzIiwgMTBd", "中"])
def test_a_token_of_another_list_is_refused(cloud: Cloud, token: str) -> None:
    assert cloud.refusal("ListAccounts", NextToken=token) == "InvalidParameter.NextToken"


def test_what_an_account_may_do_holds_for_its_roles(cloud: Cloud) -> None:
    keys = cloud.assume(MEMBER, ExternalId=EXTERNAL_ID)
    cloud.emulator.allowed[MEMBER] = {"ecs:DescribeInstances"}
    try:
        assert cloud.refusal("DescribeInstances", keys=keys) == ""
        with pytest.raises(Refused, match="not authorized") as caught:
            cloud.ask("DescribeRegions", keys=keys)
        assert (caught.value.code, caught.value.status) == ("Forbidden.RAM", 403)
        assert cloud.refusal("ListAccounts", keys=keys) == "NoPermission"
        assert cloud.refusal("GetCallerIdentity", keys=keys) == ""  # needs no permission
    finally:
        del cloud.emulator.allowed[MEMBER]


def test_sixteen_threads_get_sixteen_clean_streams(cloud: Cloud) -> None:
    """One client and many threads, as a scan would: no signature, nonce or body gets mixed up."""
    ids = sorted(one["InstanceId"] for one in cloud.ask("DescribeInstances")["Instances"]["Instance"])

    def read(number: int) -> bool:
        wanted = [ids[number % 2]]
        answer = cloud.ask("DescribeInstances", InstanceIds=json.dumps(wanted))
        return [one["InstanceId"] for one in answer["Instances"]["Instance"]] == wanted

    with ThreadPoolExecutor(16) as pool:
        assert all(pool.map(read, range(160)))


def test_it_serves_alone_and_is_steered_from_any_language() -> None:
    with serve(external_id="mine") as emulator:
        address = urlsplit(emulator.url).netloc

        def steer(method: str, what: str, body: bytes = b"") -> dict[str, str]:
            connection = http.client.HTTPConnection(address, timeout=5)
            try:
                connection.request(method, f"/_sandbox/{what}", body)
                found = json.loads(connection.getresponse().read())
                assert isinstance(found, dict)
                return found
            finally:
                connection.close()

        before = datetime.fromisoformat(steer("GET", "state")["now"])
        after = datetime.fromisoformat(steer("POST", "advance", b'{"seconds": 86400}')["now"])
        assert after - before >= DAY
        steer("POST", "faults", b'{"kind": "refused", "action": "DescribeRegions", "code": "ServiceUnavailable"}')
        assert emulator.faults.take("DescribeRegions", "any", "any") is not None


def test_the_control_door_is_shut_unless_opened(signed: Wire) -> None:
    assert signed.send_raw("/_sandbox/state")[1]["Code"] == "InvalidAction.NotFound"
