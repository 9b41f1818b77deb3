"""`costguard permissions`: one document to redirect, a list to read, files to keep."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import typer

from costguard.cli.exits import Exit
from costguard.cli.main import run
from costguard.cli.operate import permissions
from costguard.providers.aws.iam.policy_documents import documents
from costguard.providers.kit.iam.policy_documents import PURPOSES, file_text


def _commands() -> typer.Typer:
    app = typer.Typer(rich_markup_mode=None, pretty_exceptions_enable=False)
    app.command()(permissions.permissions)
    app.callback()(lambda: None)
    return app


COMMANDS = _commands()


def asked(*arguments: str) -> int:
    return run(["permissions", *arguments], commands=COMMANDS)


def printed(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    assert asked(*arguments) == Exit.OK
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def test_without_a_wish_the_purposes_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert asked("aws") == Exit.OK
    said = capsys.readouterr().out
    assert [line.split()[0] for line in said.splitlines()] == list(PURPOSES)
    assert PURPOSES["rotate"].why in said


def test_one_purpose_is_one_document(capsys: pytest.CaptureFixture[str]) -> None:
    assert printed(capsys, "aws", "--role", "rotate") == documents()["rotate"]


def test_a_function_that_observes_gets_nothing_to_act_with(capsys: pytest.CaptureFixture[str]) -> None:
    observing = printed(capsys, "tencent", "--guard", "idle_gpu")
    enforcing = printed(capsys, "tencent", "--guard", "idle_gpu", "--mode", "enforce")
    actions = [
        {action for one in each["statement"] if one["effect"] == "allow" for action in one["action"]}
        for each in (observing, enforcing)
    ]
    assert actions[1] - actions[0] == {"cvm:StopInstances", "cvm:TerminateInstances", "cbs:CreateSnapshot"}


def test_joined_statements_keep_ids_of_their_own(capsys: pytest.CaptureFixture[str]) -> None:
    whole = printed(capsys, "aws", "--role", "scan-kms_rotation", "--role", "scan-network_audit", "--role", "ledger")
    ids = [one["Sid"] for one in whole["Statement"]]
    assert len(set(ids)) == len(ids)
    assert {"Read", "Read2", "KeepTheLedger"} <= set(ids)


def test_what_does_not_fit_into_one_policy_is_told_beside_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert asked("aws", "--guard", "budget", "--mode", "enforce") == Exit.OK
    captured = capsys.readouterr()
    assert "--write" in captured.err
    assert json.loads(captured.out)


def test_json_tells_each_document_with_its_reason(capsys: pytest.CaptureFixture[str]) -> None:
    told = printed(capsys, "alibaba", "--guard", "kms_rotation", "--json")
    assert (told["schema"], told["cloud"]) == (1, "alibaba")
    assert [one["name"] for one in told["purposes"]] == ["scan-kms_rotation", "objects", "secrets", "deny"]
    assert all(one["why"] and one["characters"] and one["policy"]["Version"] == "1" for one in told["purposes"])


def test_files_are_written_for_each(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert asked("aws-cn", "--role", "mail", "--role", "undo", "--write", str(tmp_path / "new")) == Exit.OK
    assert {path.name for path in (tmp_path / "new").iterdir()} == {"mail.json", "undo.json"}
    assert "arn:aws-cn:ses" in (tmp_path / "new" / "mail.json").read_text("utf-8")
    assert "2 documents" in capsys.readouterr().out


def test_every_option_narrows(capsys: pytest.CaptureFixture[str]) -> None:
    narrow = ("--region", "eu-west-1", "--tag", "team=research", "--tag", "team=nlp", "--account", "111122223333")
    document = printed(capsys, "aws", "--role", "act-budget", *narrow)
    (statement,) = document["Statement"]
    wanted = {"aws:RequestedRegion": ["eu-west-1"], "aws:ResourceTag/team": ["research", "nlp"]}
    assert statement["Condition"]["StringEquals"] == wanted
    names = ("--name", "gpus", "--member-role", "reader", "--keep", "hands-off", "--spot")
    whole = file_text(printed(capsys, "aws", "--role", "deny", "--role", "members", "--role", "ledger", *names))
    assert all(word in whole for word in ("table/gpus*", "role/reader", "aws:ResourceTag/hands-off"))


def test_a_role_is_handed_to_flow_logs_only_where_it_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    role = "arn:aws:iam::111122223333:role/flow-logs"
    passing = [
        one["Resource"]
        for each in ((), ("--flow-log-role", role))
        for one in printed(capsys, "aws", "--role", "fix_network", *each)["Statement"]
        if one["Action"] == "iam:PassRole"
    ]
    assert passing == [[role]]


def test_accounts_of_one_organisation_are_entered_and_one_policy_of_it_attached(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assume = printed(capsys, "aws", "--role", "members", "--organisation", "o-a1b2c3d4e5")["Statement"][-1]
    assert assume["Condition"] == {"StringEquals": {"aws:ResourceOrgID": "o-a1b2c3d4e5"}}
    freeze = printed(capsys, "aws", "--role", "freeze-organisation", "--freeze-policy", "p-7f3k2m9q")["Statement"][-1]
    assert freeze["Resource"][0] == "arn:aws:organizations::*:policy/o-*/service_control_policy/p-7f3k2m9q"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("mars",), "is no cloud"),
        (("aws", "--guard", "everything"), "expected one of idle_gpu"),
        (("aws", "--role", "admin"), "is no purpose"),
        (("tencent", "--role", "ledger"), "asks for no permission there"),
        (("aws", "--tag", "team"), "expected KEY=VALUE"),
        (("aws", "--tag", "team=*"), "expected KEY=VALUE"),
        (("aws", "--tag", '"}=x'), "expected KEY=VALUE"),
        (("aws", "--region", "*"), "expected us-east-1"),
        (("aws", "--keep", "a*"), "the name of a tag"),
        (("aws", "--name", "a:b"), "expected a name"),
        (("aws", "--account", "12"), "expected digits"),
        (("aws", "--organisation", "*"), "expected o-a1b2c3d4e5"),
        (("aws", "--freeze-policy", "p-FullAWSAccess"), "expected p-a1b2c3d4"),
        (("aws", "--flow-log-role", "arn:aws:iam::*:role/x"), "expected arn:aws:iam"),
    ],
)
def test_what_is_not_understood_is_refused(
    arguments: tuple[str, ...], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert asked(*arguments) == Exit.BAD_INPUT
    captured = capsys.readouterr()
    assert said in captured.err
    assert captured.out == ""
