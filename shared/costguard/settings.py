"""What the surroundings say: the environment variables Costguard reads, each once, checked, and nothing else."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from costguard.domain.errors import InvalidInputError
from costguard.domain.refs import CLOUDS, provider_of

LANGUAGES = ("en", "zh")
MAIL_VIA = ("smtp", "ses", "directmail")
LOG_LEVELS = ("DEBUG", "INFO", "WARNING", "ERROR")
SLACK_API_URL = "https://slack.com/api/"
DEFAULT_LEDGER = "sqlite:///costguard.sqlite3"
HOSTED_LEDGER = "memory:"  # forgotten with the instance of the function, so that enforcing refuses it

_PREFIX = "COSTGUARD_"
_NOT_PAUSED = frozenset({"", "0", "false", "no"})
_YES, _NO = frozenset({"1", "true", "yes"}), _NOT_PAUSED
_SHORTEST_SECRET = 16
_LONGEST_SHOWN = 60
_LIKENESS = 0.6  # difflib's own default: one or two letters wrong in a name of this length


class Secret:
    """A value that no log line, traceback or repr may show; `reveal` is for the one place that needs it."""

    __slots__ = ("_value",)

    def __init__(self, value: str = "") -> None:
        self._value = value

    def reveal(self) -> str:
        """The value itself."""
        return self._value

    def __bool__(self) -> bool:
        return bool(self._value)

    def __repr__(self) -> str:
        return "Secret('***')" if self._value else "Secret('')"

    __str__ = __repr__

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and self._value == other._value

    def __hash__(self) -> int:
        return hash(self._value)


@dataclass(frozen=True, slots=True)
class Variable:
    """One environment variable; `default` is in words where it is no literal value."""

    name: str
    meaning: str
    default: str = ""
    secret: bool = False


VARIABLES = (
    Variable("COSTGUARD_POLICY", "File, folder or address of the policy", "none: observe with the shipped rule"),
    Variable(
        "COSTGUARD_LEDGER",
        "Address of the ledger: `sqlite:///FILE`, `postgresql://…`, `dynamodb://TABLE?region=…`, `memory:`",
        f"`{DEFAULT_LEDGER}`; on a function host `{HOSTED_LEDGER}`, which cannot enforce",
        secret=True,
    ),
    Variable("COSTGUARD_SLACK_TOKEN", "Bot token of the Slack app that sends notices", secret=True),
    Variable("COSTGUARD_SLACK_URL", "Address of Slack's Web API", f"`{SLACK_API_URL}`"),
    Variable("COSTGUARD_MAIL_FROM", "Address that mail comes from, such as `costguard@example.com`"),
    Variable(
        "COSTGUARD_MAIL_VIA",
        "What sends mail: `smtp`, `ses` or `directmail`, the latter two with this process's own role",
        "`smtp` where `COSTGUARD_SMTP_URL` is set",
    ),
    Variable(
        "COSTGUARD_SMTP_URL",
        "Mail server: `smtps://USER@HOST:465`, or `smtp://USER@HOST:587`, which must offer STARTTLS",
    ),
    Variable("COSTGUARD_SMTP_PASSWORD", "Password of its user", secret=True),
    Variable("COSTGUARD_WEBHOOK_SECRET", "What webhooks are signed with, 16 letters or more", secret=True),
    Variable(
        "COSTGUARD_WEBHOOK_PRIVATE",
        "`1`: webhooks may reach private addresses, and this machine over http",
        "public addresses only",
    ),
    Variable(
        "COSTGUARD_PAUSED",
        "Kill switch of this host: anything but `0`, `false`, `no` or nothing means paused",
        "not paused",
    ),
    Variable("COSTGUARD_LANG", "Language of notices and reports: `en` or `zh`", "`en`"),
    Variable("COSTGUARD_LOG_LEVEL", "Least severe log line written: `DEBUG`, `INFO`, `WARNING`, `ERROR`", "`INFO`"),
    Variable("COSTGUARD_CLOUD", "Cloud scanned where the policy names no account", "`aws`"),
    Variable("COSTGUARD_AWS_ROLE", "Role assumed in guarded AWS accounts: an ARN or a name, `{account}` is filled in"),
    Variable("COSTGUARD_AWS_EXTERNAL_ID", "ExternalId sent when assuming that role"),
    Variable("COSTGUARD_ALIBABA_ROLE", "The same for Alibaba Cloud: an ARN (`acs:ram::…`) or a name"),
    Variable("COSTGUARD_ALIBABA_EXTERNAL_ID", "ExternalId sent when assuming that role"),
    Variable("COSTGUARD_ALIBABA_ENDPOINT", "Address that answers instead of every Alibaba Cloud product"),
    Variable("COSTGUARD_TENCENT_ROLE", "The same for Tencent Cloud: an ARN (`qcs::cam::…`) or a name"),
    Variable("COSTGUARD_TENCENT_EXTERNAL_ID", "ExternalId sent when assuming that role"),
    Variable("COSTGUARD_TENCENT_ENDPOINT", "Address that answers instead of every Tencent Cloud product"),
    Variable(
        "COSTGUARD_PROMETHEUS_AUTHORIZATION",
        "Authorization header sent to the policy's Prometheus servers, such as `Bearer …`",
        secret=True,
    ),
    Variable("AWS_PROFILE", "Profile of the AWS configuration files whose credentials are used"),
    Variable("AWS_REGION", "Region where account-wide questions are asked", "the partition's first"),
    Variable("AWS_DEFAULT_REGION", "As `AWS_REGION`, where that is not set"),
    Variable("AWS_ENDPOINT_URL", "Address that answers instead of every AWS service"),
    Variable("ALIBABA_CLOUD_ACCESS_KEY_ID", "Access key for Alibaba Cloud; Function Compute sets it from its role"),
    Variable("ALIBABA_CLOUD_ACCESS_KEY_SECRET", "Its secret", secret=True),
    Variable("ALIBABA_CLOUD_SECURITY_TOKEN", "Its token, where it is temporary", secret=True),
    Variable("ALIYUN_ACCESS_KEY_ID", "Must not be set where Alibaba Cloud is guarded: its SDK prefers this key"),
    Variable("TENCENTCLOUD_SECRETID", "Access key for Tencent Cloud; SCF sets it from its role"),
    Variable("TENCENTCLOUD_SECRETKEY", "Its secret", secret=True),
    Variable("TENCENTCLOUD_SESSIONTOKEN", "Its token, where it is temporary", secret=True),
    Variable("TENCENTCLOUD_SECRET_ID", "As `TENCENTCLOUD_SECRETID`, where that is not set"),
    Variable("TENCENTCLOUD_SECRET_KEY", "As `TENCENTCLOUD_SECRETKEY`, with `TENCENTCLOUD_SECRET_ID`", secret=True),
    Variable("AWS_LAMBDA_FUNCTION_NAME", "Set by Lambda: the host is `lambda`"),
    Variable("FC_FUNCTION_NAME", "Set by Function Compute: the host is `fc`"),
    Variable("TENCENTCLOUD_RUNENV", "Set by SCF: the host is `scf`"),
)
"""Every variable this program reads by itself. The SDKs read others, such as credentials."""

_HOST_MARKS = (
    ("AWS_LAMBDA_FUNCTION_NAME", "lambda"),
    ("FC_FUNCTION_NAME", "fc"),
    ("TENCENTCLOUD_RUNENV", "scf"),
)


@dataclass(frozen=True, slots=True)
class AccessKey:
    """A key of a cloud: its id, its secret, and the token of a temporary one."""

    key_id: str
    secret: Secret
    token: Secret = field(default_factory=Secret)


@dataclass(frozen=True, slots=True)
class Access:
    """How the clouds of one provider are reached.

    `role` and `external_id` are for accounts whose entry in the policy names none; `endpoint_url` answers
    instead of the cloud. `key` is never read from the environment for AWS, whose SDK finds credentials by
    itself: there only the sandbox sets it.
    """

    role: str = ""
    external_id: str = ""
    endpoint_url: str = ""
    key: AccessKey | None = None


@dataclass(frozen=True, slots=True)
class Settings:
    """The surroundings of one process. An empty text means not set.

    `host` is `lambda`, `fc`, `scf` or `local`; `ledger` may hold a password. `alibaba_overridden`: the variable is
    set that makes Alibaba Cloud's SDK ignore the credentials it is given. `mail_via` is one of `MAIL_VIA` where mail
    is set up, and then `mail_from` is there, and for `smtp` the server's address.
    """

    host: str = "local"
    policy: str = ""
    ledger: Secret = field(default_factory=lambda: Secret(DEFAULT_LEDGER))
    slack_token: Secret = field(default_factory=Secret)
    slack_url: str = SLACK_API_URL
    mail_from: str = ""
    mail_via: str = ""
    smtp_url: str = ""
    smtp_password: Secret = field(default_factory=Secret)
    webhook_secret: Secret = field(default_factory=Secret)
    webhook_private: bool = False
    prometheus_authorization: Secret = field(default_factory=Secret)
    paused: bool = False
    language: str = "en"
    log_level: str = "INFO"
    cloud: str = "aws"
    aws: Access = Access()
    alibaba: Access = Access()
    tencent: Access = Access()
    aws_profile: str = ""
    aws_region: str = ""
    alibaba_overridden: bool = False

    def access(self, cloud: str) -> Access:
        """How this cloud is reached; partitions and sites of a provider share it."""
        return {"aws": self.aws, "alibaba": self.alibaba, "tencent": self.tencent}[provider_of(cloud)]

    def secrets(self) -> tuple[str, ...]:
        """What no log line may show: tokens, keys, and the password within the ledger's address."""
        keys = [access.key for access in (self.aws, self.alibaba, self.tencent) if access.key is not None]
        parts = [part.reveal() for key in keys for part in (key.secret, key.token)]
        tokens = (self.slack_token.reveal(), self.prometheus_authorization.reveal(), self.webhook_secret.reveal())
        mail = (self.smtp_password.reveal(), _password_of(self.smtp_url))
        known = (*tokens, *mail, *parts, _password_of(self.ledger.reveal()))
        return tuple(value for value in known if value)


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
    problems = [_unknown(name) for name in sorted(environ) if name.startswith(_PREFIX) and name not in _KNOWN]
    values = {variable.name: environ.get(variable.name, "").strip() for variable in VARIABLES}
    host = next((host for mark, host in _HOST_MARKS if values[mark]), "local")
    settings = Settings(
        host=host,
        policy=values["COSTGUARD_POLICY"],
        ledger=Secret(values["COSTGUARD_LEDGER"] or (DEFAULT_LEDGER if host == "local" else HOSTED_LEDGER)),
        slack_token=Secret(values["COSTGUARD_SLACK_TOKEN"]),
        slack_url=values["COSTGUARD_SLACK_URL"] or SLACK_API_URL,
        mail_from=values["COSTGUARD_MAIL_FROM"],
        mail_via=values["COSTGUARD_MAIL_VIA"].lower() or ("smtp" if values["COSTGUARD_SMTP_URL"] else ""),
        smtp_url=values["COSTGUARD_SMTP_URL"],
        smtp_password=Secret(values["COSTGUARD_SMTP_PASSWORD"]),
        webhook_secret=Secret(values["COSTGUARD_WEBHOOK_SECRET"]),
        webhook_private=values["COSTGUARD_WEBHOOK_PRIVATE"].lower() in _YES,
        prometheus_authorization=Secret(values["COSTGUARD_PROMETHEUS_AUTHORIZATION"]),
        paused=values["COSTGUARD_PAUSED"].lower() not in _NOT_PAUSED,
        language=values["COSTGUARD_LANG"].lower() or "en",
        log_level=values["COSTGUARD_LOG_LEVEL"].upper() or "INFO",
        cloud=values["COSTGUARD_CLOUD"] or "aws",
        aws=_access(values, "AWS", endpoint="AWS_ENDPOINT_URL"),
        alibaba=_access(values, "ALIBABA", key=_key_of(values, *_ALIBABA_KEY)),
        tencent=_access(values, "TENCENT", key=_key_of(values, *_SCF_KEY) or _key_of(values, *_TENCENT_KEY)),
        aws_profile=values["AWS_PROFILE"],
        aws_region=values["AWS_REGION"] or values["AWS_DEFAULT_REGION"],
        alibaba_overridden=bool(values["ALIYUN_ACCESS_KEY_ID"]),
    )
    problems += _wrong_choice("COSTGUARD_LANG", settings.language, LANGUAGES)
    problems += _wrong_choice("COSTGUARD_LOG_LEVEL", settings.log_level, LOG_LEVELS)
    problems += _wrong_choice("COSTGUARD_CLOUD", settings.cloud, CLOUDS)
    problems += _wrong_address("COSTGUARD_SLACK_URL", settings.slack_url)
    problems += _wrong_mail(settings)
    problems += _wrong_webhook(settings, values["COSTGUARD_WEBHOOK_PRIVATE"])
    for name in ("AWS_ENDPOINT_URL", "COSTGUARD_ALIBABA_ENDPOINT", "COSTGUARD_TENCENT_ENDPOINT"):
        problems += _wrong_address(name, values[name])
    for key in (_ALIBABA_KEY, _SCF_KEY, _TENCENT_KEY):
        problems += _half_a_key(values, *key)
    problems += _forgetful_ledger(host, settings.ledger)
    if problems:
        raise InvalidInputError("environment: " + "; ".join(problems))
    return settings


