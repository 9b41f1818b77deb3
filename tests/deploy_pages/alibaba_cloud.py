"""Alibaba Cloud as a deployment meets it: the sandbox's own, a database, a bucket, FC, and the command line to them."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

from tests.deploy_pages.bucket import Bucket
from tests.deploy_pages.database import Database
from tests.deploy_pages.deployed import Deployed, Made
from tests.deploy_pages.functions import Functions, Line
from tests.deploy_pages.stand_in_cli import aliyun
from tests.deploy_pages.stand_in_cli.program import Printed
from tests.host_runtimes import RoleKey, Told
from typing_extensions import Self

from cloudstand.alibaba.core.objects import oss_stand_in
from cloudstand.alibaba.core.protocol import parameters_of
from cloudstand.alibaba.emulator import AlibabaEmulator
from cloudstand.clock import RunningClock
from cloudstand.fleets import ALIBABA_ACCOUNT, HANGZHOU, alibaba_machine
from cloudstand.slack.stand_in import SlackStandIn
from cloudstand.wire.authority import Authority, Wish
from cloudstand.wire.door import WorldDoor
from cloudstand.wire.keys import Keys
from cloudstand.wire.messages import Answer, Request
from cloudstand.wire.server import WireServer
from cloudstand.world import workload as does
from cloudstand.world.cloud import World
from cloudstand.world.fleet import MachineSpec

MEMBER = "2234567890123456"  # the page's
EXTERNAL_ID, MEMBER_ROLE = "costguard-hub", "costguard-member-idle-gpu"
MODULE = "infra/alibaba"
_ARN = re.compile(r"acs:ram::(\d+):role/([\w.-]+)")
_PASSWORD = re.compile(r"(?=.*[a-z])(?=.*[A-Z])[A-Za-z0-9!@#$%^&*()_+=-]{8,32}")
_ACCOUNT = re.compile(r"[a-z][a-z0-9_]{0,61}[a-z0-9]")
_SECRET = re.compile(r"[A-Za-z0-9_/+=.@-]{1,64}")
_WORDS = re.compile(r"\w+")


class RefusedError(Exception):
    """The cloud's own error: its code."""


