"""What the surroundings say, as one frozen value; secrets show themselves to nobody who does not ask."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import unquote, urlsplit

from costguard.domain.errors import InvalidInputError
from costguard.domain.refs import provider_of
from costguard.settings.variables import DEFAULT_LEDGER, DEFAULT_NAME, NOTICE_DAYS, SLACK_API_URL


@dataclass(frozen=True, slots=True)
class SecretReference:
    """Where the value of `setting` is kept: under `name` in the secret store of `cloud`, or in a `field` of its JSON.

    An empty `region` is the host's own; `version` is for Tencent Cloud, whose users name versions.
    """

    setting: str
    cloud: str
    name: str
    field: str = ""
    region: str = ""
    version: str = ""


class Secret:
    """A value that no log line, traceback or repr may show; `reveal` is for the one place that needs it.

    With a `reference` it is kept elsewhere and was not read yet: it is there, and shows no value.
    """

    __slots__ = ("_value", "reference")

    def __init__(self, value: str = "", *, reference: SecretReference | None = None) -> None:
        self._value = value
        self.reference = reference

    def reveal(self) -> str:
        """The value itself.

        Raises:
            InvalidInputError: it was not read from its secret store: what is not known is never taken for empty.
        """
        if self.reference is not None:
            message = f"{self.reference.setting} was not read from its secret store"
            raise InvalidInputError(message)
        return self._value

    @property
    def known(self) -> str:
        """The value, or nothing where it was not read yet."""
        return self._value

    def __bool__(self) -> bool:
        return bool(self._value) or self.reference is not None

    def __repr__(self) -> str:
        return "Secret('***')" if self else "Secret('')"

    __str__ = __repr__

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and (self._value, self.reference) == (other._value, other.reference)

    def __hash__(self) -> int:
        return hash((self._value, self.reference))


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
    is set up, and then `mail_from` is there, and for `smtp` the server's address. `robots` is JSON, read by whoever
    builds them. `git_hosts` are `HOST` or `HOST:PORT`, `private:` before it where its addresses may be private;
    `prometheus_hosts` too, and they are where `prometheus_authorization` may be sent.
    `audit_days` None keeps the audit for ever; `notice_days` is for the words of notices. `alibaba_region` and
    `tencent_region` are where the function runs.
    `plaintext` are the settings whose secret stands in the environment itself. `sandbox` is the address of one that is
    followed: then nothing here is of a real account. `paced`: addresses on this machine are asked at the clouds' rates.
    """

    host: str = "local"
    deployment: str = DEFAULT_NAME
    policy: str = ""
    ledger: Secret = field(default_factory=lambda: Secret(DEFAULT_LEDGER))
    slack_token: Secret = field(default_factory=Secret)
    slack_url: str = SLACK_API_URL
    slack_signing_secret: Secret = field(default_factory=Secret)
    mail_from: str = ""
    mail_via: str = ""
    smtp_url: str = ""
    smtp_password: Secret = field(default_factory=Secret)
    webhook_secret: Secret = field(default_factory=Secret)
    webhook_private: bool = False
    robots: Secret = field(default_factory=Secret)
    answer_url: str = ""
    link_secret: Secret = field(default_factory=Secret)
    forge_token: Secret = field(default_factory=Secret)
    forge_repository: str = ""
    reports: str = ""
    audit_days: int | None = None
    notice_days: int = NOTICE_DAYS
    git_hosts: tuple[str, ...] = ()
    prometheus_authorization: Secret = field(default_factory=Secret)
    prometheus_hosts: tuple[str, ...] = ()
    paused: bool = False
    language: str = "en"
    log_level: str = "INFO"
    cloud: str = "aws"
    aws: Access = Access()
    alibaba: Access = Access()
    tencent: Access = Access()
    aws_profile: str = ""
    aws_region: str = ""
    alibaba_region: str = ""
    tencent_region: str = ""
    alibaba_overridden: bool = False
    plaintext: tuple[str, ...] = ()
    sandbox: str = ""
    paced: bool = False

    def access(self, cloud: str) -> Access:
        """How this cloud is reached; partitions and sites of a provider share it."""
        return {"aws": self.aws, "alibaba": self.alibaba, "tencent": self.tencent}[provider_of(cloud)]

    @property
    def ledger_file(self) -> Path | None:
        """The file of a SQLite ledger; None for every other kind."""
        url = self.ledger.reveal()
        if not url.lower().startswith("sqlite:///"):
            return None
        return Path(unquote(urlsplit(url).path.removeprefix("/")))

    def secrets(self) -> tuple[str, ...]:
        """What no log line may show, as far as it is known: tokens, keys, the password within the ledger's address."""
        keys = [access.key for access in (self.aws, self.alibaba, self.tencent) if access.key is not None]
        parts = [part.known for key in keys for part in (key.secret, key.token)]
        tokens = (self.slack_token.known, self.prometheus_authorization.known, self.webhook_secret.known)
        answers = (self.slack_signing_secret.known, self.link_secret.known, *_hooks_in(self.robots.known))
        mail = (self.smtp_password.known, password_of(self.smtp_url))
        known = (self.forge_token.known, *tokens, *answers, *mail, *parts, password_of(self.ledger.known))
        return tuple(value for value in known if value)


def password_of(address: str) -> str:
    """The password within an address; the whole of one that cannot be read."""
    try:
        return urlsplit(address).password or ""
    except ValueError:
        return address  # unreadable, so all of it may be secret


def _hooks_in(robots: str) -> list[str]:
    """Every text among the robots: hooks carry a token, so all of it is secret; the whole where it is no JSON.

    Of a hook also its token alone, at the end of the path or in the query: whoever is asked may repeat only that.
    """
    if not robots:
        return []
    try:
        said = json.loads(robots)
        texts = [str(value) for robot in said.values() for value in robot.values()]
    except (ValueError, AttributeError, RecursionError):
        return [robots]
    return texts + [token for text in texts if "://" in text for token in re.split(r"[/=&?#]", text)[-1:]]