_ALIBABA_KEY = ("ALIBABA_CLOUD_ACCESS_KEY_ID", "ALIBABA_CLOUD_ACCESS_KEY_SECRET", "ALIBABA_CLOUD_SECURITY_TOKEN")
_SCF_KEY = ("TENCENTCLOUD_SECRETID", "TENCENTCLOUD_SECRETKEY", "TENCENTCLOUD_SESSIONTOKEN")
_TENCENT_KEY = ("TENCENTCLOUD_SECRET_ID", "TENCENTCLOUD_SECRET_KEY")


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


def _half_a_key(values: Mapping[str, str], key_id: str, secret: str, token: str = "") -> list[str]:
    if bool(values[key_id]) is bool(values[secret]):
        return [f"{token} is set without {key_id}"] if token and values[token] and not values[key_id] else []
    there, missing = (key_id, secret) if values[key_id] else (secret, key_id)
    return [f"{there} is set without {missing}"]


_MAIL = re.compile(r"[A-Za-z0-9_+-]+(?:[.'][A-Za-z0-9_+-]+)*@(?:[A-Za-z0-9-]+\.)+[A-Za-z0-9-]+", re.ASCII)
_KNOWN = frozenset(variable.name for variable in VARIABLES)


def _unknown(name: str) -> str:
    from difflib import get_close_matches

    near = get_close_matches(
        name[:_LONGEST_SHOWN], [known for known in _KNOWN if known.startswith(_PREFIX)], n=1, cutoff=_LIKENESS
    )
    advice = f"did you mean {near[0]}?" if near else "unset it, or see docs/settings.md"
    return f"{_shown(name)} is no setting; {advice}"


