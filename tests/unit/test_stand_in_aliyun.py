"""The stand-in for `aliyun` refuses what the program would: by its published source, and what it is built with."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from tests.deploy_pages.stand_in_cli.aliyun import MistypedError, read

_KEYS = {"ALIBABA_CLOUD_ACCESS_KEY_ID": "LTAI0", "ALIBABA_CLOUD_ACCESS_KEY_SECRET": "made up"}
_PAGE = Path(__file__).parents[2] / "docs" / "deploy-alibaba.md"
_GRANT = "rds GrantAccountPrivilege --region cn-hangzhou --DBInstanceId i --AccountName a --DBName d"


def test_an_action_is_read_with_its_parameters() -> None:
    asked = read(shlex.split(f"{_GRANT} --AccountPrivilege=DBOwner"), _KEYS)

    assert (asked.product, asked.action, asked.region, asked.seconds) == (
        "rds",
        "GrantAccountPrivilege",
        "cn-hangzhou",
        10,
    )
    assert asked.parameters == {"DBInstanceId": "i", "AccountName": "a", "DBName": "d", "AccountPrivilege": "DBOwner"}


def test_a_path_names_an_action_and_a_parameter() -> None:
    words = (
        "fc POST /2023-03-30/functions/costguard-idle_gpu/invocations --region cn-hangzhou --body '{}' --read-timeout 9"
    )

    asked = read(shlex.split(words), _KEYS)

    assert (asked.action, asked.parameters, asked.body, asked.seconds) == (
        "InvokeFunction",
        {"functionName": "costguard-idle_gpu"},
        "{}",
        9,
    )


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("rds CreateAccount --RegionId cn-hangzhou", "region can't be empty"),
        ("rds CreateAcount --region cn-hangzhou", "is not a valid api"),
        ("oss CreateBucket --region cn-hangzhou", "is not a valid product"),
        (f"{_GRANT} --Privilege DBOwner", "'Privilege' is not a valid parameter"),
        (_GRANT, "required parameters not assigned: --AccountPrivilege"),
        (f"{_GRANT} --DBName d", "--DBName duplicated"),
        ("fc POST /2023-03-30/function/x/invocations --region cn-hangzhou", "is not a valid api"),
        ("sls GetLogs --region cn-hangzhou --project p --logstore l --from now --to 2", "is no whole number"),
    ],
)
def test_what_the_program_would_refuse_is_refused(words: str, said: str) -> None:
    with pytest.raises(MistypedError, match=said):
        read(shlex.split(words), _KEYS)


def test_nothing_is_sent_without_a_key() -> None:
    with pytest.raises(MistypedError, match="no access key"):
        read(shlex.split(f"{_GRANT} --AccountPrivilege DBOwner"), {})


def test_commands_within_the_sentences_of_the_page_can_be_typed() -> None:
    spans = re.findall(r"`aliyun ([a-z]+ [A-Z][^`]+)`", _PAGE.read_text("utf-8"))

    assert [read(shlex.split(each), _KEYS).action for each in spans] == ["GetCallerIdentity", "DescribeMetricMetaList"]
