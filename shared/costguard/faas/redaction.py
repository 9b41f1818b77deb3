"""Blank what must not leave the process: known secrets, tokens by their shape, and signatures in addresses. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from urllib.parse import quote, unquote

BLANK = "***"

_SHORTEST = 6  # a shorter "secret" would blank ordinary words; real tokens have 20 characters and more

_SIGNED = re.compile(
    r"""(?ix) (?<![a-z0-9])
    ( x-amz-(?:signature|credential|security-token) | awsaccesskeyid      # S3
    | ossaccesskeyid | security-?token | signature | accesskeyid          # Alibaba Cloud
    | q-ak | q-signature | x-cos-security-token                           # Tencent COS
    | sig | access_token | token | secret | password )
    = [^&\s"'<>\\]+"""
)
_USER_INFO = re.compile(r"(?<=://)[^/\s@\"']*:[^/\s@\"']*(?=@)")
_WEB = re.compile(r"https?://[^\s\"'<>\\]+")
_TOKEN_IN_PATH = re.compile(r"(?<=/)(?=[A-Za-z_-]*[0-9])[A-Za-z0-9_-]{20,}(?![A-Za-z0-9_.-])")  # hooks of any vendor
_TOKENS = re.compile(
    r"""(?x) xox[a-z]-[A-Za-z0-9-]+ | xapp-[A-Za-z0-9-]+ | hooks\.slack\.com/[A-Za-z0-9/_-]+   # Slack
    | \bck1-[A-Za-z0-9_-]{20,} | (?<=/bot/v2/hook/)[A-Za-z0-9_-]+    # Keep links, hooks of chat robots
    | (?<=/webhook/send\?key=)[A-Za-z0-9_-]+ | \bSEC[0-9a-f]{64}\b
    | \b(?:AKIA|ASIA)[A-Z0-9]{16}\b | \bLTAI[A-Za-z0-9]{12,26}\b   # access key ids
    | \bSTS\.[A-Za-z0-9]{12,} | \bAKID[A-Za-z0-9_-]{13,}           # those of roles, 68 characters at Tencent Cloud
    | (?<=Bearer\ )[A-Za-z0-9._~+/=-]+"""
)


@dataclass(frozen=True, slots=True)
class Redactor:
    """Blanks `values`, in every form they take inside JSON and addresses, and whatever looks like a credential."""

    values: tuple[str, ...] = ()

    @classmethod
    def of(cls, secrets: Iterable[str]) -> Redactor:
        """A redactor for these secrets as they are, JSON-escaped, and percent-encoded or decoded."""
        forms = {form for secret in secrets for form in _forms(secret) if len(form) >= _SHORTEST}
        return cls(tuple(sorted(forms, key=len, reverse=True)))  # the longest first: one may contain another

    def clean(self, text: str) -> str:
        """`text` without secrets."""
        for value in self.values:
            text = text.replace(value, BLANK)
        text = _USER_INFO.sub(BLANK, text)
        text = _SIGNED.sub(rf"\1={BLANK}", text)
        text = _WEB.sub(lambda address: _TOKEN_IN_PATH.sub(BLANK, address[0]), text)
        return _TOKENS.sub(BLANK, text)

    def clean_error(self, error: BaseException) -> str | None:
        """The words of `error` without secrets; None where neither it nor what caused it holds any."""
        words = f"{type(error).__name__}: {error}"
        link: BaseException | None = error
        seen: list[BaseException] = []
        while link is not None and not any(link is earlier for earlier in seen):
            if self.clean(str(link)) != str(link):
                return self.clean(words)
            seen.append(link)
            link = link.__cause__ or link.__context__
        return None


def _forms(secret: str) -> tuple[str, ...]:
    plain = {secret, unquote(secret)}
    return (
        *plain,
        *(quote(form, safe="") for form in plain),
        *(json.dumps(form, ensure_ascii=ascii_only)[1:-1] for form in plain for ascii_only in (True, False)),
    )
