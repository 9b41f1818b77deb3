"""Where whole files are kept, as `COSTGUARD_REPORTS` says; and the access keys of clouds as providers take them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from costguard.domain.errors import InvalidInputError

if TYPE_CHECKING:
    from costguard.ports import Clock, ObjectStore
    from costguard.providers.kit.core.credentials import Keys
    from costguard.settings import Access, Settings


def keys_of(access: Access) -> Keys | None:
    """The key that was set up, as the providers take it; None where the host's own role counts."""
    from costguard.providers.kit.core.credentials import Keys

    key = access.key
    return None if key is None else Keys(key.key_id, key.secret.reveal(), key.token.reveal())


def plain_keys_of(access: Access) -> tuple[str, str] | None:
    """The same as AWS's SDK takes it."""
    return None if access.key is None else (access.key.key_id, access.key.secret.reveal())


def open_objects(settings: Settings, clock: Clock) -> ObjectStore | None:
    """The place that the settings name, None where they name none; nothing is read or written yet.

    A folder on a function's host would be lost with its instance, unless a file share is mounted there.

    Raises:
        InvalidInputError: not an address of such a place.
    """
    url = settings.reports
    scheme = url.partition("://")[0] if "://" in url else ""
    if not url:
        return None
    if scheme == "s3":
        from costguard.providers.aws.core.services import open_s3

        aws = settings.aws
        return open_s3(url, endpoint_url=aws.endpoint_url, profile=settings.aws_profile, keys=plain_keys_of(aws))
    if scheme == "oss":
        from costguard.providers.alibaba.core.services import open_oss

        return open_oss(url, keys_of(settings.alibaba), now=clock.now, endpoint=settings.alibaba.endpoint_url)
    if scheme == "cos":
        from costguard.providers.tencent.core.services import open_cos

        return open_cos(url, keys_of(settings.tencent), now=clock.now, endpoint=settings.tencent.endpoint_url)
    if scheme:
        message = "COSTGUARD_REPORTS is no place to keep files; expected a folder, s3://, oss:// or cos://"
        raise InvalidInputError(message)
    from costguard.adapters.object_stores.folder import FolderStore

    return FolderStore(url)
