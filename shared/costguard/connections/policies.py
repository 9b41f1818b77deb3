"""Where published policies are kept, as `COSTGUARD_POLICY` or `--to` says: a bucket, or a folder said to be one."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from costguard.connections.objects import open_objects
from costguard.domain.errors import InvalidInputError

if TYPE_CHECKING:
    from costguard.policy_sources.published import BundleShelf
    from costguard.ports import Clock
    from costguard.settings import Settings

_FOLDER = "published:"
_SCHEMES = ("s3://", "oss://", "cos://")


def is_published(address: str) -> bool:
    """Whether policies are published there; every other path holds the files themselves."""
    return address.startswith((_FOLDER, *_SCHEMES))


def open_bundles(settings: Settings, address: str, clock: Clock) -> BundleShelf:
    """The bundles at `address`; nothing is read or written yet. Requests go to the vendor's own hosts and nowhere else.

    Raises:
        InvalidInputError: no address where policies can be published.
    """
    from costguard.policy_sources.published import BundleShelf

    place = address.removeprefix(_FOLDER)
    try:
        objects = open_objects(replace(settings, reports=place), clock) if is_published(address) else None
    except InvalidInputError as err:
        # the same reader serves COSTGUARD_REPORTS, and names that
        raise InvalidInputError(str(err).replace("COSTGUARD_REPORTS", "the address of published policies")) from err
    if objects is None:
        message = (
            f"{address!r} is no place to publish to; expected published:FOLDER, s3://BUCKET/PREFIX?region=REGION, "
            "oss:// or cos:// (--to, or COSTGUARD_POLICY)"
        )
        raise InvalidInputError(message)
    return BundleShelf(objects, address)
