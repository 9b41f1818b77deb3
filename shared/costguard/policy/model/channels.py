"""Addresses people are told at: `slack:#gpu-costs`, `mailto:finops@example.com`, `feishu:ops`, `https://…`. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping

from costguard.domain.hosts import refused_host
from costguard.policy.syntax.problems import BadValueError

_SLACK = re.compile(r"slack:(?:#[^\s#@:,]{1,80}|[CGDU][A-Z0-9]{6,20})")
_LABEL = r"[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?"
_DOMAIN = rf"{_LABEL}(?:\.{_LABEL})+"
_MAIL = re.compile(rf"mailto:[A-Za-z0-9!#$%&'*+/=?^_`{{|}}~-]+(?:\.[A-Za-z0-9!#$%&'*+/=?^_`{{|}}~-]+)*@{_DOMAIN}")
_BARE_MAIL = re.compile(rf"[^\s@:,]+@{_DOMAIN}")
_PATH = r"(?::[0-9]{1,5})?(?:/[A-Za-z0-9._~/%+=@:-]*)?"
_WEBHOOK = re.compile(rf"https://{_DOMAIN}{_PATH}")
_LOOPBACK = re.compile(rf"http://(?:127\.0\.0\.1|localhost|\[::1\]){_PATH}")
_ROBOT = re.compile(r"(?:feishu|dingtalk|wecom):[a-z0-9][a-z0-9-]{0,39}")
_TOKEN = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-|[0-9A-Za-z]{24,}")  # of Feishu and WeCom, and of DingTalk
_ROBOT_KIND = re.compile(r"(?P<kind>feishu|lark|dingtalk|wecom|weixin):", re.IGNORECASE)
_ROBOT_HOSTS: Mapping[str, str] = {
    "open.feishu.cn": "feishu",
    "open.larksuite.com": "feishu",
    "oapi.dingtalk.com": "dingtalk",
    "api.dingtalk.com": "dingtalk",
    "qyapi.weixin.qq.com": "wecom",
}
_LONGEST_MAIL = len("mailto:") + 254  # RFC 5321
_LONGEST_USER = 64
_LONGEST = 1000
_FORMS = (
    'write "slack:#gpu-costs" in quotes, slack: and the channel id, "mailto:finops@example.com", "https://…", or '
    "feishu:, dingtalk: or wecom: and the name of a robot"
)


def channel(text: str) -> str:
    """One address of a form that a channel can serve.

    http without TLS reaches this machine only: a notice names machines, owners and money. A robot is named as
    COSTGUARD_ROBOTS names it: its hook is a secret and never stands in a policy.
    """
    if _ROBOT_KIND.match(text):
        return _robot(text)
    if text.startswith(("https:", "http:")):
        return _webhook(text)
    if text.startswith("mailto:"):
        return _mail(text)
    if _SLACK.fullmatch(text) is None:
        message = f"{text!r} is not a channel"
        raise BadValueError(message, f'write "mailto:{text}"' if _BARE_MAIL.fullmatch(text) else _FORMS)
    return text


def _mail(text: str) -> str:
    user = text.removeprefix("mailto:").partition("@")[0]
    if _MAIL.fullmatch(text) is None or len(text) > _LONGEST_MAIL or len(user) > _LONGEST_USER:
        message = f"{text!r} is not the address of a mailbox"
        fix = "list each address by itself" if re.search(r"[,; ]", text) else "write mailto:finops@example.com"
        raise BadValueError(message, fix)
    return text


def _robot(text: str) -> str:
    if _TOKEN.search(text) or "/" in text or "=" in text:
        message = "this looks like the hook of a robot, or its token, which never stand in a policy"
        raise BadValueError(message, "put it into COSTGUARD_ROBOTS under a name, and write feishu:NAME")
    if _ROBOT.fullmatch(text) is None:
        message = f"{text!r} is not the name of a robot"
        raise BadValueError(message, "write feishu:, dingtalk: or wecom: and a name of small letters, digits and -")
    return text


def _webhook(text: str) -> str:
    authority = re.split(r"[/?#]", text.partition("://")[2])[0].rpartition("@")[2].lower()
    host = re.sub(r":[0-9]*$", "", authority).rstrip(".")
    if host in _ROBOT_HOSTS:  # before anything repeats it
        raise BadValueError(
            "the hook of a chat robot is a secret and never stands in a policy",
            f"put it into COSTGUARD_ROBOTS under a name, and write {_ROBOT_HOSTS[host]}:NAME here",
        )
    refused = refused_host(host)
    if refused:
        message = f"{host!r} is {refused}, which no notice is sent to"
        raise BadValueError(message, "write for example https://hooks.example.com/costguard")
    if len(text) <= _LONGEST and (_WEBHOOK.fullmatch(text) or _LOOPBACK.fullmatch(text)):
        return text
    if text.startswith("http://") and _WEBHOOK.fullmatch(text.replace("http://", "https://", 1)):
        message = f"{text!r} would send the notice unencrypted"
        raise BadValueError(message, f"write {text.replace('http://', 'https://', 1)}")
    if re.search(r"[?#@]", text):
        raise BadValueError(
            "an address with a user, a password, a query or a fragment puts a secret into the policy",
            "write the address without it, such as https://hooks.example.com/costguard",
        )
    message = f"{text!r} is not the address of a webhook"
    raise BadValueError(message, "write for example https://hooks.example.com/costguard")
