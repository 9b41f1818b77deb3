"""What the environment may say, and what is refused."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from costguard.domain.errors import InvalidInputError
from costguard.settings import VARIABLES, AccessKey, Secret, Settings, load_settings

ROOT = Path(__file__).parents[2]


def test_an_empty_environment_gives_the_defaults() -> None:
    assert load_settings({}) == Settings()


def test_settings_are_read_from_the_mapping_given() -> None:
    settings = load_settings(
        {
            "COSTGUARD_POLICY": "policies",
            "COSTGUARD_LEDGER": "dynamodb://costguard?region=eu-west-1",
            "COSTGUARD_SLACK_TOKEN": "xoxb-made-up",
            "COSTGUARD_LANG": "zh",
            "COSTGUARD_CLOUD": "aws-cn",
            "AWS_REGION": "cn-north-1",
            "AWS_ENDPOINT_URL": "http://127.0.0.1:5000",
            "HOME": "/somewhere",
        }
    )

    assert (settings.policy, settings.language, settings.cloud) == ("policies", "zh", "aws-cn")
    assert settings.ledger.reveal() == "dynamodb://costguard?region=eu-west-1"
    assert settings.slack_token.reveal() == "xoxb-made-up"
    assert (settings.aws_region, settings.aws.endpoint_url) == ("cn-north-1", "http://127.0.0.1:5000")


@pytest.mark.parametrize(("name", "read"), [("", "costguard"), ("gpu-watch", "gpu-watch")])
def test_a_deployment_has_a_name(name: str, read: str) -> None:
    assert load_settings({"COSTGUARD_NAME": name}).deployment == read


@pytest.mark.parametrize("name", ["GPU", "a", "-ab", "two words", "x" * 21, "名字一二三"])
def test_a_name_that_terraform_would_not_take_is_refused(name: str) -> None:
    with pytest.raises(InvalidInputError, match=r"COSTGUARD_NAME is .*, expected 3 to 20 small letters"):
        load_settings({"COSTGUARD_NAME": name})


def test_aws_region_goes_before_the_default_region() -> None:
    assert load_settings({"AWS_DEFAULT_REGION": "eu-west-1"}).aws_region == "eu-west-1"
    both = {"AWS_REGION": "us-west-2", "AWS_DEFAULT_REGION": "eu-west-1"}
    assert load_settings(both).aws_region == "us-west-2"


@pytest.mark.parametrize("text", ["", "0", "false", "No", " FALSE "])
def test_not_paused_is_said_in_few_words(text: str) -> None:
    assert load_settings({"COSTGUARD_PAUSED": text}).paused is False


@pytest.mark.parametrize("text", ["1", "true", "yes", "off", "nope", "0.0", "ture", "null"])
def test_a_kill_switch_that_cannot_be_read_is_set(text: str) -> None:
    assert load_settings({"COSTGUARD_PAUSED": text}).paused is True


def test_an_unknown_setting_is_refused_with_a_suggestion() -> None:
    with pytest.raises(InvalidInputError, match="COSTGUARD_PAUSE is no setting; did you mean COSTGUARD_PAUSED"):
        load_settings({"COSTGUARD_PAUSE": "1"})


def test_all_problems_are_named_at_once() -> None:
    with pytest.raises(InvalidInputError) as caught:
        load_settings(
            {
                "COSTGUARD_LANG": "fr",
                "COSTGUARD_CLOUD": "azure",
                "COSTGUARD_PACE": "quick",
                "AWS_ENDPOINT_URL": "localhost",
            }
        )
    for name in (
        "COSTGUARD_LANG is 'fr', expected one of en, zh",
        "COSTGUARD_CLOUD",
        "COSTGUARD_PACE is 'quick', expected one of vendor",
        "AWS_ENDPOINT_URL",
    ):
        assert name in str(caught.value)


@pytest.mark.parametrize("address", ["ftp://x/", "//x", "https:///api", "http://[::1", "slack.com/api"])
def test_an_address_that_is_none_is_refused_and_not_repeated(address: str) -> None:
    with pytest.raises(InvalidInputError) as caught:
        load_settings({"COSTGUARD_SLACK_URL": address})
    assert address not in str(caught.value)


@pytest.mark.parametrize(
    ("mark", "host"),
    [("AWS_LAMBDA_FUNCTION_NAME", "lambda"), ("FC_FUNCTION_NAME", "fc"), ("TENCENTCLOUD_RUNENV", "scf")],
)
def test_a_host_is_known_by_its_mark_and_remembers_nothing_by_default(mark: str, host: str) -> None:
    settings = load_settings({mark: "x"})
    assert settings.host == host
    assert settings.ledger.reveal() == "memory:"


def test_a_ledger_on_the_disk_of_a_function_is_refused() -> None:
    """SQLite calls itself durable; on a function host its file goes with the instance."""
    with pytest.raises(InvalidInputError, match="COSTGUARD_LEDGER is a SQLite file"):
        load_settings({"FC_FUNCTION_NAME": "x", "COSTGUARD_LEDGER": "SQLite:////tmp/ledger.sqlite3"})
    assert load_settings({"COSTGUARD_LEDGER": "sqlite:////tmp/ledger.sqlite3"}).host == "local"


def test_secrets_are_shown_nowhere() -> None:
    settings = load_settings(
        {"COSTGUARD_SLACK_TOKEN": "xoxb-made-up", "COSTGUARD_LEDGER": "postgresql://keeper:pa55word@db/costguard"}
    )
    for text in (repr(settings), str(settings), str(settings.slack_token), f"{settings.ledger}"):
        assert "xoxb" not in text
        assert "pa55word" not in text
    assert settings.secrets() == ("xoxb-made-up", "pa55word")


def test_secrets_compare_by_value_and_are_false_when_empty() -> None:
    assert Secret("a") == Secret("a") != Secret("b")
    assert len({Secret("a"), Secret("a")}) == 1
    assert not Secret("")


def test_the_documented_table_is_the_one_that_is_read() -> None:
    """docs/settings.md shows each variable as `| name | meaning | default | secret |`, in the order of VARIABLES."""
    rows = re.findall(
        r"^\| `([A-Z_]+)` \| (.+?) \| (.*?) \| (.*?) \|$", (ROOT / "docs/settings.md").read_text("utf-8"), re.MULTILINE
    )
    assert [(name, *last) for name, _, *last in rows] == [
        (v.name, v.default, "yes" if v.secret else "") for v in VARIABLES
    ]


@pytest.mark.release
def test_the_documented_meanings_are_those_of_the_code() -> None:
    page = (ROOT / "docs/settings.md").read_text("utf-8")
    assert [v.name for v in VARIABLES if f"| `{v.name}` | {v.meaning} |" not in page] == []


def test_a_refusal_is_short_and_fit_to_print() -> None:
    with pytest.raises(InvalidInputError) as caught:
        load_settings(
            {"COSTGUARD_" + "A" * 65_000: "1", "COSTGUARD_\x1b\udcff": "1", "COSTGUARD_LANG": "\u202e" * 9_000}
        )
    assert str(caught.value).isprintable()
    assert len(str(caught.value)) < 1000


ALIBABA = {"ALIBABA_CLOUD_ACCESS_KEY_ID": "id-1", "ALIBABA_CLOUD_ACCESS_KEY_SECRET": "s-1"}
SCF = {"TENCENTCLOUD_SECRETID": "id-2", "TENCENTCLOUD_SECRETKEY": "s-2", "TENCENTCLOUD_SESSIONTOKEN": "t-2"}
TCCLI = {"TENCENTCLOUD_SECRET_ID": "id-3", "TENCENTCLOUD_SECRET_KEY": "s-3"}


def test_keys_come_from_where_each_host_puts_them() -> None:
    settings = load_settings({**ALIBABA, **SCF, **TCCLI})
    assert settings.access("alibaba-intl").key == AccessKey("id-1", Secret("s-1"))
    assert settings.access("tencent").key == AccessKey("id-2", Secret("s-2"), Secret("t-2"))
    assert load_settings(TCCLI).tencent.key == AccessKey("id-3", Secret("s-3"))
    assert load_settings({}).access("aws-cn").key is None
    assert {"s-1", "s-2", "t-2"} <= set(settings.secrets())


@pytest.mark.parametrize(("there", "missing"), [tuple(ALIBABA), tuple(ALIBABA)[::-1], tuple(TCCLI), tuple(TCCLI)[::-1]])
def test_half_a_key_is_an_error_that_names_the_other_half(there: str, missing: str) -> None:
    with pytest.raises(InvalidInputError, match=f"{there} is set without {missing}"):
        load_settings({there: "x"})


def test_a_token_without_its_key_is_an_error() -> None:
    with pytest.raises(InvalidInputError, match="TENCENTCLOUD_SESSIONTOKEN is set without TENCENTCLOUD_SECRETID"):
        load_settings({"TENCENTCLOUD_SESSIONTOKEN": "x"})


def test_each_provider_has_its_own_role_and_stand_in() -> None:
    given = {"COSTGUARD_TENCENT_ROLE": "guard", "COSTGUARD_ALIBABA_ENDPOINT": "http://127.0.0.1:1"}
    settings = load_settings(given)
    assert (settings.tencent.role, settings.alibaba.role, settings.aws.role) == ("guard", "", "")
    assert settings.access("alibaba").endpoint_url == "http://127.0.0.1:1"
    with pytest.raises(InvalidInputError, match="COSTGUARD_TENCENT_ENDPOINT is no address"):
        load_settings({"COSTGUARD_TENCENT_ENDPOINT": "127.0.0.1"})


SMTP = {"COSTGUARD_SMTP_URL": "smtps://guard@mail.example.com", "COSTGUARD_SMTP_PASSWORD": "pa55word"}
SENDER = {"COSTGUARD_MAIL_FROM": "costguard@example.com"}


def test_a_mail_server_is_enough_to_send_by_it() -> None:
    settings = load_settings({**SMTP, **SENDER})
    assert (settings.mail_via, settings.mail_from) == ("smtp", "costguard@example.com")
    assert settings.smtp_url == "smtps://guard@mail.example.com"
    assert load_settings({**SENDER, "COSTGUARD_MAIL_VIA": "SES"}).mail_via == "ses"
    assert load_settings({**SMTP, **SENDER, "COSTGUARD_MAIL_VIA": "directmail"}).mail_via == "directmail"


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        (SMTP, "COSTGUARD_MAIL_FROM is not set"),
        (SENDER, "COSTGUARD_MAIL_FROM is set, and nothing sends mail; set COSTGUARD_SMTP_URL, or COSTGUARD_MAIL_VIA"),
        ({"COSTGUARD_SMTP_PASSWORD": "x"}, "COSTGUARD_SMTP_PASSWORD is set, and nothing sends mail"),
        ({**SENDER, "COSTGUARD_MAIL_VIA": "smtp"}, "COSTGUARD_MAIL_VIA is smtp; set COSTGUARD_SMTP_URL"),
        ({**SENDER, "COSTGUARD_MAIL_VIA": "sendmail"}, "expected one of smtp, ses, directmail"),
        ({**SMTP, "COSTGUARD_MAIL_FROM": "Costguard <c@example.com>"}, "expected one address such as"),
        ({**SMTP, "COSTGUARD_MAIL_FROM": "c@example.com\nBcc: d@example.com"}, "expected one address such as"),
        (
            {**SENDER, "COSTGUARD_MAIL_VIA": "ses", "COSTGUARD_CLOUD": "aws-cn"},
            "not offered in aws-cn; use smtp or directmail",
        ),
        (
            {**SENDER, "COSTGUARD_MAIL_VIA": "directmail", "ALIYUN_ACCESS_KEY_ID": "x"},
            "directmail; unset ALIYUN_ACCESS_KEY_ID",
        ),
        ({"COSTGUARD_WEBHOOK_SECRET": "short"}, "COSTGUARD_WEBHOOK_SECRET is shorter than 16 letters"),
        ({"COSTGUARD_WEBHOOK_PRIVATE": "maybe"}, "COSTGUARD_WEBHOOK_PRIVATE is 'maybe', expected 1, or nothing"),
    ],
)
def test_half_a_channel_is_an_error_that_names_what_is_missing(given: dict[str, str], problem: str) -> None:
    with pytest.raises(InvalidInputError, match=re.escape(problem)):
        load_settings(given)


@pytest.mark.parametrize(("text", "allowed"), [("1", True), ("Yes", True), ("0", False), ("", False), ("no", False)])
def test_webhooks_reach_private_addresses_only_where_that_is_said(text: str, *, allowed: bool) -> None:
    assert load_settings({"COSTGUARD_WEBHOOK_PRIVATE": text}).webhook_private is allowed


def test_the_secrets_of_channels_are_secrets() -> None:
    secrets = {"COSTGUARD_WEBHOOK_SECRET": "0123456789abcdef", "COSTGUARD_SMTP_URL": "smtp://g:inurl@mail.example.com"}
    settings = load_settings({**SMTP, **SENDER, **secrets})
    assert {"0123456789abcdef", "pa55word", "inurl"} <= set(settings.secrets())
    assert "0123456789abcdef" not in repr(settings)
    assert "pa55word" not in repr(settings)