def _wrong_choice(name: str, value: str, choices: tuple[str, ...]) -> list[str]:
    return [] if value in choices else [f"{name} is '{_shown(value)}', expected one of {', '.join(choices)}"]


def _shown(text: str) -> str:
    """Fit to print: an environment may hold anything but NUL, of any length."""
    return ascii(text[:_LONGEST_SHOWN])[1:-1] + ("…" if len(text) > _LONGEST_SHOWN else "")


def _wrong_address(name: str, value: str) -> list[str]:
    """The value is not repeated: it may hold a password."""
    if not value:
        return []
    try:
        parts = urlsplit(value)
        good = parts.scheme in {"http", "https"} and bool(parts.hostname)
    except ValueError:
        good = False
    return [] if good else [f"{name} is no address, expected https://HOST/…"]


def _wrong_mail(settings: Settings) -> list[str]:
    """What is missing where mail is half set up; whoever connects to the server reads its address."""
    via, sender = settings.mail_via, settings.mail_from
    if not via:
        advice = "set COSTGUARD_SMTP_URL, or COSTGUARD_MAIL_VIA to ses or directmail"
        named = [name for name, there in (("MAIL_FROM", sender), ("SMTP_PASSWORD", settings.smtp_password)) if there]
        return [f"COSTGUARD_{name} is set, and nothing sends mail; {advice}" for name in named]
    problems = _wrong_choice("COSTGUARD_MAIL_VIA", via, MAIL_VIA)
    if not sender:
        problems.append("COSTGUARD_MAIL_FROM is not set: mail needs an address to come from")
    elif not _MAIL.fullmatch(sender):
        problems.append(
            f"COSTGUARD_MAIL_FROM is '{_shown(sender)}', expected one address such as costguard@example.com"
        )
    if via == "smtp" and not settings.smtp_url:
        problems.append("COSTGUARD_MAIL_VIA is smtp; set COSTGUARD_SMTP_URL")
    if via == "ses" and settings.cloud == "aws-cn":
        problems.append("COSTGUARD_MAIL_VIA is ses, which is not offered in aws-cn; use smtp or directmail")
    if via == "directmail" and settings.alibaba_overridden:
        problems.append("COSTGUARD_MAIL_VIA is directmail; unset ALIYUN_ACCESS_KEY_ID, which its SDK would prefer")
    return problems


def _wrong_webhook(settings: Settings, private: str) -> list[str]:
    problems = []
    if 0 < len(settings.webhook_secret.reveal()) < _SHORTEST_SECRET:
        problems.append(f"COSTGUARD_WEBHOOK_SECRET is shorter than {_SHORTEST_SECRET} letters; make one at random")
    if private.lower() not in _YES | _NO:
        problems.append(f"COSTGUARD_WEBHOOK_PRIVATE is '{_shown(private)}', expected 1, or nothing")
    return problems


def _forgetful_ledger(host: str, ledger: Secret) -> list[str]:
    """NEVER act on a memory that is lost: the disk of a function instance goes with the instance."""
    if host == "local" or not ledger.reveal().lower().startswith("sqlite:"):
        return []
    problem = (
        f"COSTGUARD_LEDGER is a SQLite file, which host {host} loses with the function's instance; "
        "use dynamodb://TABLE?region=REGION or postgresql://USER@HOST/DATABASE"
    )
    return [problem]


def _password_of(address: str) -> str:
    try:
        return urlsplit(address).password or ""
    except ValueError:
        return address  # unreadable, so all of it may be secret
