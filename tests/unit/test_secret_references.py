"""Settings that are kept in a secret store: `secret:NAME`, read once, and never taken for empty."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from io import StringIO
from types import SimpleNamespace
from typing import Any

import pytest

from cloudstand.clock import MovedClock
from costguard.connections.secrets import KEPT_FOR, SecretKeeper, open_secret_store
from costguard.domain.errors import AccessDeniedError, InvalidInputError, NotFoundError, ProviderError
from costguard.engine.doctor.settings import examine_secrets
from costguard.faas.handler import build_handler, build_http_handler
from costguard.providers.alibaba.core.services import AlibabaSecrets
from costguard.providers.aws.core.services import AwsSecrets
from costguard.providers.tencent.core.services import TencentSecrets
from costguard.report.doctor.checks import Code, Health
from costguard.report.doctor.views import check_lines
from costguard.report.words.sentences import Language
from costguard.settings import Secret, SecretReference, Settings, load_settings, references_in

NOW = datetime(2026, 3, 2, 9, tzinfo=timezone.utc)
ON_LAMBDA = {"AWS_LAMBDA_FUNCTION_NAME": "costguard", "AWS_REGION": "eu-west-1"}
ON_FC = {"FC_FUNCTION_NAME": "costguard", "FC_REGION": "cn-shanghai"}
ON_SCF = {"TENCENTCLOUD_RUNENV": "SCF", "TENCENTCLOUD_REGION": "ap-shanghai"}
SLACK, LINK = "COSTGUARD_SLACK_TOKEN", "COSTGUARD_LINK_SECRET"
TOKEN = "xoxb-0123456789-canary"


class Shelf:
    """A `SecretStore` of texts by name; `asked` is who was asked for what."""

    def __init__(self, kept: dict[str, str | Exception]) -> None:
        self.kept = kept
        self.asked: list[tuple[str, str, str, str]] = []
        self.keys: list[Any] = []

    def opened(self, settings: Settings, reference: SecretReference, region: str) -> Shelf:
        self.asked.append((reference.cloud, region, reference.name, reference.version))
        self.keys.append(settings.alibaba.key)
        return self

    def read(self, name: str, version: str = "") -> str:
        del version
        found = self.kept.get(name, NotFoundError("there is none", operation="x:GetSecretValue"))
        if isinstance(found, Exception):
            raise found
        return found

    def fix_for(self, error: ProviderError) -> str:
        return "grant it" if isinstance(error, AccessDeniedError) else ""


def reference(value: str, setting: str = SLACK, **more: str) -> SecretReference:
    (found,) = references_in(load_settings({setting: value, **more}))
    return found


@pytest.mark.parametrize(
    ("host", "value", "expected"),
    [
        (ON_LAMBDA, "secret:costguard/slack", ("aws", "costguard/slack", "", "", "")),
        (ON_FC, "secret:slack#token", ("alibaba", "slack", "token", "", "")),
        (ON_FC, "secret:oss://acme-1/secrets/slack#token", ("alibaba", "oss://acme-1/secrets/slack", "token", "", "")),
        (
            ON_LAMBDA,
            "secret:alibaba-intl:oss://acme-1/a/b?region=ap-southeast-1",
            ("alibaba-intl", "oss://acme-1/a/b", "", "ap-southeast-1", ""),
        ),
        (ON_SCF, "secret:slack?version=v1", ("tencent", "slack", "", "", "v1")),
        (
            {},
            "secret:tencent-intl:slack?region=ap-tokyo&version=v1#a b",
            ("tencent-intl", "slack", "a b", "ap-tokyo", "v1"),
        ),
        (ON_FC, "secret:aws:slack?region=us-east-1", ("aws", "slack", "", "us-east-1", "")),
        (
            {},
            "secret:arn:aws-cn:secretsmanager:cn-north-1:111122223333:secret:slack-AbCdEf#token",
            (
                "aws-cn",
                "arn:aws-cn:secretsmanager:cn-north-1:111122223333:secret:slack-AbCdEf",
                "token",
                "cn-north-1",
                "",
            ),
        ),
    ],
)
def test_a_reference_says_where_and_what(host: dict[str, str], value: str, expected: tuple[str, ...]) -> None:
    found = reference(value, **host)
    assert (found.cloud, found.name, found.field, found.region, found.version) == expected
    assert found.setting == SLACK


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({SLACK: "secret:slack"}, "COSTGUARD_SLACK_TOKEN names no secret store"),
        ({SLACK: "secret:azure:slack"}, "names no secret store"),
        ({SLACK: "secret:", **ON_LAMBDA}, "is no name of a secret"),
        ({SLACK: "secret:a b", **ON_LAMBDA}, "is no name of a secret"),
        ({SLACK: "secret:a?zone=1", **ON_LAMBDA}, "is no name of a secret"),
        ({SLACK: "secret:a?version=v1", **ON_LAMBDA}, "versions are named on Tencent Cloud only"),
        ({SLACK: "secret:aws:oss://acme-1/slack"}, "from a bucket of Alibaba Cloud only"),
        ({SLACK: "secret:oss://acme-1", **ON_FC}, "names no secret store"),
        ({SLACK: "secret:oss://acme-1//slack", **ON_FC}, "names no secret store"),
        ({SLACK: "secret:s3://acme-1/slack", **ON_FC}, "names no secret store"),
        (
            {"ALIBABA_CLOUD_ACCESS_KEY_ID": "id", "ALIBABA_CLOUD_ACCESS_KEY_SECRET": "secret:oss://acme-1/key"},
            "is what the secret store of alibaba is read with",
        ),
        ({"COSTGUARD_POLICY": "secret:aws:policy"}, "COSTGUARD_POLICY holds no secret"),
        ({"COSTGUARD_PAUSED": "secret:aws:paused"}, "COSTGUARD_PAUSED holds no secret"),
        (
            {"ALIBABA_CLOUD_ACCESS_KEY_ID": "id", "ALIBABA_CLOUD_ACCESS_KEY_SECRET": "secret:alibaba:key"},
            "is what the secret store of alibaba is read with",
        ),
    ],
)
def test_what_leads_nowhere_is_an_error_that_names_the_setting(given: dict[str, str], problem: str) -> None:
    with pytest.raises(InvalidInputError, match=problem):
        load_settings(given)


def test_a_secret_that_was_not_read_is_there_and_shows_no_value() -> None:
    settings = load_settings({SLACK: "secret:aws:slack"})
    assert settings.slack_token
    assert "slack" not in repr(settings.slack_token)
    with pytest.raises(InvalidInputError, match="COSTGUARD_SLACK_TOKEN was not read"):
        settings.slack_token.reveal()
    assert settings.secrets() == ()


def test_every_secret_is_put_in_its_place() -> None:
    key = {"TENCENTCLOUD_SECRET_ID": "id", "TENCENTCLOUD_SECRET_KEY": "secret:aws:cloud#tencent"}
    given = {SLACK: "secret:aws:slack", "COSTGUARD_LEDGER": "secret:aws:cloud#ledger", **key}
    shelf = Shelf({"slack": TOKEN, "cloud": json.dumps({"tencent": "k" * 20, "ledger": "postgresql://me:canary@db/x"})})

    settings = SecretKeeper(shelf.opened).settled(load_settings(given), NOW)

    assert references_in(settings) == ()
    assert settings.slack_token == Secret(TOKEN)
    assert settings.ledger.reveal() == "postgresql://me:canary@db/x"
    assert settings.tencent.key is not None
    assert settings.tencent.key.secret.reveal() == "k" * 20
    assert {TOKEN, "canary", "k" * 20} <= set(settings.secrets())
    assert len(shelf.asked) == 2  # one secret, asked for once, holds two settings


@pytest.mark.parametrize(
    ("host", "store", "region"),
    [
        ({SLACK: "secret:a", **ON_LAMBDA}, AwsSecrets, "eu-west-1"),
        ({SLACK: "secret:aws-cn:a"}, AwsSecrets, "cn-north-1"),
        ({SLACK: "secret:a", **ON_FC}, AlibabaSecrets, "cn-shanghai"),
        ({SLACK: "secret:alibaba-intl:a"}, AlibabaSecrets, "ap-southeast-1"),
        ({SLACK: "secret:a", **ON_SCF}, TencentSecrets, "ap-shanghai"),
        ({SLACK: "secret:tencent:a"}, TencentSecrets, "ap-guangzhou"),
        ({SLACK: "secret:a?region=eu-frankfurt", **ON_SCF}, TencentSecrets, "eu-frankfurt"),
    ],
)
def test_the_host_decides_the_store_and_the_region(host: dict[str, str], store: type, region: str) -> None:
    shelf = Shelf({"a": TOKEN})
    settings = load_settings(host)
    SecretKeeper(shelf.opened).settled(settings, NOW)
    assert shelf.asked[0][1] == region
    (found,) = references_in(settings)
    assert isinstance(open_secret_store(settings, found, region), store)


def test_an_impossible_region_is_said_of_the_setting() -> None:
    settings = load_settings({SLACK: "secret:alibaba:a?region=evil.example"})
    with pytest.raises(InvalidInputError, match=f"{SLACK}.*no region"):
        SecretKeeper().settled(settings, NOW)


def test_nothing_is_sent_with_a_key_that_the_vendors_sdk_would_take_instead() -> None:
    settings = load_settings({SLACK: "secret:alibaba:a", "ALIYUN_ACCESS_KEY_ID": "another"})
    with pytest.raises(InvalidInputError, match="unset ALIYUN_ACCESS_KEY_ID"):
        SecretKeeper().settled(settings, NOW)


def test_it_is_read_again_after_a_quarter_of_an_hour() -> None:
    shelf = Shelf({"slack": "old-token"})
    keeper, settings = SecretKeeper(shelf.opened), load_settings({SLACK: "secret:aws:slack"})

    def token(at: datetime) -> str:
        return keeper.settled(settings, at).slack_token.reveal()

    assert token(NOW) == "old-token"
    shelf.kept["slack"] = "new-token"
    assert timedelta(minutes=15) == KEPT_FOR
    assert token(NOW + KEPT_FOR - timedelta(seconds=1)) == "old-token"
    assert token(NOW + KEPT_FOR) == "new-token"
    shelf.kept["slack"] = AccessDeniedError("no")
    with pytest.raises(AccessDeniedError):
        token(NOW + 2 * KEPT_FOR)
    shelf.kept["slack"] = "newest-token"
    assert token(NOW + 2 * KEPT_FOR) == "newest-token"


def test_a_failure_names_the_setting_the_secret_and_what_to_do() -> None:
    shelf = Shelf({"slack": AccessDeniedError("x:GetSecretValue: no", operation="x:GetSecretValue", code="No")})
    with pytest.raises(AccessDeniedError) as raised:
        SecretKeeper(shelf.opened).settled(load_settings({SLACK: "secret:aws:slack"}), NOW)
    for word in (SLACK, "slack", "aws", "us-east-1", "x:GetSecretValue", "grant it"):
        assert word in str(raised.value)
    with pytest.raises(NotFoundError, match=r"\?region=REGION"):
        SecretKeeper(shelf.opened).settled(load_settings({SLACK: "secret:aws:never"}), NOW)


@pytest.mark.parametrize(
    "kept", [TOKEN, f'["{TOKEN}"]', '{"other": "' + TOKEN + '"}', '{"token": 7}', '{"token": ""}', "[" * 5000]
)
def test_a_field_that_is_not_there_is_an_error_that_repeats_nothing(kept: str) -> None:
    with pytest.raises(InvalidInputError) as raised:
        SecretKeeper(Shelf({"slack": kept}).opened).settled(load_settings({SLACK: "secret:aws:slack#token"}), NOW)
    assert "'token'" in str(raised.value)
    assert TOKEN not in str(raised.value)
    assert raised.value.__context__ is None


def test_what_was_read_is_checked_as_if_it_had_been_written_there() -> None:
    given = {LINK: "secret:aws:link", "COSTGUARD_ANSWER_URL": "https://answers.example.com"}
    with pytest.raises(InvalidInputError, match="COSTGUARD_LINK_SECRET is shorter than 32 letters"):
        SecretKeeper(Shelf({"link": "short"}).opened).settled(load_settings(given), NOW)
    ledger = {"COSTGUARD_LEDGER": "secret:ledger", **ON_LAMBDA}
    with pytest.raises(InvalidInputError, match="SQLite file"):
        SecretKeeper(Shelf({"ledger": "sqlite:////tmp/x"}).opened).settled(load_settings(ledger), NOW)


def test_what_stands_in_plain_text_is_known_by_name() -> None:
    given = {SLACK: TOKEN, LINK: "secret:aws:link", "COSTGUARD_ANSWER_URL": "https://answers.example.com"}
    assert load_settings(given).plaintext == (SLACK,)
    assert load_settings({"COSTGUARD_LEDGER": "dynamodb://table?region=us-east-1"}).plaintext == ()
    assert load_settings({"COSTGUARD_LEDGER": "postgresql://me:pw@db/x"}).plaintext == ("COSTGUARD_LEDGER",)


# where functions run


def timer(host: str) -> Any:
    if host == "fc":
        return json.dumps({"triggerTime": "2026-03-02T09:00:00Z", "triggerName": "hourly", "payload": ""}).encode()
    return {"time": "2026-03-02T09:00:00Z", "detail-type": "Scheduled Event", "source": "aws.events"}


def context(credentials: Any = None) -> Any:
    return SimpleNamespace(
        aws_request_id="r",
        request_id="r",
        credentials=credentials,
        get_remaining_time_in_millis=lambda: 60_000,
        function=SimpleNamespace(timeout=60, name="f"),
    )


def running(given: dict[str, str], secrets: Any, seen: list[Settings], stream: Any) -> Callable[[Any, Any], Any]:
    def run(function: str, run_id: str, deadline: Any, settings: Settings, clock: Any) -> dict[str, object]:
        del function, run_id, deadline, clock
        seen.append(settings)
        return {"findings": {}, "said": TOKEN}

    return build_handler(
        "idle_gpu",
        run=run,
        settings=lambda: load_settings(given),
        clock=MovedClock(NOW),
        stream=stream,
        secrets=secrets,
    )


def test_a_function_runs_with_the_secrets_of_its_hosts_store() -> None:
    shelf, seen, stream = Shelf({"slack": TOKEN}), list[Settings](), StringIO()
    keeper = SecretKeeper(shelf.opened)
    handle = running(
        {SLACK: "secret:slack", **ON_LAMBDA}, lambda found, clock: keeper.settled(found, clock.now()), seen, stream
    )
    handle(timer("lambda"), context())
    handle(timer("lambda"), context())
    assert [settings.slack_token.reveal() for settings in seen] == [TOKEN, TOKEN]
    assert len(shelf.asked) == 1


def test_plain_text_works_and_the_log_names_it_once() -> None:
    seen, stream = list[Settings](), StringIO()
    handle = running({SLACK: TOKEN, **ON_LAMBDA}, None, seen, stream)
    for _ in range(2):
        handle(timer("lambda"), context())
    assert [settings.slack_token.reveal() for settings in seen] == [TOKEN, TOKEN]
    assert stream.getvalue().count("secrets in plain text") == 1
    assert TOKEN not in stream.getvalue()


def test_the_doctor_names_it_with_the_hosts_own_store() -> None:
    settings = load_settings({SLACK: TOKEN, **ON_SCF})
    (check,) = examine_secrets(settings.plaintext, settings.host)
    assert (check.code, check.health, check.target) == (Code.PLAIN_TEXT_FOUND, Health.WARNING, SLACK)
    told = "".join(check_lines(check, Language.EN))
    assert SLACK in told
    assert "SSM" in told
    assert TOKEN not in told
    assert list(examine_secrets((SLACK,), "local")) == []
    assert [check.code for check in examine_secrets((), "fc")] == [Code.PLAIN_TEXT_NONE]


def test_the_keys_of_the_call_read_them_on_function_compute() -> None:
    shelf, seen = Shelf({"slack": TOKEN}), list[Settings]()
    keeper = SecretKeeper(shelf.opened)
    handle = running(
        {SLACK: "secret:slack", **ON_FC}, lambda found, clock: keeper.settled(found, clock.now()), seen, StringIO()
    )
    brought = SimpleNamespace(access_key_id="STS.abc", access_key_secret="s", security_token="t")
    handle(timer("fc"), context(brought))
    assert shelf.keys[0].key_id == "STS.abc"


def test_a_secret_that_cannot_be_read_ends_the_run_with_an_error_in_the_log() -> None:
    shelf, seen, stream = Shelf({"slack": AccessDeniedError("x:GetSecretValue: no")}), list[Settings](), StringIO()
    keeper = SecretKeeper(shelf.opened)

    def secrets(found: Settings, clock: Any) -> Settings:
        return keeper.settled(found, clock.now())

    handle = running({SLACK: "secret:slack", **ON_LAMBDA}, secrets, seen, stream)
    with pytest.raises(AccessDeniedError, match=SLACK):
        handle(timer("lambda"), context())
    assert seen == []
    assert SLACK in stream.getvalue()
    answers = build_http_handler(
        "slack_actions",
        answer=lambda *_: pytest.fail("answered without its secrets"),
        settings=lambda: load_settings({SLACK: "secret:slack", **ON_LAMBDA}),
        clock=MovedClock(NOW),
        stream=stream,
        secrets=secrets,
    )
    assert answers({"version": "2.0"}, context())["statusCode"] == 500


def test_nothing_is_loaded_for_it_where_no_setting_refers_to_a_store() -> None:
    program = (
        "import sys; from costguard.faas.handler import KeptSecrets; from costguard.settings import load_settings;"
        "KeptSecrets()(load_settings({'COSTGUARD_SLACK_TOKEN': 'xoxb-1'}), None);"
        "print([name for name in sys.modules if name.startswith('costguard.') and 'secrets' in name or name in "
        "{'boto3', 'botocore', 'aliyunsdkcore', 'tencentcloud'} or name.startswith('costguard.providers')])"
    )
    told = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)  # noqa: S603
    assert told.stdout.strip() == "[]"
