"""What is wrong with a setting, in words for whoever set it; secrets are never repeated."""

from __future__ import annotations

import re
from collections.abc import Mapping
from urllib.parse import urlsplit

from costguard.domain.hosts import refused_host
from costguard.settings.model import Secret, Settings
from costguard.settings.variables import MAIL_VIA, SLACK_API_URL, VARIABLES

PREFIX = "COSTGUARD_"
KNOWN = frozenset(variable.name for variable in VARIABLES)
NOT_PAUSED = frozenset({"", "0", "false", "no"})
YES, NO = frozenset({"1", "true", "yes"}), NOT_PAUSED
_SHORTEST_SECRET = 16
_LEAST_DAYS = 90  # as engine/ledger/audit/forget.py has it
_SHORTEST_LINK_SECRET = 32
_LONGEST_SHOWN = 60
_LIKENESS = 0.6  # difflib's own default: one or two letters wrong in a name of this length
_PUBLIC = re.compile(
    r"(?:https://[A-Za-z0-9.-]+|http://(?:127\.0\.0\.1|localhost))(?::[0-9]{1,5})?(?:/[A-Za-z0-9._~/-]*)?", re.ASCII
)
_SANDBOX = re.compile(r"http://127\.0\.0\.1:[1-9][0-9]{0,4}", re.ASCII)  # a number: names are resolved elsewhere
_NAME = re.compile(r"[a-z][a-z0-9-]{1,18}[a-z0-9]", re.ASCII)  # as infra/*/variables.tf has it
_GIT_HOST = re.compile(r"(?:private:)?[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?(?::[0-9]{1,5})?", re.ASCII)
_BOUND_HOST = re.compile(rf"{_GIT_HOST.pattern}|(?:private:)?\[[0-9a-f:.]{{2,45}}\](?::[0-9]{{1,5}})?", re.ASCII)


def half_a_key(values: Mapping[str, str], key_id: str, secret: str, token: str = "") -> list[str]:
    """A key of which one half is missing."""
    if bool(values[key_id]) is bool(values[secret]):
        return [f"{token} is set without {key_id}"] if token and values[token] and not values[key_id] else []
    there, missing = (key_id, secret) if values[key_id] else (secret, key_id)
    return [f"{there} is set without {missing}"]


_MAIL = re.compile(r"[A-Za-z0-9_+-]+(?:[.'][A-Za-z0-9_+-]+)*@(?:[A-Za-z0-9-]+\.)+[A-Za-z0-9-]+", re.ASCII)


def unknown(name: str) -> str:
    """A variable of ours that nobody knows, and the one that may be meant."""
    from difflib import get_close_matches

    near = get_close_matches(
        name[:_LONGEST_SHOWN], [known for known in KNOWN if known.startswith(PREFIX)], n=1, cutoff=_LIKENESS
    )
    advice = f"did you mean {near[0]}?" if near else "unset it, or see docs/settings.md"
    return f"{_shown(name)} is no setting; {advice}"


def wrong_name(name: str) -> list[str]:
    """A name that no deployment can have."""
    if _NAME.fullmatch(name):
        return []
    return [f"COSTGUARD_NAME is '{_shown(name)}', expected 3 to 20 small letters, digits and hyphens"]


def wrong_choice(name: str, value: str, choices: tuple[str, ...]) -> list[str]:
    """A word that is none of the choices."""
    return [] if value in choices else [f"{name} is '{_shown(value)}', expected one of {', '.join(choices)}"]


def _shown(text: str) -> str:
    """Fit to print: an environment may hold anything but NUL, of any length."""
    return ascii(text[:_LONGEST_SHOWN])[1:-1] + ("…" if len(text) > _LONGEST_SHOWN else "")


def wrong_address(name: str, value: str) -> list[str]:
    """The value is not repeated: it may hold a password."""
    if not value:
        return []
    try:
        parts = urlsplit(value)
        good = parts.scheme in {"http", "https"} and bool(parts.hostname)
    except ValueError:
        good = False
    return [] if good else [f"{name} is no address, expected https://HOST/…"]


def wrong_sandbox(address: str, host: str) -> list[str]:
    """NEVER take the time from anywhere but this machine, and in a function from nowhere at all."""
    if address and host != "local":
        return [f"COSTGUARD_SANDBOX is set, and host {host} guards real accounts; unset it"]
    if address and not _SANDBOX.fullmatch(address):
        return ["COSTGUARD_SANDBOX is no sandbox of this machine, expected http://127.0.0.1:PORT"]
    return []


def wrong_slack_address(value: str) -> list[str]:
    """Where the bot token goes with each request: never unencrypted, and never where clouds keep something."""
    problems = wrong_address("COSTGUARD_SLACK_URL", value)
    if problems:
        return problems
    parts = urlsplit(value)
    host = parts.hostname or ""
    if parts.scheme == "http" and host not in {"127.0.0.1", "localhost", "::1"}:
        return ["COSTGUARD_SLACK_URL would send the token unencrypted, expected https://HOST/…"]
    refused = refused_host(host)
    return [f"COSTGUARD_SLACK_URL names {refused}, expected {SLACK_API_URL}"] if refused else []