class AlibabaCloud:
    """Serves until closed; use it as a context manager. `tree` is where Terraform keeps its state."""

    def __init__(self, tree: Path, folder: Path, database: Database) -> None:
        self.deployed = Deployed(tree / MODULE)
        self.member = Deployed(tree / MODULE / "member")
        self._database = database
        self._open = ExitStack()
        clock = RunningClock()
        door = WorldDoor(World(fleet(clock.now()), clock.now()), clock)
        self.emulator = self._open.enter_context(
            AlibabaEmulator(door, external_id=EXTERNAL_ID, role=MEMBER_ROLE, forbids_lists=True)
        )
        self.slack = self._open.enter_context(SlackStandIn(clock))
        self._clock = clock
        self._secret_keys: dict[str, str] = {}
        self._roles: dict[str, Authority] = {}
        name = f"costguard-{ALIBABA_ACCOUNT}-{HANGZHOU}"
        self.bucket = Bucket(
            lambda keys: oss_stand_in(name, HANGZHOU, keys, clock.now),
            lambda method, path: Wish((f"oss:{method.capitalize()}Object",), (f"acs:oss:*:{ALIBABA_ACCOUNT}:{path}",)),
            lambda: bool(self.deployed.all("alicloud_oss_bucket")),
        )
        self._open.callback(self.bucket.close)
        self.bucket.admit(self.emulator.keys)
        self._server = self._open.enter_context(WireServer(self._answer))
        self.functions = Functions(
            folder, {"COSTGUARD_ALIBABA_ENDPOINT": self.url, "COSTGUARD_SLACK_URL": self.slack.base_url}
        )

    @property
    def url(self) -> str:
        """Where every product answers."""
        return self._server.url

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._open.close()

    def command(self, words: Sequence[str], environ: Mapping[str, str]) -> Printed:
        """What `aliyun WORDS` prints."""
        try:
            asked = aliyun.read(words, environ)
            told = self._commands[asked.product, asked.action](self._known(asked))
        except aliyun.MistypedError as err:
            return Printed(3, wrong=f"ERROR: {err}\n")
        except (RefusedError, LookupError) as err:
            return Printed(1, wrong=f"ERROR: SDK.ServerError\nErrorCode: {err}\n")
        return Printed(0, json.dumps(told, indent="\t", sort_keys=True, ensure_ascii=False) + "\n")

    def keys_of(self, account: str) -> Keys:
        """A person's key there."""
        return self.emulator.keys_of(account)

    def fire_timers(self, *only: str) -> list[tuple[str, Told]]:
        """Every timer that Terraform made starts its function once: what came of each, by name."""
        found = []
        for timer in self.deployed.all("alicloud_fcv3_trigger"):
            if timer["trigger_type"] == "timer" and timer["function_name"] in (only or (timer["function_name"],)):
                at = datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
                event = {"triggerTime": at, "triggerName": timer["trigger_name"], "payload": ""}
                function = self.deployed.one("alicloud_fcv3_function", function_name=timer["function_name"])
                found.append((function["function_name"], self.invoke(function, json.dumps(event).encode())))
        return found

    def invoke(self, function: Made, event: bytes) -> Told:
        """Run a function of the state as its role."""
        name = function["function_name"]
        code = function["code"][0]
        bundle = self.deployed.one(
            "alicloud_oss_bucket_object", bucket=code["oss_bucket_name"], key=code["oss_object_name"]
        )
        keys, authority = self._session(function)
        self.bucket.admit(keys, authority)
        _, told, _ = self.functions.run(
            "fc",
            function,
            (self.deployed.module / bundle["source"]).resolve(),
            event,
            name=name,
            environ=function["environment_variables"] or {},
            runtime=function["runtime"],
            role=RoleKey(keys.key_id, keys.secret, keys.token),
            about={"FC_REGION": HANGZHOU, "FC_FUNCTION_NAME": name, "FC_ACCOUNT_ID": ALIBABA_ACCOUNT},
        )
        return told

    def _session(self, function: Made) -> tuple[Keys, Authority]:
        """Keys of the function's role, which may do what is attached to it and nothing else."""
        found = _ARN.fullmatch(function["role"])
        assert found is not None
        account, role = found.groups()
        trusted = json.loads(self.deployed.one("alicloud_ram_role", role_name=role)["assume_role_policy_document"])
        assert trusted["Statement"][0]["Principal"] == {"Service": ["fc.aliyuncs.com"]}
        authority = Authority(_documents(self.deployed, role))
        self.emulator.authorities[account, role] = authority
        if self.member.addresses():
            self.emulator.authorities[MEMBER, MEMBER_ROLE] = Authority(_documents(self.member, MEMBER_ROLE))
        ends = self._clock.now() + timedelta(hours=1)
        site = self.emulator._site  # noqa: SLF001 - FC hands out sessions of any role; over the wire there is one
        keys = site.credentials.begin(account, role, "fc", ends).keys
        self._roles[keys.key_id] = authority
        return keys, authority

    def _answer(self, request: Request) -> Answer:
        """The cloud's one address: what has a path is a bucket's."""
        if request.path != "/":
            return self.bucket.answer(request)
        asked = parameters_of(request)
        authority = self._roles.get(asked.get("AccessKeyId", ""))
        if authority is not None and asked.get("Action") == "GetSecretValue":
            key = f"acs:kms:{asked['RegionId']}:{ALIBABA_ACCOUNT}:key/{self._secret_keys.get(asked['SecretName'], '')}"
            if not authority.allows(Wish(("kms:Decrypt",), (key,))):
                told = {"Code": "Forbidden.NoPermission", "Message": "kms:Decrypt is not allowed", "RequestId": "1"}
                return Answer(403, json.dumps(told).encode(), "application/json;charset=utf-8")
        return self.emulator.server.answer(request)

    def _known(self, asked: aliyun.Asked) -> aliyun.Asked:
        """The request, where its key is known."""
        if asked.key_id != self.emulator.keys.key_id:
            raise RefusedError("InvalidAccessKeyId.NotFound")
        return asked

    def _caller(self, _: aliyun.Asked) -> object:
        return {"AccountId": ALIBABA_ACCOUNT, "IdentityType": "RAMUser", "RequestId": "1"}

    def _create_account(self, asked: aliyun.Asked) -> object:
        given = asked.parameters
        self.deployed.one("alicloud_db_instance", id=given["DBInstanceId"])
        if given.get("AccountType", "Normal") not in {"Normal", "Super"}:
            raise RefusedError("InvalidAccountType.Malformed")
        if not _ACCOUNT.fullmatch(given["AccountName"]) or not _PASSWORD.fullmatch(given["AccountPassword"]):
            raise RefusedError("InvalidAccountPassword.Malformed")
        if self._database.has_account(given["AccountName"]):
            raise RefusedError("InvalidAccountName.Duplicate")
        self._database.keep_account(given["AccountName"], given["AccountPassword"])
        return {"RequestId": "1"}

    def _grant(self, asked: aliyun.Asked) -> object:
        given = asked.parameters
        self.deployed.one("alicloud_db_database", instance_id=given["DBInstanceId"], data_base_name=given["DBName"])
        if given["AccountPrivilege"] != "DBOwner":  # the only one that there is for PostgreSQL
            raise RefusedError("InvalidAccountPrivilege.Malformed")
        if not self._database.has_account(given["AccountName"]):
            raise RefusedError("InvalidAccountName.NotFound")
        self._database.keep_database(given["DBName"], given["AccountName"])
        return {"RequestId": "1"}

    def _turn_tls_on(self, asked: aliyun.Asked) -> object:
        given = asked.parameters
        self.deployed.one(
            "alicloud_db_connection", instance_id=given["DBInstanceId"], connection_string=given["ConnectionString"]
        )
        if given.get("SSLEnabled") != "1" or given.get("CAType", "aliyun") != "aliyun":
            raise RefusedError("InvalidParameter")
        self._database.turn_tls_on()
        return {"RequestId": "1"}

    def _create_secret(self, asked: aliyun.Asked) -> object:
        given = asked.parameters
        known = self.emulator.kms.secrets
        at = (ALIBABA_ACCOUNT, asked.region, given["SecretName"])
        if (
            not _SECRET.fullmatch(given["SecretName"])
            or not given.get("DKMSInstanceId")
            or not given.get("EncryptionKeyId")
        ):
            raise RefusedError("InvalidParameter")
        if at in known:
            raise RefusedError("Rejected.ResourceExist")
        known[at] = given["SecretData"]
        self._secret_keys[given["SecretName"]] = given["EncryptionKeyId"]
        return {
            "SecretName": given["SecretName"],
            "VersionId": given["VersionId"],
            "SecretType": "Generic",
            "RequestId": "1",
        }

    def _invoke(self, asked: aliyun.Asked) -> object:
        name, began = asked.parameters["functionName"], time.monotonic()
        told = self.invoke(self.deployed.one("alicloud_fcv3_function", function_name=name), asked.body.encode())
        if time.monotonic() - began > asked.seconds:
            raise RefusedError("SDK.TimeoutError: Client.Timeout exceeded while awaiting headers")
        return told.body

    def _logs(self, asked: aliyun.Asked) -> object:
        given = asked.parameters
        store = self.deployed.one("alicloud_log_store", project_name=given["project"], logstore_name=given["logstore"])
        writing = [
            made["function_name"]
            for made in self.deployed.all("alicloud_fcv3_function")
            if (made["log_config"][0]["project"], made["log_config"][0]["logstore"])
            == (store["project_name"], store["logstore_name"])
        ]
        words = [word.lower() for word in re.findall(r"\w+", given.get("query", ""))]
        return [
            {
                "functionName": name,
                "message": line.text,
                "requestId": line.request_id,
                "qualifier": "LATEST",
                "__time__": str(int(line.at)),
                "__source__": "",
            }
            for name in writing
            for line in self.functions.logs.get(name, ())
            if int(given["from"]) <= line.at < int(given["to"]) + 1 and _has(line, words)
        ][: int(given.get("line", "100"))]

    @property
    def _commands(self) -> Mapping[tuple[str, str], Callable[[aliyun.Asked], object]]:
        return {
            ("sts", "GetCallerIdentity"): self._caller,
            ("rds", "CreateAccount"): self._create_account,
            ("rds", "GrantAccountPrivilege"): self._grant,
            ("rds", "ModifyDBInstanceSSL"): self._turn_tls_on,
            ("kms", "CreateSecret"): self._create_secret,
            ("fc", "InvokeFunction"): self._invoke,
            ("sls", "GetLogs"): self._logs,
        }


def fleet(at: datetime) -> Sequence[MachineSpec]:
    """Two accounts: one machine that idles in each, one that works, one that nobody measures."""
    day = timedelta(days=1)
    return (
        alibaba_machine("idle-notebook", does.idle(), at - 41 * day),
        alibaba_machine("training-a", does.busy(), at - 9 * day, "ecs.gn7e-c16g1.4xlarge"),
        alibaba_machine("no-agent", does.no_data(), at - 12 * day),
        alibaba_machine("member-notebook", does.idle(), at - 20 * day, account=MEMBER),
    )


def _documents(deployed: Deployed, role: str) -> Iterable[Mapping[str, Any]]:
    for made in deployed.all("alicloud_ram_role_policy_attachment"):
        if made["role_name"] == role:
            yield json.loads(deployed.one("alicloud_ram_policy", policy_name=made["policy_name"])["policy_document"])


def _has(line: Line, words: Sequence[str]) -> bool:
    """SLS finds words, wherever in a line."""
    there = set(_WORDS.findall(line.text.lower()))
    return all(word in there for word in words)
