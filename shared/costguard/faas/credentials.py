"""The keys of one call: Function Compute hands fresh ones over with every call. Pure."""

from __future__ import annotations

from dataclasses import replace

from costguard.faas.events import Host
from costguard.settings import AccessKey, Secret, Settings

_TEMPORARY = "STS."  # how the id of every key begins that Alibaba Cloud's AssumeRole makes


def settings_of_call(settings: Settings, context: object, host: Host) -> Settings:
    """`settings`, with the keys of the function's role as this call brought them.

    Function Compute writes the role's keys into the environment when it starts an instance, and not again; they end
    after 36 hours. Its Python runtimes up to 3.10 bring the present ones with each call, in `context.credentials`.
    A key in the environment that is no role's was put there by people, and stays: with the role's key in its
    place, another account might be guarded than the one they meant.
    """
    if host is not Host.FC:
        return settings
    brought, own = _key_of(getattr(context, "credentials", None)), settings.alibaba.key
    if brought is None or (own is not None and not own.key_id.startswith(_TEMPORARY)):
        return settings
    return replace(settings, alibaba=replace(settings.alibaba, key=brought))


def _key_of(credentials: object) -> AccessKey | None:
    """A whole temporary key, or none: without a role all three parts are empty."""
    names = ("access_key_id", "access_key_secret", "security_token")
    parts = [getattr(credentials, name, None) for name in names]
    key_id, secret, token = (part.strip() if isinstance(part, str) else "" for part in parts)
    return AccessKey(key_id, Secret(secret), Secret(token)) if key_id and secret and token else None
