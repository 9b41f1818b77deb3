"""Clients of the AWS SDK: quick to build, and with no more than what may be called."""

from __future__ import annotations

import boto3
import pytest

from costguard.providers.aws.core.transport import Clients, WatchedGate, new_session
from costguard.providers.aws.iam.permissions import KNOWN_OPERATIONS

LISTED = sorted({name.partition(":")[0] for name in KNOWN_OPERATIONS})
OF_THE_SDK = ("sts", "sso", "sso-oidc", "signin")


def client_of(service: str) -> object:
    clients = Clients()
    clients.add_session("", new_session(WatchedGate(may_change=False)))
    try:
        return clients.get("", "us-east-1", service)
    finally:
        clients.close()


@pytest.mark.parametrize("service", [name for name in LISTED if name not in OF_THE_SDK])
def test_a_client_has_the_listed_operations_and_no_other(service: str) -> None:
    known = client_of(service).meta.service_model.operation_names  # type: ignore[attr-defined]

    assert {f"{service}:{name}" for name in known} == {one for one in KNOWN_OPERATIONS if one.startswith(f"{service}:")}


@pytest.mark.parametrize("service", ["sts", "dynamodb"])
def test_what_the_sdk_itself_or_the_ledger_calls_is_whole(service: str) -> None:
    known = client_of(service).meta.service_model.operation_names  # type: ignore[attr-defined]

    assert known == boto3.Session().client(service, region_name="us-east-1").meta.service_model.operation_names  # type: ignore[call-overload]


def test_sessions_share_no_handlers() -> None:
    heard: list[str] = []
    one, other = (new_session(WatchedGate(may_change=False)) for _ in range(2))

    one.register("anything.ec2.AtAll", lambda **_: heard.append("one"))
    other.emit("anything.ec2.AtAll")
    assert heard == []
    one.emit("anything.ec2.AtAll")
    assert heard == ["one"]


def test_a_session_has_the_handlers_of_every_session_of_the_sdk() -> None:
    ours, theirs = new_session(WatchedGate(may_change=False)), boto3.Session()._session  # noqa: SLF001 - the SDK's own

    told = [session.emit("choose-service-name", service_name="runtime.sagemaker") for session in (ours, theirs)]

    assert [answer for _, answer in told[0]] == ["sagemaker-runtime"]
    assert told[0] == told[1]
