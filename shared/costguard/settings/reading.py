"""From the environment to settings: the only place that reads it."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields, replace
from functools import partial
from typing import Any

from costguard.domain.errors import InvalidInputError
from costguard.domain.refs import CLOUDS, provider_of
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
from costguard.settings.variables import (
    DEFAULT_LEDGER,
    DEFAULT_NAME,
    HOST_MARKS,
    HOSTED_LEDGER,
    LANGUAGES,
    LOG_LEVELS,
    NOTICE_DAYS,
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
        notice_days=days_of(values["COSTGUARD_NOTICE_DAYS"]) or NOTICE_DAYS,
        git_hosts=_hosts(values["COSTGUARD_GIT_HOSTS"]),
        forge_token=secret_of(values, "COSTGUARD_FORGE_TOKEN", host),
        forge_repository=values["COSTGUARD_FORGE_REPOSITORY"],
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
        paced=values["COSTGUARD_PACE"].lower() == "vendor",
    )
    problems += wrong_references(values, host)
    problems += wrong_name(settings.deployment)
    problems += wrong_choice("COSTGUARD_LANG", settings.language, LANGUAGES)
    problems += wrong_choice("COSTGUARD_LOG_LEVEL", settings.log_level, LOG_LEVELS)
    problems += wrong_choice("COSTGUARD_CLOUD", settings.cloud, CLOUDS)
    problems += wrong_choice("COSTGUARD_PACE", values["COSTGUARD_PACE"].lower() or "vendor", ("vendor",))
    problems += wrong_slack_address(settings.slack_url)
    problems += wrong_mail(settings)
    problems += wrong_choice_of_private(values["COSTGUARD_WEBHOOK_PRIVATE"])
    problems += wrong_secrets(settings)
    for name in ("COSTGUARD_AUDIT_DAYS", "COSTGUARD_NOTICE_DAYS"):
        problems += wrong_days(name, values[name])
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
        paced=settings.paced,
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


BEGINNING = "secret:"
_OWN_STORE = {"lambda": "aws", "fc": "alibaba", "scf": "tencent"}
_FORM = re.compile(
    rf"""(?x) secret:
    (?: (?P<cloud>{"|".join(sorted(CLOUDS, key=len, reverse=True))}) : )?
    (?P<name> [A-Za-z0-9/_+=.@:-]{{1,512}} )
    (?: \? (?P<query> (?: region | version ) = [A-Za-z0-9._-]{{1,64}}
               (?: & (?: region | version ) = [A-Za-z0-9._-]{{1,64}} )? ) )?
    (?: \# (?P<key> [^\x00-\x1f]{{1,256}} ) )?""",
    re.ASCII,
)
_ARN = re.compile(r"arn:(?P<cloud>aws(?:-cn|-us-gov)?):secretsmanager:(?P<region>[a-z0-9-]{4,32}):[0-9]{12}:secret:.+")
_HOLD_SECRETS = frozenset(variable.name for variable in VARIABLES if variable.secret)
_OBJECT = re.compile(r"oss://[a-z0-9][a-z0-9-]{2,62}(?:/[A-Za-z0-9_+=.@-]+)+")
_EXPECTED = "expected secret:NAME, secret:NAME#FIELD or secret:CLOUD:NAME (docs/settings.md)"


def is_reference(value: str) -> bool:
    """Whether a setting's value says where the real one is kept."""
    return value.startswith(BEGINNING)


def secret_of(values: Mapping[str, str], setting: str, host: str, default: str = "") -> Secret:
    """The secret that a setting holds or refers to; nothing where it refers in no known way, see `wrong_references`."""
    value = values[setting] or default
    if not is_reference(value):
        return Secret(value)
    try:
        return Secret(reference=reference_of(setting, value, host))
    except InvalidInputError:
        return Secret()


