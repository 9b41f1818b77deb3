"""Tencent Cloud as a deployment meets it: the sandbox's own, a database, a bucket, SCF and CLS, at one address."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

from tests.deploy_pages.bucket import Bucket
from tests.deploy_pages.database import Database
from tests.deploy_pages.deployed import Deployed, Made
from tests.deploy_pages.functions import Functions
from tests.host_runtimes import RoleKey, Told
from typing_extensions import Self

from cloudstand.clock import RunningClock
from cloudstand.fleets import GUANGZHOU, tencent_machine
from cloudstand.slack.stand_in import SlackStandIn
from cloudstand.tencent.core.credentials import Accounts, Identity
from cloudstand.tencent.core.errors import ApiError
from cloudstand.tencent.core.objects import cos_stand_in
from cloudstand.tencent.core.protocol import JSON, Heading, body_of, enveloped, heading_of
from cloudstand.tencent.emulator import TencentEmulator
from cloudstand.wire.authority import Authority, Wish
from cloudstand.wire.door import WorldDoor
from cloudstand.wire.keys import Keys
from cloudstand.wire.messages import Answer, Request
from cloudstand.wire.server import WireServer
from cloudstand.world import workload as does
from cloudstand.world.cloud import World
from cloudstand.world.fleet import MachineSpec

HUB, MEMBER, APP_ID = "100000000001", "100000000002", "1250000000"
"""The page's accounts; the first is the one that Terraform's stand-in deploys into."""
EXTERNAL_ID, MEMBER_ROLE = "costguard-hub", "costguard-member-idle_gpu"
MODULE = "infra/tencent"
_DAY = timedelta(days=1)


class TencentCloud:
    """Serves until closed; use it as a context manager. `tree` is where Terraform keeps its state."""

    def __init__(self, tree: Path, folder: Path, database: Database) -> None:
        self.deployed = Deployed(tree / MODULE)
        self.member = Deployed(tree / MODULE / "member")
        self._database = database
        self._open = ExitStack()
        self._clock = clock = RunningClock()
        door = WorldDoor(World(fleet(clock.now()), clock.now()), clock)
        self.emulator = self._open.enter_context(TencentEmulator(door, external_id=EXTERNAL_ID, role=MEMBER_ROLE))
        self.slack = self._open.enter_context(SlackStandIn(clock))
        self._people = Accounts((HUB, MEMBER), role=MEMBER_ROLE, external_id=EXTERNAL_ID)
        name = f"costguard-{GUANGZHOU}-{APP_ID}"
        resource = f"qcs::cos:{GUANGZHOU}:uid/{APP_ID}:"
        self.bucket = Bucket(
            lambda keys: cos_stand_in(name, keys, clock.now),
            lambda method, path: Wish((f"name/cos:{method.capitalize()}Object",), (resource + path,)),
            lambda: bool(self.deployed.all("tencentcloud_cos_bucket")),
        )
        self._open.callback(self.bucket.close)
        self.bucket.admit(self.emulator.keys)
        self._server = self._open.enter_context(WireServer(self._answer))
        more = {"COSTGUARD_TENCENT_ENDPOINT": self.url, "COSTGUARD_SLACK_URL": self.slack.base_url}
        self.functions = Functions(folder, more)
        self._begun = 0

    @property
    def url(self) -> str:
        """Where every product answers."""
        return self._server.url

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._open.close()

    def keys_of(self, account: str) -> Keys:
        """A person's key there."""
        return self.emulator.keys_of(account)

    def fire_timers(self, *only: str) -> list[tuple[str, Told]]:
        """Every timer that Terraform made starts its function once: what came of each, by name."""
        found = []
        for timer in self.deployed.all("tencentcloud_scf_trigger"):
            if timer["type"] == "timer" and timer["function_name"] in (only or (timer["function_name"],)):
                at = datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
                event = {"Type": "Timer", "TriggerName": timer["trigger_name"], "Time": at, "Message": ""}
                function = self.deployed.one("tencentcloud_scf_function", name=timer["function_name"])
                found.append((function["name"], self.invoke(function, json.dumps(event).encode())[1]))
        return found

    def invoke(self, function: Made, event: bytes) -> tuple[str, Told, float]:
        """Run a function of the state as its role: the request's id, what came of it, and the seconds."""
        name = function["name"]
        bundle = self.deployed.one(
            "tencentcloud_cos_bucket_object", bucket=function["cos_bucket_name"], key=function["cos_object_name"]
        )
        keys = self._session(function["role"])
        return self.functions.run(
            "scf",
            function,
            (self.deployed.module / bundle["source"]).resolve(),
            event,
            name=name,
            environ=function["environment"] or {},
            runtime=function["runtime"],
            role=RoleKey(keys.key_id, keys.secret, keys.token),
            about={
                "TENCENTCLOUD_REGION": GUANGZHOU,
                "TENCENTCLOUD_APPID": APP_ID,
                "TENCENTCLOUD_UIN": HUB,
                "SCF_FUNCTIONNAME": name,
            },
        )

    def _session(self, role: str) -> Keys:
        """Keys of the function's role, which may do what is attached to it and nothing else."""
        made = self.deployed.one("tencentcloud_cam_role", name=role)
        assert json.loads(made["document"])["statement"][0]["principal"] == {"service": ["scf.qcloud.com"]}
        authority = Authority(_documents(self.deployed, made["id"]))
        self.emulator.authorities[HUB, role] = authority
        for theirs in self.member.all("tencentcloud_cam_role"):
            if theirs["name"] == MEMBER_ROLE:
                self.emulator.authorities[MEMBER, MEMBER_ROLE] = Authority(_documents(self.member, theirs["id"]))
        self._begun += 1
        keys = Keys(f"AKID{self._begun:032d}", f"{self._begun:032d}", f"{self._begun:096d}")
        identity = Identity(HUB, keys, role, "scf", HUB, self._clock.now() + timedelta(hours=1))
        # SCF hands out sessions of any role; over the wire there is one
        self.emulator._accounts._identities[keys.key_id] = identity  # noqa: SLF001
        self.bucket.admit(keys, authority)
        return keys

    def _answer(self, request: Request) -> Answer:
        """The cloud's one address: what has a path is a bucket's."""
        if request.path not in {"", "/"}:
            return self.bucket.answer(request)
        action = self._actions.get(request.headers.get("x-tc-action", ""))
        if action is None:
            return self.emulator.server.answer(request)
        request_id = "5d1f1a6b-0000-4000-8000-000000000001"
        try:
            heading = heading_of(request, self._people, datetime.now(timezone.utc), self._clock.now())
            fields = action(heading, body_of(request))
        except ApiError as err:
            fields = {"Error": err.told(request.headers.get("x-tc-language", "zh-CN"))}
        except LookupError as err:
            fields = {"Error": {"Code": "ResourceNotFound", "Message": str(err)}}
        return Answer(200, enveloped(request_id, fields), JSON)

    def _reset_password(self, _: Heading, given: Mapping[str, Any]) -> dict[str, Any]:
        instance = self._instance(given)
        if not self._database.has_account(given["UserName"]):
            raise ApiError("ResourceNotFound.AccountNotExist", "there is no such account.", "账号不存在。")
        self._database.keep_account(given["UserName"], given["Password"])
        if self._database.opens("root", instance["root_password"]):
            raise ApiError("FailedOperation", "the password that Terraform's state holds opens it still", "操作失败。")
        return {}

    def _create_account(self, _: Heading, given: Mapping[str, Any]) -> dict[str, Any]:
        self._instance(given)
        if given["Type"] not in {"normal", "tencentDBSuper"} or self._database.has_account(given["UserName"]):
            raise ApiError("InvalidParameter", "another type, or it is there already.", "参数错误。")
        self._database.keep_account(given["UserName"], given["Password"])
        return {}

    def _create_database(self, _: Heading, given: Mapping[str, Any]) -> dict[str, Any]:
        self._instance(given)
        if not self._database.has_account(given["DatabaseOwner"]) or given.get("Encoding", "UTF8") != "UTF8":
            raise ApiError("InvalidParameter", "no such owner, or another encoding.", "参数错误。")
        self._database.keep_database(given["DatabaseName"], given["DatabaseOwner"])
        return {}

    def _create_secret(self, heading: Heading, given: Mapping[str, Any]) -> dict[str, Any]:
        known = self.emulator.key_desk.secrets
        at = (heading.identity.account, heading.region, given["SecretName"], given["VersionId"])
        if any(one[:3] == at[:3] for one in known):
            raise ApiError("ResourceInUse.SecretExists", "there is such a secret.", "凭据已存在。")
        known[at] = given["SecretString"]
        return {"SecretName": given["SecretName"], "VersionId": given["VersionId"], "TagCode": 0, "TagMsg": ""}

    def _invoke(self, _: Heading, given: Mapping[str, Any]) -> dict[str, Any]:
        function = self.deployed.one("tencentcloud_scf_function", name=given["FunctionName"])
        if given.get("InvocationType", "RequestResponse") != "RequestResponse":
            raise ApiError("InvalidParameterValue.InvocationType", "not modelled here.", "参数错误。")
        request_id, told, seconds = self.invoke(function, given.get("ClientContext", "{}").encode())
        said, good = json.dumps(told.body, ensure_ascii=False), told.kind == "response"
        result = {
            "FunctionRequestId": request_id,
            "Duration": round(seconds * 1000, 2),
            "BillDuration": int(seconds * 1000),
            "MemUsage": 0,
            "InvokeResult": 0 if good else 1,
            "RetMsg": said if good else "",
            "ErrMsg": "" if good else said,
            "Log": "",
        }
        return {"Result": result}

    def _search(self, _: Heading, given: Mapping[str, Any]) -> dict[str, Any]:
        topic = self.deployed.one("tencentcloud_cls_topic", id=given["TopicId"])
        if given.get("SyntaxRule") != 1:
            raise ApiError("InvalidParameter", "quotes mean a phrase in CQL, which is rule 1.", "参数错误。")
        phrase = given["Query"].strip('"').lower()
        found = [
            {
                "Time": int(line.at * 1000),
                "TopicId": topic["id"],
                "TopicName": topic["topic_name"],
                "Source": "",
                "FileName": "",
                "PkgId": "",
                "PkgLogId": "",
                "LogJson": json.dumps(
                    {"SCF_FunctionName": name, "SCF_RequestId": line.request_id, "SCF_Message": line.text}
                ),
            }
            for name in (
                made["name"]
                for made in self.deployed.all("tencentcloud_scf_function")
                if made["cls_topic_id"] == topic["id"]
            )
            for line in self.functions.logs.get(name, ())
            if given["From"] <= line.at * 1000 < given["To"] + 1000 and phrase in line.text.lower()
        ]
        return {"Context": "", "ListOver": True, "Analysis": False, "Results": found}

    def _instance(self, given: Mapping[str, Any]) -> Made:
        """The instance as Terraform had it made: root with its first password, and TLS where that is on."""
        found = self.deployed.one("tencentcloud_postgresql_instance", id=given["DBInstanceId"])
        if not self._database.has_account("root"):
            self._database.keep_account("root", found["root_password"])
        if self.deployed.one("tencentcloud_postgresql_instance_ssl_config")["ssl_enabled"]:
            self._database.turn_tls_on()
        return found

    @property
    def _actions(self) -> Mapping[str, Callable[[Heading, Mapping[str, Any]], dict[str, Any]]]:
        return {
            "ResetAccountPassword": self._reset_password,
            "CreateAccount": self._create_account,
            "CreateDatabase": self._create_database,
            "CreateSecret": self._create_secret,
            "Invoke": self._invoke,
            "SearchLog": self._search,
        }


def fleet(at: datetime) -> Sequence[MachineSpec]:
    """Two accounts: one machine that idles in each, one that works, one that nobody measures."""
    return (
        tencent_machine("idle-notebook", does.idle(), at - 41 * _DAY, account=HUB),
        tencent_machine("training-a", does.busy(), at - 9 * _DAY, "GT4.4XLARGE96", account=HUB),
        tencent_machine("no-agent", does.no_data(), at - 12 * _DAY, account=HUB),
        tencent_machine("member-notebook", does.idle(), at - 20 * _DAY, account=MEMBER),
    )


def _documents(deployed: Deployed, role_id: str) -> Iterable[Mapping[str, Any]]:
    for made in deployed.all("tencentcloud_cam_role_policy_attachment"):
        if made["role_id"] == role_id:
            yield json.loads(deployed.one("tencentcloud_cam_policy", id=made["policy_id"])["document"])
