"""What every store of whole files goes by: names that lead nowhere else, addresses, and how much is ever read."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass
from urllib.parse import parse_qsl, urlsplit

from costguard.domain.errors import InvalidInputError

MOST_BYTES = 64 * 1024 * 1024
"""Of one object: nothing that Costguard keeps comes near it."""

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*(?:/[A-Za-z0-9][A-Za-z0-9._-]*)*", re.ASCII)
_LONGEST_NAME = 512  # of 1,024 bytes that every vendor allows, the rest is for the prefix
_BUCKET = re.compile(r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]", re.ASCII)  # the rule of all three vendors
_REGION = re.compile(r"[a-z]{2,10}(?:-[a-z0-9]{1,20}){1,4}", re.ASCII)


@dataclass(frozen=True, slots=True)
class BucketAddress:
    """Where objects are kept: `scheme://BUCKET/PREFIX?region=REGION`. The prefix ends with `/` or is empty."""

    scheme: str
    bucket: str
    region: str
    prefix: str = ""

    def key(self, name: str) -> str:
        """The whole key of an object.

        Raises:
            InvalidInputError: not a name.
        """
        return self.prefix + object_name(name)

    def of(self, name: str) -> str:
        """The address of an object, for people and the vendors' own tools."""
        return f"{self.scheme}://{self.bucket}/{self.key(name)}"


def object_name(name: str) -> str:
    """The name, where it is one: parts of letters, digits, `.`, `_` and `-`, none beginning with a dot, joined by `/`.

    Raises:
        InvalidInputError: it is none; nothing that leads out of its place is.
    """
    if not _NAME.fullmatch(name) or len(name) > _LONGEST_NAME:
        message = f"{name[:80]!r} is no name of an object; expected such as digests/2026-W03.html"
        raise InvalidInputError(message)
    return name


def bucket_address(url: str, schemes: Collection[str]) -> BucketAddress:
    """Read `s3://BUCKET/PREFIX?region=REGION`, and the same with another of `schemes`.

    Raises:
        InvalidInputError: not such an address; names what is wrong.
    """
    try:
        parts = urlsplit(url)
        named = parse_qsl(parts.query, keep_blank_values=True)
    except ValueError as err:
        message = f"COSTGUARD_REPORTS cannot be read: {err}"
        raise InvalidInputError(message) from err
    options = dict(named)
    wrong = (
        (parts.scheme not in schemes, f"expected {' or '.join(f'{one}://' for one in sorted(schemes))}"),
        (not _BUCKET.fullmatch(parts.netloc), "a bucket's name has 3 to 63 small letters, digits, dots and hyphens"),
        (set(options) != {"region"} or len(named) != 1, "expected ?region=REGION and nothing else"),
        (not _REGION.fullmatch(options.get("region", "")), "that is no name of a region"),
        (bool(parts.fragment), "it ends in a fragment"),
    )
    found = next((what for is_wrong, what in wrong if is_wrong), "")
    prefix = parts.path.strip("/")
    if not found and prefix and not _NAME.fullmatch(prefix):
        found = "its prefix has letters that no name of ours has"
    if found:
        message = f"COSTGUARD_REPORTS is no address of a bucket: {found}; for example s3://acme-reports/costguard?region=us-east-1"
        raise InvalidInputError(message)
    return BucketAddress(parts.scheme, parts.netloc, options["region"], f"{prefix}/" if prefix else "")
