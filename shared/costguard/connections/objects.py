"""Where whole files are kept: a folder, or a bucket of a cloud, as `COSTGUARD_REPORTS` says."""

from __future__ import annotations

from typing import TYPE_CHECKING

from costguard.domain.errors import InvalidInputError

if TYPE_CHECKING:
    from costguard.ports import Clock, ObjectStore
    from costguard.settings import Access, Settings


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

        own = settings.aws.key
        return open_s3(
            url,
            endpoint_url=settings.aws.endpoint_url,
            profile=settings.aws_profile,
            keys=(own.key_id, own.secret.reveal()) if own else None,
        )
    if scheme in {"oss", "cos"}:
        from costguard.providers.kit.core.credentials import Keys

        def keys_of(access: Access) -> Keys | None:
            key = access.key
            return None if key is None else Keys(key.key_id, key.secret.reveal(), key.token.reveal())

        if scheme == "oss":
            from costguard.providers.alibaba.core.services import open_oss

            return open_oss(url, keys_of(settings.alibaba), now=clock.now, endpoint=settings.alibaba.endpoint_url)
        from costguard.providers.tencent.core.services import open_cos

        return open_cos(url, keys_of(settings.tencent), now=clock.now, endpoint=settings.tencent.endpoint_url)
    if scheme:
        message = "COSTGUARD_REPORTS is no place to keep files; expected a folder, s3://, oss:// or cos://"
        raise InvalidInputError(message)
    from costguard.adapters.object_stores.folder import FolderStore

    return FolderStore(url)
