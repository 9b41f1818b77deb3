"""Settings whose value is kept in a secret store: `secret:NAME`, and the settings once such values were read."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields, replace
from functools import partial
from typing import Any

from costguard.domain.errors import InvalidInputError
from costguard.domain.refs import CLOUDS, provider_of
from costguard.settings.model import Access, Secret, SecretReference, Settings
from costguard.settings.variables import VARIABLES

BEGINNING = "secret:"
_OWN_STORE = {"lambda": "aws", "fc": "alibaba", "scf": "tencent"}
_FORM = re.compile(
    rf"""(?x) secret:
    (?: (?P<cloud>{"|".join(sorted(CLOUDS, key=len, reverse=True))}) : )?
    (?P<name> [A-Za-z0-9/_+=.@:-]{{1,512}} )
    (?: \? (?P<query> (?: region | version ) = [A-Za-z0-9._-]{{1,64}}
               (?: & (?: region | version ) = [A-Za-z0-9._-]{{1,64}} )? ) )?
    (?: \# (?P<key> [^\x00-\x1f]{{1,256}} ) )?""",
    re.ASCII,
)
_ARN = re.compile(r"arn:(?P<cloud>aws(?:-cn|-us-gov)?):secretsmanager:(?P<region>[a-z0-9-]{4,32}):[0-9]{12}:secret:.+")
_HOLD_SECRETS = frozenset(variable.name for variable in VARIABLES if variable.secret)
_EXPECTED = "expected secret:NAME, secret:NAME#FIELD or secret:CLOUD:NAME (docs/settings.md)"


def is_reference(value: str) -> bool:
    """Whether a setting's value says where the real one is kept."""
    return value.startswith(BEGINNING)


def secret_of(values: Mapping[str, str], setting: str, host: str, default: str = "") -> Secret:
    """The secret that a setting holds or refers to; nothing where it refers in no known way, see `wrong_references`."""
    value = values[setting] or default
    if not is_reference(value):
        return Secret(value)
    try:
        return Secret(reference=reference_of(setting, value, host))
    except InvalidInputError:
        return Secret()


def wrong_references(values: Mapping[str, str], host: str) -> list[str]:
    """References that cannot be followed, and those in settings that hold no secret."""
    problems = []
    for setting, value in values.items():
        if not is_reference(value):
            continue
        if setting not in _HOLD_SECRETS:
            problems.append(f"{setting} holds no secret, so it is read from no secret store; write its value")
            continue
        try:
            reference_of(setting, value, host)
        except InvalidInputError as err:
            problems.append(str(err))
    return problems


def reference_of(setting: str, value: str, host: str) -> SecretReference:
    """Where the value of a setting is kept. An ARN of AWS names cloud and region by itself.

    Raises:
        InvalidInputError: not of that form, no store is named where the host has none, or one that is read with the
            very key that it keeps.
    """
    found = _FORM.fullmatch(value)
    if found is None:
        message = f"{setting} is no name of a secret; {_EXPECTED}"
        raise InvalidInputError(message)
    cloud, name = found["cloud"] or "", found["name"]
    query = dict(pair.split("=", 1) for pair in (found["query"] or "").split("&") if pair)
    arn = _ARN.fullmatch(name)
    if arn is not None:
        cloud, query = cloud or arn["cloud"], {"region": arn["region"], **query}
    cloud = cloud or _OWN_STORE.get(host, "")
    if not cloud or (":" in name and arn is None):
        message = f"{setting} names no secret store; {_EXPECTED}, CLOUD being one of {', '.join(CLOUDS)}"
        raise InvalidInputError(message)
    if setting.startswith(_KEYS.get(provider_of(cloud), "-")):
        message = f"{setting} is what the secret store of {cloud} is read with, so that it cannot be kept there"
        raise InvalidInputError(message)
    if "version" in query and provider_of(cloud) != "tencent":
        message = f"{setting}: versions are named on Tencent Cloud only; elsewhere the current one is read"
        raise InvalidInputError(message)
    return SecretReference(
        setting, cloud, name, field=found["key"] or "", region=query.get("region", ""), version=query.get("version", "")
    )


_KEYS = {"alibaba": "ALIBABA_CLOUD_", "tencent": "TENCENTCLOUD_"}


@dataclass(frozen=True, slots=True)
class _Place:
    """One secret of the settings, and the settings with another in its place."""

    secret: Secret
    put: Callable[[Settings, Secret], Settings]


def references_in(settings: Settings) -> tuple[SecretReference, ...]:
    """Every reference that was not followed yet."""
    found = (place.secret.reference for place in _places(settings))
    return tuple(reference for reference in found if reference is not None)


def with_values(settings: Settings, read: Callable[[SecretReference], str]) -> Settings:
    """The settings with what `read` gives in the place of every reference, unchecked."""
    for place in tuple(_places(settings)):
        if place.secret.reference is not None:
            settings = place.put(settings, Secret(read(place.secret.reference)))
    return settings


def _places(settings: Settings) -> Iterator[_Place]:
    for each in fields(Settings):
        found = getattr(settings, each.name)
        if isinstance(found, Secret):
            yield _Place(found, partial(_in_settings, each.name))
        elif isinstance(found, Access) and found.key is not None:
            for part in ("secret", "token"):
                yield _Place(getattr(found.key, part), partial(_in_key, each.name, part))


def _in_settings(name: str, settings: Settings, secret: Secret) -> Settings:
    changed: dict[str, Any] = {name: secret}
    return replace(settings, **changed)


def _in_key(cloud: str, part: str, settings: Settings, secret: Secret) -> Settings:
    access: Access = getattr(settings, cloud)
    if access.key is None:
        return settings
    changed: dict[str, Any] = {part: secret}
    changed = {cloud: replace(access, key=replace(access.key, **changed))}
    return replace(settings, **changed)
