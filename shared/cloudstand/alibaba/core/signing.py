"""Signature 1.0 of the RPC style, from the published description: HMAC-SHA1 over the sorted parameters."""

from __future__ import annotations

import hashlib
import hmac
from base64 import b64encode
from collections.abc import Mapping
from urllib.parse import quote

_UNRESERVED = "-_.~"  # RFC 3986; a space is %20 and a star %2A


def string_to_sign(method: str, parameters: Mapping[str, str]) -> str:
    """What is signed: the method, the path "/" and every parameter but the signature itself, escaped twice."""
    pairs = sorted((name, value) for name, value in parameters.items() if name != "Signature")
    canonical = "&".join(f"{_escaped(name)}={_escaped(value)}" for name, value in pairs)
    return f"{method}&%2F&{_escaped(canonical)}"


def signature(text: str, secret: str) -> str:
    """The signature of `text` by who knows `secret`; the key of the HMAC is the secret and an ampersand."""
    digest = hmac.new(f"{secret}&".encode(), text.encode(), hashlib.sha1).digest()
    return b64encode(digest).decode("ascii")


def _escaped(text: str) -> str:
    return quote(text, safe=_UNRESERVED)
