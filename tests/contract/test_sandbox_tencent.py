"""The Tencent Cloud emulator through the vendor's own SDK: who calls, which machines there are, what changes them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime, timedelta, timezone
from typing import Any
from urllib.request import Request, urlopen

import pytest
from tencentcloud.common.common_client import CommonClient
from tencentcloud.common.credential import Credential
from tencentcloud.common.exception.tencent_cloud_sdk_exception import TencentCloudSDKException
from tencentcloud.common.profile.client_profile import ClientProfile
from tencentcloud.common.profile.http_profile import HttpProfile

from cloudstand.clock import MovedClock
from cloudstand.fleets import tencent_machine
from cloudstand.tencent.emulator import Call, TencentEmulator
from cloudstand.tencent.standalone import serve
from cloudstand.wire.door import WorldDoor
from cloudstand.wire.keys import Keys
from cloudstand.world import workload as does
from cloudstand.world.cloud import World
from cloudstand.world.fleet import Disk, MachineSpec
from cloudstand.world.kinds import Billing, Keeper, ManagedBy
from cloudstand.world.records import Operation

AT = datetime(2026, 3, 2, 9, tzinfo=timezone.utc)
DAY, HOUR, MINUTE = timedelta(days=1), timedelta(hours=1), timedelta(minutes=1)
LEADER, MEMBER = "100012345678", "100087654321"
VERSIONS = {
    "as": "2018-04-19",
    "billing": "2018-07-09",
    "cam": "2019-01-16",
    "cbs": "2017-03-12",
    "cloudaudit": "2019-03-19",
    "cvm": "2017-03-12",
    "kms": "2019-01-18",
    "monitor": "2018-07-24",
    "organization": "2021-03-31",
    "region": "2022-06-27",
    "ssm": "2019-09-23",
    "sts": "2018-08-13",
    "tag": "2018-08-13",
    "tke": "2018-05-25",
    "vpc": "2017-03-12",
}


@dataclass
class Cloud:
    """One emulator, and calls through the real SDK."""

    emulator: TencentEmulator
    world: World
    clock: MovedClock

    def client(self, service: str, region: str = "ap-guangzhou", keys: Keys | None = None, **profile: Any) -> Any:
        keys = keys or self.emulator.keys
        http = HttpProfile(protocol="http", endpoint=self.emulator.url.removeprefix("http://"), **profile)
        credential = Credential(keys.key_id, keys.secret, keys.token or None)
        chosen = ClientProfile(httpProfile=http, language="en-US")
        return CommonClient(service, VERSIONS[service], credential, region, chosen)

    def call(
        self,
        service: str,
        action: str,
        keys: Keys | None = None,
        region: str = "ap-guangzhou",
        /,
        **parameters: Any,
    ) -> dict[str, Any]:
        answer: dict[str, Any] = self.client(service, region, keys).call_json(action, parameters)
        return dict(answer["Response"])

    def refused(self, service: str, action: str, keys: Keys | None = None, /, **parameters: Any) -> str:
        """The code it is refused with."""
        with pytest.raises(TencentCloudSDKException) as caught:
            self.call(service, action, keys, **parameters)
        return str(caught.value.get_code())

    def machine(self, native_id: str) -> dict[str, Any]:
        found = self.call("cvm", "DescribeInstances", InstanceIds=[native_id])["InstanceSet"]
        return dict(found[0])

    def pass_time(self, step: timedelta) -> None:
        self.clock.advance(step)
        self.world.tick(self.clock.now())


@contextmanager
def cloud(*fleet: MachineSpec, **more: Any) -> Iterator[Cloud]:
    clock = MovedClock(AT)
    world = World(fleet, AT)
    with TencentEmulator(WorldDoor(world, clock), **more) as emulator:
        yield Cloud(emulator, world, clock)


def machine(name: str = "trainer", instance_type: str = "GN7.2XLARGE32", **more: Any) -> MachineSpec:
    return tencent_machine(name, more.pop("does", does.idle()), AT - 3 * DAY, instance_type, **more)


def cpu_machine(name: str, **more: Any) -> MachineSpec:
    return machine(name, "S5.LARGE8", **more)


# --- who calls


def test_the_keys_of_an_account_are_that_account() -> None:
    with cloud(machine(), machine("other", account=MEMBER)) as here:
        me = here.call("sts", "GetCallerIdentity", None, "")
        assert (me["AccountId"], me["UserId"], me["Type"]) == (LEADER, LEADER, "CAMUser")
        assert here.call("sts", "GetCallerIdentity", here.emulator.keys_of(MEMBER))["AccountId"] == MEMBER
        assert here.emulator.calls[0] == Call("sts", "GetCallerIdentity", LEADER, "")


def assumed(here: Cloud, account: str = MEMBER, keys: Keys | None = None, **more: Any) -> Keys:
    arn = f"qcs::cam::uin/{account}:roleName/costguard"
    given = here.call("sts", "AssumeRole", keys, RoleArn=arn, RoleSessionName="night-run", **more)["Credentials"]
    return Keys(given["TmpSecretId"], given["TmpSecretKey"], given["Token"])


def test_a_role_is_assumed_with_its_external_id_and_from_another_role() -> None:
    with cloud(machine(), machine("other", account=MEMBER), external_id="a-secret") as here:
        keys = assumed(here, ExternalId="a-secret")
        me = here.call("sts", "GetCallerIdentity", keys)
        assert (me["AccountId"], me["PrincipalId"], me["Type"]) == (MEMBER, LEADER, "CAMRole")
        assert me["UserId"].endswith(":night-run")
        chained = assumed(here, LEADER, keys, ExternalId="a-secret")
        assert here.call("sts", "GetCallerIdentity", chained)["AccountId"] == LEADER


def test_a_role_is_refused_in_the_words_of_sts() -> None:
    with cloud(machine(), external_id="a-secret") as here:

        def refusal(arn: str, **more: Any) -> str:
            return here.refused("sts", "AssumeRole", **{"RoleArn": arn, "RoleSessionName": "x1", **more})

        role = f"qcs::cam::uin/{LEADER}:roleName/"
        assert refusal(f"{role}costguard") == "UnauthorizedOperation"
        assert refusal(f"{role}costguard", ExternalId="another") == "UnauthorizedOperation"
        assert refusal(f"{role}nobody", ExternalId="a-secret") == "ResourceNotFound.RoleNotFound"
        assert refusal("qcs::cam::uin/1:roleName/costguard") == "InvalidParameter.AccountNotAvaliable"
        assert refusal("costguard") == "InvalidParameter.ParamError"
        assert refusal(f"{role}costguard", DurationSeconds=43_201) == "InvalidParameter.OverTimeError"
        assert refusal(f"{role}costguard", RoleSessionName="with space") == "InvalidParameter.ParamError"


def test_a_temporary_key_needs_its_token_and_ends() -> None:
    with cloud(machine(), machine("other", account=MEMBER)) as here:
        keys = assumed(here, DurationSeconds=3_600)
        assert here.call("cvm", "DescribeInstances", keys)["TotalCount"] == 1
        assert here.refused("cvm", "DescribeInstances", replace(keys, token="")) == "AuthFailure.TokenFailure"
        assert here.refused("cvm", "DescribeInstances", replace(keys, token="x")) == "AuthFailure.TokenFailure"
        lasting = replace(here.emulator.keys, token=keys.token)
        assert here.refused("cvm", "DescribeInstances", lasting) == "AuthFailure.TokenFailure"
        here.pass_time(HOUR)
        assert here.refused("cvm", "DescribeInstances", keys) == "AuthFailure.TokenFailure"


def test_a_session_tells_when_it_ends() -> None:
    with cloud(machine()) as here:
        arn = f"qcs::cam::uin/{LEADER}:roleName/costguard"
        answer = here.call("sts", "AssumeRole", RoleArn=arn, RoleSessionName="night-run")
        assert answer["Expiration"] == "2026-03-02T11:00:00Z"
        assert answer["ExpiredTime"] == int((AT + 2 * HOUR).timestamp())


def test_the_organisation_lists_members_by_whole_pages_and_not_its_leader() -> None:
    fleet = [machine(str(place), account=f"1000000000{place:02d}") for place in range(5)]
    with cloud(*fleet) as here:
        first = here.call("organization", "DescribeOrganizationMembers", None, "", Offset=0, Limit=3)
        assert [item["MemberUin"] for item in first["Items"]] == [100_000_000_001, 100_000_000_002, 100_000_000_003]
        assert first["Total"] == 4
        second = here.call("organization", "DescribeOrganizationMembers", Offset=3, Limit=3)
        assert [item["MemberUin"] for item in second["Items"]] == [100_000_000_004]
        ask = "organization", "DescribeOrganizationMembers"
        assert here.refused(*ask, Offset=2, Limit=3) == "InvalidParameter"
        assert here.refused(*ask, Offset=0, Limit=51) == "InvalidParameterValue"
        assert here.refused(*ask, Limit=3) == "MissingParameter"
        member = here.emulator.keys_of("100000000001")
        assert here.refused(*ask, member, Offset=0, Limit=3).startswith("InvalidParameter")
        about = here.call("organization", "DescribeOrganization", member)
        assert (about["HostUin"], about["IsManager"]) == (100_000_000_000, False)


def test_regions_are_listed_with_those_that_cannot_be_had() -> None:
    with cloud(machine(region="ap-somewhere")) as here:
        states = {
            each["Region"]: each["RegionState"]
            for each in here.call("region", "DescribeRegions", None, "", Product="cvm", Scene=1)["RegionSet"]
        }
        assert states["ap-guangzhou"] == states["ap-somewhere"] == "AVAILABLE"
        assert states["ap-mumbai"] == "UNAVAILABLE"
        assert here.call("cvm", "DescribeRegions")["TotalCount"] == len(states)
        with pytest.raises(TencentCloudSDKException, match="UnsupportedRegion"):
            here.call("cvm", "DescribeInstances", None, "ap-mumbai")
        with pytest.raises(TencentCloudSDKException, match="MissingParameter"):
            here.call("cvm", "DescribeInstances", None, "")
        zones = here.call("cvm", "DescribeZones", None, "ap-somewhere")["ZoneSet"]
        assert "ap-somewhere-6" in {zone["Zone"] for zone in zones}


def test_who_may_not_is_told_so_by_allow_list_and_by_the_world() -> None:
    with cloud(machine(), machine("other", account=MEMBER)) as here:
        member = here.emulator.keys_of(MEMBER)
        here.emulator.allowed[MEMBER] = {"cvm:DescribeInstances"}
        assert here.call("cvm", "DescribeInstances", member)["TotalCount"] == 1
        assert here.refused("cbs", "DescribeDisks", member) == "UnauthorizedOperation"
        assert here.refused("tke", "DescribeClusters", member) == "UnauthorizedOperation.CamNoAuth"
        ask = {"Namespace": "QCE/CVM"}
        assert here.refused("monitor", "DescribeBaseMetrics", member, **ask) == "AuthFailure.UnauthorizedOperation"
        assert here.call("cbs", "DescribeDisks")["TotalCount"] == 1
        here.world.deny("tencent", LEADER, Operation.LIST)
        assert here.refused("cvm", "DescribeInstances") == "UnauthorizedOperation"
        here.world.allow("tencent", LEADER, Operation.LIST)
        assert here.call("cvm", "DescribeInstances")["TotalCount"] == 1


# --- which machines there are


def test_a_machine_is_described_with_times_in_utc_and_tags_in_both_spellings() -> None:
    with cloud(machine(tags={"team": "nlp"}, kept_address=True)) as here:
        found = here.call("cvm", "DescribeInstances")["InstanceSet"][0]
        assert found["CreatedTime"] == "2026-02-27T09:00:00Z"
        assert found["ExpiredTime"] is found["RenewFlag"] is None
        assert found["Tags"] == [{"Key": "team", "Value": "nlp", "tagKey": "team", "tagValue": "nlp"}]
        assert (found["InstanceState"], found["StopChargingMode"]) == ("RUNNING", "NOT_APPLICABLE")
        assert (found["LatestOperation"], found["LatestOperationState"]) == ("RunInstances", "SUCCESS")
        assert len(found["PublicIpAddresses"]) == 1
        assert found["InstanceChargeType"] == "POSTPAID_BY_HOUR"
        assert found["Placement"]["Zone"] == "ap-guangzhou-6"


def test_cards_are_told_whole_sliced_or_not_at_all() -> None:
    fleet = machine("whole"), machine("slice", "GN7.LARGE20"), cpu_machine("none")
    with cloud(*fleet) as here:
        found = here.call("cvm", "DescribeInstances")["InstanceSet"]
        by_name = {each["InstanceName"]: each for each in found}
        assert by_name["whole"]["GPUInfo"]["GPUCount"] == 1
        assert by_name["slice"]["GPUInfo"]["GPUCount"] == 0.25
        assert "GPUInfo" not in by_name["none"]


def test_a_prepaid_machine_tells_when_it_ends() -> None:
    known = machine("known", billing=Billing.PREPAID, prepaid_until=AT + DAY)
    over = machine("over", billing=Billing.PREPAID, prepaid_until=AT - DAY)
    renewed = machine("renewed", billing=Billing.PREPAID)
    with cloud(known, over, renewed) as here:
        found = {each["InstanceName"]: each for each in here.call("cvm", "DescribeInstances")["InstanceSet"]}
        assert found["known"]["ExpiredTime"] == "2026-03-03T09:00:00Z"
        assert (found["known"]["RestrictState"], found["over"]["RestrictState"]) == ("NORMAL", "EXPIRED")
        assert found["renewed"]["ExpiredTime"] > "2026-03-02T09:00:00Z"


def test_pages_end_by_the_total_and_one_past_the_end_is_empty() -> None:
    with cloud(*(machine(f"m{place}") for place in range(25))) as here:
        ask = "cvm", "DescribeInstances"
        assert len(here.call(*ask)["InstanceSet"]) == 20
        last = here.call(*ask, Offset=20, Limit=100)
        assert (len(last["InstanceSet"]), last["TotalCount"]) == (5, 25)
        assert here.call(*ask, Offset=100)["InstanceSet"] == []
        assert here.refused(*ask, Limit=101) == "InvalidParameterValue.LimitExceeded"
        assert here.refused(*ask, InstanceIds=["ins-12345678"] * 101) == "InvalidParameterValue.LimitExceeded"
        assert here.call(*ask, InstanceIds=["ins-12345678"])["TotalCount"] == 0  # unknown, and no error
        assert here.call(*ask, InstanceIds=[])["TotalCount"] == 25  # an empty list means all


def test_filters_are_anded_their_values_ored_and_unknown_ones_refused() -> None:
    tagged = machine("a", tags={"team": "nlp", "stage": "dev"})
    with cloud(tagged, machine("b", tags={"team": "vision"}), machine("c", zone="ap-guangzhou-7")) as here:

        def names(*filters: tuple[str, list[str]]) -> list[str]:
            wanted = [{"Name": name, "Values": values} for name, values in filters]
            found = here.call("cvm", "DescribeInstances", Filters=wanted)["InstanceSet"]
            return [each["InstanceName"] for each in found]

        assert names(("tag:team", ["nlp", "vision"])) == ["a", "b"]
        assert names(("tag:team", ["nlp", "vision"]), ("tag-key", ["stage"])) == ["a"]
        assert names(("zone", ["ap-guangzhou-7"])) == ["c"]
        assert names(("instance-state", ["STOPPED"])) == []
        assert names(("creation-start-time", ["2026-02-27 17:00:01"])) == []
        assert names(("creation-end-time", ["2026-02-27 17:00:01"])) == ["a", "b", "c"]  # written in UTC+8
        ask = "cvm", "DescribeInstances"
        one = {"Name": "zone", "Values": ["x"]}
        assert here.refused(*ask, Filters=[{"Name": "gpu", "Values": ["1"]}]) == "InvalidFilter"
        assert here.refused(*ask, Filters=[one] * 11) == "InvalidFilterValue.LimitExceeded"
        too_many = {"Name": "zone", "Values": list("abcdef")}
        assert here.refused(*ask, Filters=[too_many]) == "InvalidFilterValue.LimitExceeded"
        both = {"InstanceIds": [tagged.native_id], "Filters": [one]}
        assert here.refused(*ask, **both) == "InvalidParameter"


def test_groups_and_clusters_list_their_machines() -> None:
    group = machine("in-group", managed_by=ManagedBy(Keeper.AUTOSCALING, "asg-2umy5jbd"))
    node = machine("node", managed_by=ManagedBy(Keeper.KUBERNETES, "ml-prod"))
    with cloud(machine(), group, node) as here:
        members = here.call("as", "DescribeAutoScalingInstances")["AutoScalingInstanceSet"]
        assert [(each["InstanceId"], each["AutoScalingGroupId"]) for each in members] == [
            (group.native_id, "asg-2umy5jbd")
        ]
        clusters = here.call("tke", "DescribeClusters")["Clusters"]
        assert [(each["ClusterName"], each["ClusterNodeNum"]) for each in clusters] == [("ml-prod", 1)]
        named = clusters[0]["ClusterId"]
        nodes = here.call("tke", "DescribeClusterInstances", ClusterId=named)["InstanceSet"]
        assert [each["InstanceId"] for each in nodes] == [node.native_id]
        masters = here.call("tke", "DescribeClusterInstances", ClusterId=named, InstanceRole="MASTER_ETCD")
        assert masters["TotalCount"] == 0
        ask = "tke", "DescribeClusterInstances"
        assert here.refused(*ask, ClusterId="cls-nothing") == "InvalidParameter.ClusterNotFound"


# --- what changes them


def test_a_stop_is_seen_at_once_as_successful_while_the_machine_still_stops() -> None:
    with cloud(machine(public_ip="203.0.113.7")) as here:
        native_id = here.world.fleet[0].native_id
        before = here.machine(native_id)["LatestOperationRequestId"]
        answer = here.call("cvm", "StopInstances", InstanceIds=[native_id], StoppedMode="STOP_CHARGING")
        seen = here.machine(native_id)
        assert (seen["InstanceState"], seen["LatestOperationState"]) == ("STOPPING", "SUCCESS")
        assert (seen["LatestOperation"], seen["StopChargingMode"]) == ("StopInstances", "NOT_APPLICABLE")
        assert seen["LatestOperationRequestId"] == answer["RequestId"] != before
        assert seen["PublicIpAddresses"] is None
        here.pass_time(2 * MINUTE)
        seen = here.machine(native_id)
        assert (seen["InstanceState"], seen["StopChargingMode"]) == ("STOPPED", "STOP_CHARGING")
        assert seen["LatestOperationRequestId"] == answer["RequestId"]


def test_a_stop_keeps_charging_and_the_address_unless_asked_otherwise() -> None:
    with cloud(machine(public_ip="203.0.113.7")) as here:
        native_id = here.world.fleet[0].native_id
        here.call("cvm", "StopInstances", InstanceIds=[native_id])
        here.pass_time(2 * MINUTE)
        seen = here.machine(native_id)
        assert (seen["InstanceState"], seen["StopChargingMode"]) == ("STOPPED", "KEEP_CHARGING")
        assert seen["PublicIpAddresses"] == ["203.0.113.7"]
        assert here.world.machines[native_id].billed_while_stopped
        here.call("cvm", "StartInstances", InstanceIds=[native_id])
        here.pass_time(2 * MINUTE)
        here.call("cvm", "StopInstances", InstanceIds=[native_id], StoppedMode="STOP_CHARGING")
        here.pass_time(2 * MINUTE)
        assert here.machine(native_id)["StopChargingMode"] == "STOP_CHARGING"


def test_stopping_without_charges_is_ignored_or_refused_where_it_cannot_be_had() -> None:
    kept = machine("kept", stop_keeps_billing=True)
    prepaid = machine("prepaid", billing=Billing.PREPAID)
    refusing = machine("refusing", "GN10Xp.2XLARGE40")
    with cloud(kept, prepaid, refusing, refuses_stop_charging=frozenset({"GN10Xp.2XLARGE40"})) as here:
        for spec, mode in ((kept, "KEEP_CHARGING"), (prepaid, "NOT_APPLICABLE")):
            here.call("cvm", "StopInstances", InstanceIds=[spec.native_id], StoppedMode="STOP_CHARGING")
            here.pass_time(2 * MINUTE)
            assert here.machine(spec.native_id)["StopChargingMode"] == mode
        ask = {"InstanceIds": [refusing.native_id], "StoppedMode": "STOP_CHARGING"}
        code = "UnsupportedOperation.StoppedModeStopCharging"
        assert here.refused("cvm", "StopInstances", **ask) == code
        assert here.machine(refusing.native_id)["InstanceState"] == "RUNNING"


def test_every_operation_is_the_latest_with_the_request_that_asked_for_it() -> None:
    with cloud(machine()) as here:
        native_id = here.world.fleet[0].native_id
        ids = {"InstanceIds": [native_id]}
        requests = []
        for action, more, state in (
            ("ModifyInstancesAttribute", {"InstanceName": "new"}, "SUCCESS"),
            ("RebootInstances", {"StopType": "SOFT"}, "SUCCESS"),
            ("StopInstances", {}, "SUCCESS"),
            ("StartInstances", {}, "OPERATING"),
            ("TerminateInstances", {}, "OPERATING"),
        ):
            requests.append(here.call("cvm", action, **ids, **more)["RequestId"])
            seen = here.machine(native_id)
            assert (seen["LatestOperation"], seen["LatestOperationState"]) == (action, state)
            assert seen["LatestOperationRequestId"] == requests[-1]
            if action != "TerminateInstances":
                here.pass_time(2 * MINUTE)
        assert len(set(requests)) == 5


def test_one_request_that_changes_several_is_the_latest_of_each() -> None:
    with cloud(machine("a"), machine("b"), machine("c")) as here:
        ids = [spec.native_id for spec in here.world.fleet]
        request_id = here.call("cvm", "StopInstances", InstanceIds=ids)["RequestId"]
        assert {here.machine(each)["LatestOperationRequestId"] for each in ids} == {request_id}


def test_what_is_not_in_the_right_state_is_refused_by_its_state_and_the_whole_call_with_it() -> None:
    with cloud(machine("a"), machine("b")) as here:
        first, second = (spec.native_id for spec in here.world.fleet)
        assert here.refused("cvm", "StartInstances", InstanceIds=[first]) == "UnsupportedOperation.InstanceStateRunning"
        here.call("cvm", "StopInstances", InstanceIds=[first])
        stopping = "UnsupportedOperation.InstanceStateStopping"
        assert here.refused("cvm", "StopInstances", InstanceIds=[first]) == stopping
        assert here.refused("cvm", "StartInstances", InstanceIds=[first]) == stopping
        assert here.refused("cvm", "StopInstances", InstanceIds=[second, first]) == stopping
        assert here.machine(second)["InstanceState"] == "RUNNING"
        here.pass_time(2 * MINUTE)
        stopped = "UnsupportedOperation.InstanceStateStopped"
        assert here.refused("cvm", "StopInstances", InstanceIds=[first]) == stopped
        assert here.refused("cvm", "StopInstances", InstanceIds=["ins-00000000"]) == "InvalidInstanceId.NotFound"
        assert here.refused("cvm", "StopInstances", InstanceIds=["i-1"]) == "InvalidInstanceId.Malformed"
        here.call("cvm", "StartInstances", InstanceIds=[first])
        assert here.machine(first)["InstanceState"] == "STARTING"
        starting = "UnsupportedOperation.InstanceStateStarting"
        assert here.refused("cvm", "StopInstances", InstanceIds=[first]) == starting


def test_another_accounts_machine_and_another_regions_are_not_there() -> None:
    with cloud(machine(), machine("far", region="ap-shanghai"), machine("other", account=MEMBER)) as here:
        for spec in here.world.fleet[1:]:
            assert here.refused("cvm", "StopInstances", InstanceIds=[spec.native_id]) == "InvalidInstanceId.NotFound"
            assert here.call("cvm", "DescribeInstances", InstanceIds=[spec.native_id])["TotalCount"] == 0


def test_a_machine_may_not_start_again_when_its_type_is_sold_out() -> None:
    with cloud(machine(no_capacity=True)) as here:
        native_id = here.world.fleet[0].native_id
        here.call("cvm", "StopInstances", InstanceIds=[native_id], StoppedMode="STOP_CHARGING")
        here.pass_time(2 * MINUTE)
        code = "ResourcesSoldOut.SpecifiedInstanceType"
        assert here.refused("cvm", "StartInstances", InstanceIds=[native_id]) == code


def test_terminating_by_the_hour_destroys_at_once_and_leaves_what_is_kept() -> None:
    data = Disk(500, "vdb", "CLOUD_SSD", deleted_with_instance=False)
    with cloud(machine(disks=(Disk(100, "vda", "CLOUD_PREMIUM"), data), kept_address=True)) as here:
        native_id = here.world.fleet[0].native_id
        here.call("cvm", "TerminateInstances", InstanceIds=[native_id])
        assert here.machine(native_id)["InstanceState"] == "TERMINATING"
        here.pass_time(2 * MINUTE)
        assert here.call("cvm", "DescribeInstances")["TotalCount"] == 0
        disks = here.call("cbs", "DescribeDisks")["DiskSet"]
        assert [(each["DiskSize"], each["DiskState"], each["InstanceId"]) for each in disks] == [
            (500, "UNATTACHED", "")
        ]
        addresses = here.call("vpc", "DescribeAddresses")["AddressSet"]
        # bound to nothing, and still it tells the machine it was bound to
        assert [(each["AddressStatus"], each["InstanceId"]) for each in addresses] == [("UNBIND", native_id)]


def test_a_prepaid_machine_goes_to_the_recycle_bin_and_a_second_call_destroys_it() -> None:
    with cloud(machine(billing=Billing.PREPAID)) as here:
        native_id = here.world.fleet[0].native_id
        here.call("cvm", "TerminateInstances", InstanceIds=[native_id])
        here.pass_time(2 * MINUTE)
        seen = here.machine(native_id)
        assert (seen["InstanceState"], seen["LatestOperationState"]) == ("SHUTDOWN", "SUCCESS")
        assert seen["IsolatedSource"] == "MANMADE"
        here.call("cvm", "TerminateInstances", InstanceIds=[native_id])
        assert here.call("cvm", "DescribeInstances")["TotalCount"] == 0


def test_some_machines_by_the_hour_have_a_recycle_bin_too() -> None:
    with cloud(machine(recycles=True)) as here:
        native_id = here.world.fleet[0].native_id
        here.call("cvm", "TerminateInstances", InstanceIds=[native_id])
        here.pass_time(2 * MINUTE)
        assert here.machine(native_id)["InstanceState"] == "SHUTDOWN"
        here.pass_time(3 * HOUR)
        assert here.call("cvm", "DescribeInstances")["TotalCount"] == 0


def test_a_terminate_is_refused_for_protection_for_mixed_charges_and_without_refunds() -> None:
    hourly, prepaid = machine("hourly"), machine("prepaid", billing=Billing.PREPAID)
    with cloud(hourly, prepaid) as here:
        ask = "cvm", "TerminateInstances"
        here.call("cvm", "ModifyInstancesAttribute", InstanceIds=[hourly.native_id], DisableApiTermination=True)
        assert here.machine(hourly.native_id)["DisableApiTermination"] is True
        protected = "UnsupportedOperation.InstancesProtected"
        assert here.refused(*ask, InstanceIds=[hourly.native_id]) == protected
        here.call("cvm", "ModifyInstancesAttribute", InstanceIds=[hourly.native_id], DisableApiTermination=False)
        mixed = "UnsupportedOperation.InstanceMixedPricingModel"
        assert here.refused(*ask, InstanceIds=[hourly.native_id, prepaid.native_id]) == mixed
        here.world.refund_quota("tencent", LEADER, 0)
        assert here.refused(*ask, InstanceIds=[prepaid.native_id]) == "LimitExceeded.UserReturnQuota"
        assert here.call("cvm", "DescribeInstances")["TotalCount"] == 2


def test_exactly_one_attribute_is_changed_by_a_call() -> None:
    with cloud(machine()) as here:
        ids = {"InstanceIds": [here.world.fleet[0].native_id]}
        ask = "cvm", "ModifyInstancesAttribute"
        assert here.refused(*ask, **ids) == "MissingParameter.AtLeastOne"
        both = {"InstanceName": "x", "DisableApiTermination": True}
        assert here.refused(*ask, **ids, **both) == "InvalidParameter.AtMostOne"


def test_a_world_changed_by_its_owner_shows_on_the_wire() -> None:
    with cloud(machine()) as here:
        native_id = here.world.fleet[0].native_id
        here.world.stop(native_id, "owner")
        seen = here.machine(native_id)
        assert (seen["InstanceState"], seen["LatestOperation"]) == ("STOPPING", "StopInstances")
        here.world.tag(native_id, "team", "nlp", "owner")
        assert here.machine(native_id)["Tags"][0]["Value"] == "nlp"


def test_a_machine_without_a_quoted_price_and_of_an_unknown_type_is_still_shown() -> None:
    odd = replace(machine("odd"), instance_type="GN99.7XLARGE123", hourly=None)
    with cloud(odd) as here:
        seen = here.machine(odd.native_id)
        assert (seen["InstanceType"], seen["Memory"], seen["GPUInfo"]["GPUCount"]) == ("GN99.7XLARGE123", 123, 1)


def test_it_starts_alone_with_one_of_everything_and_a_clock_that_can_be_moved() -> None:
    with serve() as emulator:
        alone = Cloud(emulator, World((), AT), MovedClock(AT))
        mine = alone.call("cvm", "DescribeInstances", Limit=100)["InstanceSet"]
        theirs = alone.call("cvm", "DescribeInstances", emulator.keys_of(MEMBER), "ap-shanghai")["InstanceSet"]
        assert len({each["InstanceId"] for each in (*mine, *theirs)}) == 16
        assert {each["InstanceChargeType"] for each in mine} == {"POSTPAID_BY_HOUR", "PREPAID", "SPOTPAID"}
        idle = next(each for each in mine if each["InstanceName"] == "idle-notebook")
        alone.call("cvm", "StopInstances", InstanceIds=[idle["InstanceId"]], StoppedMode="STOP_CHARGING")
        order = Request(f"{emulator.url}/_sandbox/advance", b'{"seconds": 120}')  # noqa: S310 - loopback
        with urlopen(order, timeout=5) as answer:  # noqa: S310 - loopback
            assert answer.status == 200
        assert alone.machine(idle["InstanceId"])["InstanceState"] == "STOPPED"


def test_a_fleet_without_this_cloud_is_no_emulator() -> None:
    with pytest.raises(ValueError, match="tencent-intl"), cloud(machine(), cloud="tencent-intl"):
        pass
