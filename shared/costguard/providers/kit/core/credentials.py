"""Credentials as a cloud hands them out, and what no message may carry on of them."""

from __future__ import annotations

import re
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Keys:
    """An access key: its id, its secret, and the token that goes with it when it is temporary."""

    key_id: str
    secret: str = field(repr=False)
    token: str = field(default="", repr=False)


NO_CREDENTIALS = "NoCredentials"
"""A code of our own: there are no keys."""


_SECRETS = (
    (re.compile(r"Encoded authorization failure message:\s*\S+"), ""),
    (re.compile(r"\b(?:AKIA|ASIA|AIDA|AROA)[A-Z0-9]{12,}\b"), "[key id removed]"),
    (
        re.compile(
            r"(?i)(X-Amz-[A-Za-z-]+|X-TC-[A-Za-z-]+|SessionToken|SecurityToken|SecretAccessKey|AccessKeySecret|AccessKeyId"
            r"|SecretKey|SecretId|Token|Signature|SignatureNonce|Credential)(=|%3D|%253D)[^&%\s,'\"]+"
        ),
        r"\1\2[removed]",
    ),
    (re.compile(r"\b(?:LTAI|STS\.)[A-Za-z0-9]{8,}"), "[key id removed]"),
    (re.compile(r"\bAKID[A-Za-z0-9_-]{8,}"), "[key id removed]"),
    (re.compile(r"//[^/@\s]+@"), "//"),
    (re.compile(r"[A-Za-z0-9+/_=-]{60,}"), "[removed]"),
)
_LONGEST_DETAIL = 300
_MOST_READ = 4000


def without_secrets(text: str) -> str:
    """`text` on one line, shortened, without key ids, signatures, tokens or passwords in addresses."""
    if len(text) > _MOST_READ:  # the patterns may look at every letter from every letter
        text = text[:_MOST_READ].rpartition(" ")[0]
    line = "".join(letter if letter.isprintable() else " " for letter in text)
    for pattern, replacement in _SECRETS:
        line = pattern.sub(replacement, line)
    line = " ".join(line.split())
    return line if len(line) <= _LONGEST_DETAIL else line[: _LONGEST_DETAIL - 1] + "…"
