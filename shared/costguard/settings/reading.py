"""From the environment to settings: the only place that reads it."""

from __future__ import annotations

import os
from collections.abc import Mapping

from costguard.domain.errors import InvalidInputError
from costguard.domain.refs import CLOUDS
from costguard.settings.checks import (
    KNOWN,
    NOT_PAUSED,
    PREFIX,
    YES,
    forgetful_ledger,
    half_a_key,
    unknown,
    wrong_address,
    wrong_answers,
    wrong_choice,
    wrong_mail,
    wrong_webhook,
)
from costguard.settings.model import Access, AccessKey, Secret, Settings
from costguard.settings.variables import (
    DEFAULT_LEDGER,
    HOST_MARKS,
    HOSTED_LEDGER,
    LANGUAGES,
    LOG_LEVELS,
    SLACK_API_URL,
    VARIABLES,
)


def process_settings() -> Settings:
    """The settings of this process.

    Raises:
        InvalidInputError: as `load_settings`.
    """
    return load_settings(os.environ)


def load_settings(environ: Mapping[str, str]) -> Settings:
    """Read and check every variable of `VARIABLES`.

    Raises:
        InvalidInputError: an unknown `COSTGUARD_…` variable, or a value that is none; names them all.
    """
    problems = [unknown(name) for name in sorted(environ) if name.startswith(PREFIX) and name not in KNOWN]
    values = {variable.name: environ.get(variable.name, "").strip() for variable in VARIABLES}
    host = next((host for mark, host in HOST_MARKS if values[mark]), "local")
    settings = Settings(
        host=host,
        policy=values["COSTGUARD_POLICY"],
        ledger=Secret(values["COSTGUARD_LEDGER"] or (DEFAULT_LEDGER if host == "local" else HOSTED_LEDGER)),
        slack_token=Secret(values["COSTGUARD_SLACK_TOKEN"]),
        slack_url=values["COSTGUARD_SLACK_URL"] or SLACK_API_URL,
        slack_signing_secret=Secret(values["COSTGUARD_SLACK_SIGNING_SECRET"]),
        mail_from=values["COSTGUARD_MAIL_FROM"],
        mail_via=values["COSTGUARD_MAIL_VIA"].lower() or ("smtp" if values["COSTGUARD_SMTP_URL"] else ""),
        smtp_url=values["COSTGUARD_SMTP_URL"],
        smtp_password=Secret(values["COSTGUARD_SMTP_PASSWORD"]),
        webhook_secret=Secret(values["COSTGUARD_WEBHOOK_SECRET"]),
        webhook_private=values["COSTGUARD_WEBHOOK_PRIVATE"].lower() in YES,
        robots=Secret(values["COSTGUARD_ROBOTS"]),
        answer_url=values["COSTGUARD_ANSWER_URL"].rstrip("/"),
        link_secret=Secret(values["COSTGUARD_LINK_SECRET"]),
        reports=values["COSTGUARD_REPORTS"],
        prometheus_authorization=Secret(values["COSTGUARD_PROMETHEUS_AUTHORIZATION"]),
        paused=values["COSTGUARD_PAUSED"].lower() not in NOT_PAUSED,
        language=values["COSTGUARD_LANG"].lower() or "en",
        log_level=values["COSTGUARD_LOG_LEVEL"].upper() or "INFO",
        cloud=values["COSTGUARD_CLOUD"] or "aws",
        aws=_access(values, "AWS", endpoint="AWS_ENDPOINT_URL"),
        alibaba=_access(values, "ALIBABA", key=_key_of(values, *ALIBABA_KEY)),
        tencent=_access(values, "TENCENT", key=_key_of(values, *SCF_KEY) or _key_of(values, *TENCENT_KEY)),
        aws_profile=values["AWS_PROFILE"],
        aws_region=values["AWS_REGION"] or values["AWS_DEFAULT_REGION"],
        alibaba_overridden=bool(values["ALIYUN_ACCESS_KEY_ID"]),
    )
    problems += wrong_choice("COSTGUARD_LANG", settings.language, LANGUAGES)
    problems += wrong_choice("COSTGUARD_LOG_LEVEL", settings.log_level, LOG_LEVELS)
    problems += wrong_choice("COSTGUARD_CLOUD", settings.cloud, CLOUDS)
    problems += wrong_address("COSTGUARD_SLACK_URL", settings.slack_url)
    problems += wrong_mail(settings)
    problems += wrong_webhook(settings, values["COSTGUARD_WEBHOOK_PRIVATE"])
    problems += wrong_answers(settings)
    for name in ("AWS_ENDPOINT_URL", "COSTGUARD_ALIBABA_ENDPOINT", "COSTGUARD_TENCENT_ENDPOINT"):
        problems += wrong_address(name, values[name])
    for key in (ALIBABA_KEY, SCF_KEY, TENCENT_KEY):
        problems += half_a_key(values, *key)
    problems += forgetful_ledger(host, settings.ledger)
    if problems:
        raise InvalidInputError("environment: " + "; ".join(problems))
    return settings


ALIBABA_KEY = ("ALIBABA_CLOUD_ACCESS_KEY_ID", "ALIBABA_CLOUD_ACCESS_KEY_SECRET", "ALIBABA_CLOUD_SECURITY_TOKEN")
SCF_KEY = ("TENCENTCLOUD_SECRETID", "TENCENTCLOUD_SECRETKEY", "TENCENTCLOUD_SESSIONTOKEN")
TENCENT_KEY = ("TENCENTCLOUD_SECRET_ID", "TENCENTCLOUD_SECRET_KEY")


def _access(values: Mapping[str, str], name: str, *, endpoint: str = "", key: AccessKey | None = None) -> Access:
    return Access(
        role=values[f"COSTGUARD_{name}_ROLE"],
        external_id=values[f"COSTGUARD_{name}_EXTERNAL_ID"],
        endpoint_url=values[endpoint or f"COSTGUARD_{name}_ENDPOINT"],
        key=key,
    )


def _key_of(values: Mapping[str, str], key_id: str, secret: str, token: str = "") -> AccessKey | None:
    if not values[key_id] or not values[secret]:
        return None
    return AccessKey(values[key_id], Secret(values[secret]), Secret(values[token] if token else ""))
