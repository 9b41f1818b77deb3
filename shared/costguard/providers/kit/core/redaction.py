"""What no message may carry on: keys, signatures and tokens, in the forms of every cloud."""

from __future__ import annotations

import re

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