def wrong_references(values: Mapping[str, str], host: str) -> list[str]:
    """References that cannot be followed, and those in settings that hold no secret."""
    problems = []
    for setting, value in values.items():
        if not is_reference(value):
            continue
        if setting not in _HOLD_SECRETS:
            problems.append(f"{setting} holds no secret, so it is read from no secret store; write its value")
            continue
        try:
            reference_of(setting, value, host)
        except InvalidInputError as err:
            problems.append(str(err))
    return problems


def reference_of(setting: str, value: str, host: str) -> SecretReference:
    """Where the value of a setting is kept. An ARN of AWS names cloud and region by itself.

    Raises:
        InvalidInputError: not of that form, no store is named where the host has none, or one that is read with the
            very key that it keeps.
    """
    found = _FORM.fullmatch(value)
    if found is None:
        message = f"{setting} is no name of a secret; {_EXPECTED}"
        raise InvalidInputError(message)
    cloud, name = found["cloud"] or "", found["name"]
    query = dict(pair.split("=", 1) for pair in (found["query"] or "").split("&") if pair)
    arn = _ARN.fullmatch(name)
    if arn is not None:
        cloud, query = cloud or arn["cloud"], {"region": arn["region"], **query}
    in_bucket = _OBJECT.fullmatch(name) is not None
    cloud = cloud or ("alibaba" if in_bucket else _OWN_STORE.get(host, ""))
    if in_bucket and provider_of(cloud) != "alibaba":
        message = f"{setting}: secrets are read from a bucket of Alibaba Cloud only; {_EXPECTED}"
        raise InvalidInputError(message)
    if not cloud or (":" in name and arn is None and not in_bucket):
        message = f"{setting} names no secret store; {_EXPECTED}, CLOUD being one of {', '.join(CLOUDS)}"
        raise InvalidInputError(message)
    if setting.startswith(_KEYS.get(provider_of(cloud), "-")):
        message = f"{setting} is what the secret store of {cloud} is read with, so that it cannot be kept there"
        raise InvalidInputError(message)
    if "version" in query and provider_of(cloud) != "tencent":
        message = f"{setting}: versions are named on Tencent Cloud only; elsewhere the current one is read"
        raise InvalidInputError(message)
    return SecretReference(
        setting, cloud, name, field=found["key"] or "", region=query.get("region", ""), version=query.get("version", "")
    )


_KEYS = {"alibaba": "ALIBABA_CLOUD_", "tencent": "TENCENTCLOUD_"}


@dataclass(frozen=True, slots=True)
class _Place:
    """One secret of the settings, and the settings with another in its place."""

    secret: Secret
    put: Callable[[Settings, Secret], Settings]


def references_in(settings: Settings) -> tuple[SecretReference, ...]:
    """Every reference that was not followed yet."""
    found = (place.secret.reference for place in _places(settings))
    return tuple(reference for reference in found if reference is not None)


def with_values(settings: Settings, read: Callable[[SecretReference], str]) -> Settings:
    """The settings with what `read` gives in the place of every reference, unchecked."""
    for place in tuple(_places(settings)):
        if place.secret.reference is not None:
            settings = place.put(settings, Secret(read(place.secret.reference)))
    return settings


def _places(settings: Settings) -> Iterator[_Place]:
    for each in fields(Settings):
        found = getattr(settings, each.name)
        if isinstance(found, Secret):
            yield _Place(found, partial(_in_settings, each.name))
        elif isinstance(found, Access) and found.key is not None:
            for part in ("secret", "token"):
                yield _Place(getattr(found.key, part), partial(_in_key, each.name, part))


def _in_settings(name: str, settings: Settings, secret: Secret) -> Settings:
    changed: dict[str, Any] = {name: secret}
    return replace(settings, **changed)


def _in_key(cloud: str, part: str, settings: Settings, secret: Secret) -> Settings:
    access: Access = getattr(settings, cloud)
    if access.key is None:
        return settings
    changed: dict[str, Any] = {part: secret}
    changed = {cloud: replace(access, key=replace(access.key, **changed))}
    return replace(settings, **changed)
