"""Every secret store with its stand-in, for the one suite over all of them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from datetime import datetime, timezone
from typing import Any, Protocol

import boto3
from moto.moto_server.werkzeug_app import create_backend_app
from tests.world_ports.translate import to_product

from cloudstand.alibaba.emulator import AlibabaEmulator
from cloudstand.aws.core.server import LoopbackServer
from cloudstand.clock import MovedClock
from cloudstand.fleets import tencent_machine
from cloudstand.tencent.emulator import TencentEmulator
from cloudstand.wire.door import WorldDoor
from cloudstand.wire.faults import Fault, FaultKind
from cloudstand.world import workload as does
from cloudstand.world.cloud import World
from costguard.ports import SecretStore
from costguard.providers.alibaba.core.services import AlibabaSecrets
from costguard.providers.aws.core.services import AwsSecrets
from costguard.providers.kit.core.credentials import Keys
from costguard.providers.tencent.core.services import CURRENT, TencentSecrets

NOW = datetime(2026, 3, 2, 9, tzinfo=timezone.utc)
LEAKED = "wJalrXUtnFEMIK7MDENGbPxRfiCYEXAMPLEKEYwJalrXUtnFEMIK7MDENGbPxRfiCY"
_ALWAYS = 1_000


class Vault(Protocol):
    """One secret store and what stands in for it."""

    cloud: str
    region: str
    endpoint: str
    permission: str
    elsewhere: str

    def keys(self) -> Keys: ...

    def keep(self, name: str, value: str | bytes) -> None: ...

    def answer(self, how: str) -> None:
        """From now on: `denied`, `throttled`, `broken`, `null` (a field of another type), `empty`, or `fine`."""

    def sent(self) -> list[str]:
        """The actions that arrived."""

    def close(self) -> None: ...


class AwsVault:
    cloud, region, elsewhere = "aws", "eu-west-1", "us-east-1"
    permission = "secretsmanager:GetSecretValue"

    def __init__(self) -> None:
        self._how, self._sent = "fine", list[str]()
        self._moto = create_backend_app("secretsmanager")
        self._server = LoopbackServer(self._serve, MovedClock(NOW))
        self.endpoint = self._server.url
        key = self.keys()
        given: dict[str, Any] = {"aws_access_key_id": key.key_id, "aws_secret_access_key": key.secret}
        self._client: Any = boto3.client("secretsmanager", self.region, endpoint_url=self.endpoint, **given)
        self._names: set[str] = set()

    def _serve(self, environ: dict[str, Any], start: Callable[..., Any]) -> Iterable[bytes]:
        action = environ.get("HTTP_X_AMZ_TARGET", "").rpartition(".")[2]
        if action == "GetSecretValue":
            self._sent.append(action)
            said: dict[str, tuple[str, dict[str, Any]]] = {
                "denied": ("400 Bad", {"__type": "AccessDeniedException", "Message": f"no: SecretAccessKey={LEAKED}"}),
                "throttled": ("400 Bad", {"__type": "ThrottlingException", "Message": "slow down"}),
                "broken": ("500 Oops", {"__type": "InternalServiceError", "Message": "oops"}),
                "null": ("200 OK", {"Name": "x", "SecretString": None}),
                "empty": ("200 OK", {"Name": "x", "SecretString": ""}),
            }
            if self._how in said:
                status, told = said[self._how]
                body = json.dumps(told).encode()
                start(status, [("Content-Type", "application/x-amz-json-1.1"), ("Content-Length", str(len(body)))])
                return [body]
        answer: Iterable[bytes] = self._moto(environ, start)
        return answer

    def keys(self) -> Keys:
        return Keys("AKIAIOSFODNN7EXAMPLE", "a secret")

    def keep(self, name: str, value: str | bytes) -> None:
        told = {"SecretString": value} if isinstance(value, str) else {"SecretBinary": value}
        if name in self._names:
            self._client.put_secret_value(SecretId=name, **told)
        else:
            self._names.add(name)
            self._client.create_secret(Name=name, **told)

    def answer(self, how: str) -> None:
        self._how = how

    def sent(self) -> list[str]:
        return self._sent

    def close(self) -> None:
        for name in self._names:
            self._client.delete_secret(SecretId=name, ForceDeleteWithoutRecovery=True)
        self._client.close()
        self._server.close()


class AlibabaVault:
    cloud, region, elsewhere = "alibaba", "cn-shanghai", "cn-hangzhou"
    permission = "kms:GetSecretValue"

    def __init__(self) -> None:
        self.emulator = AlibabaEmulator(WorldDoor(World([], NOW), MovedClock(NOW)))
        self.endpoint = self.emulator.url

    def keys(self) -> Keys:
        return to_product(self.emulator.keys)

    def keep(self, name: str, value: str | bytes) -> None:
        self.emulator.kms.secrets[self.emulator.accounts[0], self.region, name] = value

    def answer(self, how: str) -> None:
        self.emulator.faults.clear()
        self.emulator.allowed.clear()
        if how == "denied":
            self.emulator.allowed[self.emulator.accounts[0]] = {"ecs:DescribeInstances"}
        for name, code in (("throttled", "Rejected.Throttling"), ("broken", "InternalFailure")):
            if how == name:
                self.emulator.faults.add(Fault(FaultKind.REFUSED, "GetSecretValue", _ALWAYS, code=code))
        if how in {"null", "empty"}:
            self.keep("costguard/slack", _other(how))

    def sent(self) -> list[str]:
        return [call.action for call in self.emulator.calls]

    def close(self) -> None:
        self.emulator.close()


class TencentVault:
    cloud, region, elsewhere = "tencent", "ap-shanghai", "ap-guangzhou"
    permission = "ssm:GetSecretValue"

    def __init__(self) -> None:
        somewhere = tencent_machine("somewhere", does.idle(), NOW, region=self.elsewhere)
        self.emulator = TencentEmulator(WorldDoor(World([somewhere], NOW), MovedClock(NOW)))
        self.endpoint = self.emulator.url
        self._account = somewhere.account

    def keys(self) -> Keys:
        return to_product(self.emulator.keys)

    def keep(self, name: str, value: str | bytes, version: str = CURRENT) -> None:
        self.emulator.key_desk.secrets[self._account, self.region, name, version] = value

    def answer(self, how: str) -> None:
        self.emulator.faults.clear()
        self.emulator.allowed.clear()
        if how == "denied":
            self.emulator.allowed[self._account] = {"cvm:DescribeInstances"}
        for name, code in (("throttled", "RequestLimitExceeded"), ("broken", "InternalError")):
            if how == name:
                self.emulator.faults.add(Fault(FaultKind.REFUSED, "GetSecretValue", _ALWAYS, code=code))
        if how in {"null", "empty"}:
            self.keep("costguard/slack", _other(how))

    def sent(self) -> list[str]:
        return [call.action for call in self.emulator.calls]

    def close(self) -> None:
        self.emulator.close()


def _other(how: str) -> Any:
    return None if how == "null" else ""


VAULTS: dict[str, Callable[[], Vault]] = {"aws": AwsVault, "alibaba": AlibabaVault, "tencent": TencentVault}


def store_of(vault: Vault, *, region: str = "", seconds_left: Callable[[], float] | None = None) -> SecretStore:
    """The adapter of a vault's cloud, over its stand-in."""
    region, keys = region or vault.region, vault.keys()
    if vault.cloud == "aws":
        pair = keys.key_id, keys.secret
        return AwsSecrets(region, endpoint_url=vault.endpoint, keys=pair, seconds_left=seconds_left)
    if vault.cloud == "alibaba":
        return AlibabaSecrets(vault.cloud, region, keys, endpoint=vault.endpoint, seconds_left=seconds_left)
    return TencentSecrets(vault.cloud, region, keys, endpoint=vault.endpoint, seconds_left=seconds_left)


def opened(kind: str) -> tuple[Vault, ExitStack]:
    """A fresh vault, and what closes it."""
    closing = ExitStack()
    vault = VAULTS[kind]()
    closing.callback(vault.close)
    return vault, closing