def wrong_mail(settings: Settings) -> list[str]:
    """What is missing where mail is half set up; whoever connects to the server reads its address."""
    via, sender = settings.mail_via, settings.mail_from
    if not via:
        advice = "set COSTGUARD_SMTP_URL, or COSTGUARD_MAIL_VIA to ses or directmail"
        named = [name for name, there in (("MAIL_FROM", sender), ("SMTP_PASSWORD", settings.smtp_password)) if there]
        return [f"COSTGUARD_{name} is set, and nothing sends mail; {advice}" for name in named]
    problems = wrong_choice("COSTGUARD_MAIL_VIA", via, MAIL_VIA)
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


def wrong_choice_of_private(private: str) -> list[str]:
    """A word that says neither yes nor no."""
    if private.lower() in YES | NO:
        return []
    return [f"COSTGUARD_WEBHOOK_PRIVATE is '{_shown(private)}', expected 1, or nothing"]


def wrong_secrets(settings: Settings) -> list[str]:
    """Secrets that can be guessed, and a ledger that forgets; of what was not read yet nothing is said."""
    problems = []
    if 0 < len(settings.webhook_secret.known) < _SHORTEST_SECRET:
        problems.append(f"COSTGUARD_WEBHOOK_SECRET is shorter than {_SHORTEST_SECRET} letters; make one at random")
    if 0 < len(settings.link_secret.known) < _SHORTEST_LINK_SECRET:
        problems.append(f"COSTGUARD_LINK_SECRET is shorter than {_SHORTEST_LINK_SECRET} letters; make one at random")
    return problems + forgetful_ledger(settings.host, settings.ledger)


def days_of(text: str) -> int | None:
    """How many days, None where nothing is said; what is no number is told by `wrong_days`."""
    return int(text) if re.fullmatch(r"[0-9]{1,5}", text, re.ASCII) else None


def wrong_days(name: str, text: str) -> list[str]:
    """What is kept too short for anybody to look at it, or not for a number of days."""
    if not text or (days_of(text) or 0) >= _LEAST_DAYS:
        return []
    return [f"{name} is '{_shown(text)}', expected {_LEAST_DAYS} or more"]


def wrong_answers(settings: Settings) -> list[str]:
    """What answers to notices need: a place they reach by https."""
    problems = []
    if settings.link_secret and not settings.answer_url:
        problems.append("COSTGUARD_LINK_SECRET is set without COSTGUARD_ANSWER_URL, to which Keep links would lead")
    if settings.answer_url and not _PUBLIC.fullmatch(settings.answer_url):
        problems.append("COSTGUARD_ANSWER_URL is no address, expected https://HOST/… without query or fragment")
    return problems


def wrong_git(settings: Settings) -> list[str]:
    """Hosts that are none, and a policy in git where functions run: they decide by what is published."""
    wrong = [host for host in settings.git_hosts if not _GIT_HOST.fullmatch(host)]
    problems = [
        f"COSTGUARD_GIT_HOSTS names '{_shown(host)}', expected such as github.com, git.example.com:8443 or "
        "private:git.corp.example"
        for host in wrong[:1]
    ]
    if settings.host != "local" and settings.policy.startswith(("git:", "git+")):
        problems.append(
            f"COSTGUARD_POLICY is in git, which host {settings.host} does not read; publish the policy, and name where"
        )
    return problems


def wrong_prometheus(settings: Settings) -> list[str]:
    """Hosts that are none, and a header that may be sent to no host, or hosts that it is missing for."""
    wrong = [host for host in settings.prometheus_hosts if not _BOUND_HOST.fullmatch(host)]
    problems = [
        f"COSTGUARD_PROMETHEUS_HOSTS names '{_shown(host)}', expected such as prometheus.example.com, "
        "prometheus.example.com:9090 or private:prometheus.corp.example"
        for host in wrong[:1]
    ]
    if settings.prometheus_authorization and not settings.prometheus_hosts:
        problems.append(
            "COSTGUARD_PROMETHEUS_AUTHORIZATION is set without COSTGUARD_PROMETHEUS_HOSTS, and is sent nowhere; set "
            "that to the hosts of the policy's Prometheus servers, such as prometheus.example.com:9090"
        )
    if settings.prometheus_hosts and not settings.prometheus_authorization:
        problems.append(
            "COSTGUARD_PROMETHEUS_HOSTS is set without COSTGUARD_PROMETHEUS_AUTHORIZATION; set both or neither"
        )
    return problems


def forgetful_ledger(host: str, ledger: Secret) -> list[str]:
    """NEVER act on a memory that is lost: the disk of a function instance goes with the instance."""
    if host == "local" or not ledger.known.lower().startswith("sqlite:"):
        return []
    problem = (
        f"COSTGUARD_LEDGER is a SQLite file, which host {host} loses with the function's instance; "
        "use dynamodb://TABLE?region=REGION or postgresql://USER@HOST/DATABASE"
    )
    return [problem]
