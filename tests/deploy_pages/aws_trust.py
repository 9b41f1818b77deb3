"""Who may assume a role, as its trust policy says: moto lets everybody, and the sandbox all who know its ExternalId."""

from __future__ import annotations

import json
from io import BytesIO
from typing import Any
from urllib.parse import parse_qs, quote, unquote

from moto.iam.models import get_account_id_from, iam_backends

from costguard.cli.sandbox.running import EXTERNAL_ID


def as_trusted(environ: dict[str, Any]) -> dict[str, Any]:
    """The request as the sandbox's gateway gets it.

    Where it assumes a role it has an ExternalId that the gateway lets pass, or one that it refuses where the role's
    trust policy does not let the caller in.
    """
    key, _, _, service, _ = _credential(environ)
    if service != "sts" or environ["REQUEST_METHOD"] != "POST":
        return environ
    body: bytes = environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
    asked = {name: values[0] for name, values in parse_qs(body.decode()).items()}
    if asked.get("Action") == "AssumeRole":
        said = asked.pop("ExternalId", "")
        trusted = _trusts(asked["RoleArn"], _caller(key), said)
        asked["ExternalId"] = EXTERNAL_ID if trusted else "the role's trust policy says no"
        body = "&".join(f"{name}={quote(value, safe='')}" for name, value in asked.items()).encode()
    return {**environ, "wsgi.input": BytesIO(body), "CONTENT_LENGTH": str(len(body))}


def _credential(environ: dict[str, Any]) -> list[str]:
    """Key, day, region, service, and a last word; empty ones where nothing is signed."""
    found = environ.get("HTTP_AUTHORIZATION", "").partition("Credential=")[2].partition(",")[0].split("/")
    return found if len(found) == 5 else [""] * 5


def _caller(key: str) -> tuple[str, str]:
    """The account of a key, and the role or user it is of."""
    account = get_account_id_from(key)
    known = iam_backends[account]["aws"].access_keys.get(key)
    return account, (known.role_arn if known is not None else None) or f"arn:aws:iam::{account}:user/somebody"


def _trusts(role_arn: str, caller: tuple[str, str], external_id: str) -> bool:
    account, who = caller
    roles = iam_backends[role_arn.split(":")[4]]["aws"].roles.values()
    role = next((role for role in roles if role.arn == role_arn), None)
    if role is None:
        return False
    facts = {"sts:ExternalId": external_id, "aws:PrincipalArn": who}
    return any(
        each["Effect"] == "Allow"
        and each["Principal"].get("AWS") in {f"arn:aws:iam::{account}:root", who}
        and all(
            facts[name] in ([value] if isinstance(value, str) else value)
            for wanted in each.get("Condition", {}).values()
            for name, value in wanted.items()
        )
        for each in json.loads(unquote(role.assume_role_policy_document))["Statement"]
    )
