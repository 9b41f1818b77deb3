"""From the environment to settings: the only place that reads it."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping

from costguard.domain.errors import InvalidInputError
from costguard.domain.refs import CLOUDS
from costguard.settings.checks import (
    KNOWN,
    NOT_PAUSED,
    PREFIX,
    YES,
    days_of,
    half_a_key,
    unknown,
    wrong_address,
    wrong_answers,
    wrong_choice,
    wrong_choice_of_private,
    wrong_days,
    wrong_git,
    wrong_mail,
    wrong_name,
    wrong_prometheus,
    wrong_sandbox,
    wrong_secrets,
    wrong_slack_address,
)
from costguard.settings.model import Access, AccessKey, Secret, SecretReference, Settings, password_of
from costguard.settings.references import is_reference, secret_of, with_values, wrong_references
from costguard.settings.variables import (
    DEFAULT_LEDGER,
    DEFAULT_NAME,
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


def process_environment() -> dict[str, str]:
    """All of this process's environment, for a program of the person's own that it starts; never to be shown."""
    return dict(os.environ)


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
        deployment=values["COSTGUARD_NAME"] or DEFAULT_NAME,
        policy=values["COSTGUARD_POLICY"],
        ledger=secret_of(values, "COSTGUARD_LEDGER", host, DEFAULT_LEDGER if host == "local" else HOSTED_LEDGER),
        slack_token=secret_of(values, "COSTGUARD_SLACK_TOKEN", host),
        slack_url=values["COSTGUARD_SLACK_URL"] or SLACK_API_URL,
        slack_signing_secret=secret_of(values, "COSTGUARD_SLACK_SIGNING_SECRET", host),
        mail_from=values["COSTGUARD_MAIL_FROM"],
        mail_via=values["COSTGUARD_MAIL_VIA"].lower() or ("smtp" if values["COSTGUARD_SMTP_URL"] else ""),
        smtp_url=values["COSTGUARD_SMTP_URL"],
        smtp_password=secret_of(values, "COSTGUARD_SMTP_PASSWORD", host),
        webhook_secret=secret_of(values, "COSTGUARD_WEBHOOK_SECRET", host),
        webhook_private=values["COSTGUARD_WEBHOOK_PRIVATE"].lower() in YES,
        robots=secret_of(values, "COSTGUARD_ROBOTS", host),
        answer_url=values["COSTGUARD_ANSWER_URL"].rstrip("/"),
        link_secret=secret_of(values, "COSTGUARD_LINK_SECRET", host),
        reports=values["COSTGUARD_REPORTS"],
        audit_days=days_of(values["COSTGUARD_AUDIT_DAYS"]),
        git_hosts=_hosts(values["COSTGUARD_GIT_HOSTS"]),
        prometheus_authorization=secret_of(values, "COSTGUARD_PROMETHEUS_AUTHORIZATION", host),
        prometheus_hosts=_hosts(values["COSTGUARD_PROMETHEUS_HOSTS"]),
        paused=values["COSTGUARD_PAUSED"].lower() not in NOT_PAUSED,
        language=values["COSTGUARD_LANG"].lower() or "en",
        log_level=values["COSTGUARD_LOG_LEVEL"].upper() or "INFO",
        cloud=values["COSTGUARD_CLOUD"] or "aws",
        aws=_access(values, "AWS", endpoint="AWS_ENDPOINT_URL"),
        alibaba=_access(values, "ALIBABA", key=_key_of(values, host, *ALIBABA_KEY)),
        tencent=_access(values, "TENCENT", key=_key_of(values, host, *SCF_KEY) or _key_of(values, host, *TENCENT_KEY)),
        aws_profile=values["AWS_PROFILE"],
        aws_region=values["AWS_REGION"] or values["AWS_DEFAULT_REGION"],
        alibaba_region=values["FC_REGION"],
        tencent_region=values["TENCENTCLOUD_REGION"],
        alibaba_overridden=bool(values["ALIYUN_ACCESS_KEY_ID"]),
        plaintext=_in_plain_text(values),
        sandbox=values["COSTGUARD_SANDBOX"].rstrip("/"),
    )
    problems += wrong_references(values, host)
    problems += wrong_name(settings.deployment)
    problems += wrong_choice("COSTGUARD_LANG", settings.language, LANGUAGES)
    problems += wrong_choice("COSTGUARD_LOG_LEVEL", settings.log_level, LOG_LEVELS)
    problems += wrong_choice("COSTGUARD_CLOUD", settings.cloud, CLOUDS)
    problems += wrong_slack_address(settings.slack_url)
    problems += wrong_mail(settings)
    problems += wrong_choice_of_private(values["COSTGUARD_WEBHOOK_PRIVATE"])
    problems += wrong_secrets(settings)
    problems += wrong_days(values["COSTGUARD_AUDIT_DAYS"])
    problems += wrong_answers(settings)
    problems += wrong_git(settings)
    problems += wrong_prometheus(settings)
    problems += wrong_sandbox(settings.sandbox, host)
    for name in ("AWS_ENDPOINT_URL", "COSTGUARD_ALIBABA_ENDPOINT", "COSTGUARD_TENCENT_ENDPOINT"):
        problems += wrong_address(name, values[name])
    for key in (ALIBABA_KEY, SCF_KEY, TENCENT_KEY):
        problems += half_a_key(values, *key)
    if problems:
        raise InvalidInputError("environment: " + "; ".join(problems))
    return _without_accounts(settings) if settings.sandbox else settings


def _without_accounts(settings: Settings) -> Settings:
    """What is left where a sandbox is followed: no address, key, channel or ledger of a real account.

    Whoever asks a cloud before the sandbox has said where its own are gets nowhere but to it.
    """
    nowhere = Access(endpoint_url=settings.sandbox, key=AccessKey("sandbox", Secret("sandbox")))
    return Settings(
        deployment=settings.deployment,
        policy=settings.policy,
        ledger=Secret("memory:"),
        slack_url=f"{settings.sandbox}/",
        git_hosts=settings.git_hosts,
        paused=settings.paused,
        language=settings.language,
        log_level=settings.log_level,
        cloud=settings.cloud,
        aws=nowhere,
        alibaba=nowhere,
        tencent=nowhere,
        alibaba_overridden=settings.alibaba_overridden,
        sandbox=settings.sandbox,
    )


def with_secrets(settings: Settings, read: Callable[[SecretReference], str]) -> Settings:
    """The settings with what `read` gives for every secret that is kept elsewhere, checked as the others were.

    Raises:
        InvalidInputError: a value that is none; names them all, and repeats none.
    """
    found = with_values(settings, read)
    problems = wrong_secrets(found)
    if problems:
        raise InvalidInputError("secret store: " + "; ".join(problems))
    return found


def _hosts(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.lower().split(",") if part.strip())


def _in_plain_text(values: Mapping[str, str]) -> tuple[str, ...]:
    """Settings of ours whose secret stands in the environment; of addresses of ledgers those with a password."""
    names = (variable.name for variable in VARIABLES if variable.secret and variable.name.startswith(PREFIX))
    return tuple(
        name
        for name in names
        if values[name] and not is_reference(values[name]) and (name != "COSTGUARD_LEDGER" or password_of(values[name]))
    )


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


def _key_of(values: Mapping[str, str], host: str, key_id: str, secret: str, token: str = "") -> AccessKey | None:
    if not values[key_id] or not values[secret]:
        return None
    return AccessKey(
        values[key_id], secret_of(values, secret, host), secret_of(values, token, host) if token else Secret()
    )
