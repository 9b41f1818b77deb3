"""The settings' own secrets, read from the secret store that each names. Imported only where a setting names one."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

from costguard.connections.objects import keys_of, plain_keys_of
from costguard.domain.errors import InvalidInputError, NotFoundError, ProviderError
from costguard.domain.refs import provider_of
from costguard.ports import SecretStore
from costguard.settings import SecretReference, Settings, references_in, with_secrets

KEPT_FOR = timedelta(minutes=15)
"""How long a secret is used before it is read again: how late a process learns of a new one."""

IN_BUCKET = "oss://"
"""What the name of a secret begins with that is an object: `oss://BUCKET/NAME`."""

_SECONDS = 20.0  # of one request, and the longest wait before another: a function has work to do after it
OpenStore = Callable[[Settings, SecretReference, str], SecretStore]
"""Settings, reference, region → where it is kept, as `open_secret_store` does."""


class SecretKeeper:
    """Reads secrets once, and keeps them in this process's memory for a while. Nothing that failed is kept."""

    def __init__(self, open_store: OpenStore | None = None) -> None:
        self._open_store = open_store or open_secret_store
        self._kept: dict[SecretReference, tuple[datetime, str]] = {}

    def settled(self, settings: Settings, now: datetime) -> Settings:
        """The settings with every secret in its place.

        Raises:
            InvalidInputError: a secret is not of the form that is said of it, or no good as that setting.
            ProviderError: one could not be read; names the setting, the secret, and what to do.
        """
        wanted = {_whole(settings, reference) for reference in references_in(settings)}
        self._kept = {name: kept for name, kept in self._kept.items() if name in wanted}
        return with_secrets(settings, lambda reference: self._value(settings, reference, now))

    def _value(self, settings: Settings, reference: SecretReference, now: datetime) -> str:
        whole = _whole(settings, reference)
        kept = self._kept.get(whole)
        if kept is None or not kept[0] <= now < kept[0] + KEPT_FOR:
            kept = now, self._read(settings, reference, whole, now)
            self._kept[whole] = kept
        return kept[1] if not reference.field else _field_of(kept[1], reference)

    def _read(self, settings: Settings, reference: SecretReference, whole: SecretReference, now: datetime) -> str:
        if reference.name.startswith(IN_BUCKET):
            store = _open_bucket(settings, whole.region, now)
        else:
            store = self._open_store(settings, reference, whole.region)
        try:
            return store.read(reference.name, reference.version)
        except ProviderError as err:
            fix = store.fix_for(err)
            if isinstance(err, NotFoundError):
                fix = f"make it there, or name its region: secret:NAME?region=REGION{'; or ' if fix else ''}{fix}"
            message = f"{_told(reference)}, region {whole.region}: {err}{f'; {fix}' if fix else ''}"
            raise type(err)(message, operation=err.operation, code=err.code) from err


def _open_bucket(settings: Settings, region: str, now: datetime) -> SecretStore:
    """Secrets as objects of a private bucket of OSS, for those who want no instance of KMS."""
    from costguard.providers.alibaba.core.services import OssSecrets

    access = settings.alibaba
    return OssSecrets(region, keys_of(access), now=lambda: now, endpoint=access.endpoint_url)


def open_secret_store(settings: Settings, reference: SecretReference, region: str) -> SecretStore:
    """The store that is named, in that region, with the process's own role; nothing is sent yet.

    Raises:
        InvalidInputError: not a region.
    """
    provider = provider_of(reference.cloud)
    if provider == "aws":
        from costguard.providers.aws.core.services import AwsSecrets

        return AwsSecrets(
            region,
            endpoint_url=settings.aws.endpoint_url,
            profile=settings.aws_profile,
            keys=plain_keys_of(settings.aws),
            seconds_left=lambda: _SECONDS,
        )
    if provider == "alibaba":
        from costguard.providers.alibaba.core.services import AlibabaSecrets

        if settings.alibaba_overridden:
            message = f"{_told(reference)}: unset ALIYUN_ACCESS_KEY_ID, which its SDK would prefer to the role"
            raise InvalidInputError(message)
        keys, endpoint = keys_of(settings.alibaba), settings.alibaba.endpoint_url
        try:
            return AlibabaSecrets(reference.cloud, region, keys, endpoint=endpoint, seconds_left=lambda: _SECONDS)
        except ValueError as err:
            message = f"{_told(reference)}: {err}"
            raise InvalidInputError(message) from err
    from costguard.providers.tencent.core.services import TencentSecrets

    keys, endpoint = keys_of(settings.tencent), settings.tencent.endpoint_url
    return TencentSecrets(reference.cloud, region, keys, endpoint=endpoint, seconds_left=lambda: _SECONDS)


def _whole(settings: Settings, reference: SecretReference) -> SecretReference:
    """What is asked for: the whole secret, in the region that counts, whichever setting wants it."""
    region = reference.region or _own_region(settings, reference.cloud)
    return SecretReference("", reference.cloud, reference.name, region=region, version=reference.version)


def _own_region(settings: Settings, cloud: str) -> str:
    """Where the function runs; else where account-wide questions are asked."""
    provider = provider_of(cloud)
    if provider == "aws":
        from costguard.providers.aws.core.session import HOME_REGIONS as AWS_HOME

        return settings.aws_region or AWS_HOME[cloud]
    if provider == "alibaba":
        from costguard.providers.alibaba.core.products import HOME_REGIONS as ALIBABA_HOME

        return settings.alibaba_region or ALIBABA_HOME[cloud]
    from costguard.providers.tencent.core.products import HOME_REGIONS as TENCENT_HOME

    return settings.tencent_region or TENCENT_HOME[cloud]


def _field_of(text: str, reference: SecretReference) -> str:
    """One field of a JSON object. Nothing that the secret holds is ever repeated.

    Raises:
        InvalidInputError: it is no such object, or the field is no text.
    """
    try:
        found: Any = json.loads(text)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        message = f"{_told(reference)} is no JSON object, so that it has no field {reference.field!r}"
        raise InvalidInputError(message)
    value = found.get(reference.field)
    if not isinstance(value, str) or not value:
        message = f"{_told(reference)} has no text in a field {reference.field!r}"
        raise InvalidInputError(message)
    return value


def _told(reference: SecretReference) -> str:
    return f"{reference.setting}: the secret {reference.name} in the secret store of {reference.cloud}"
