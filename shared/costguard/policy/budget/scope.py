"""Which spend a budget covers: exact words, for a bill is asked by them. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from costguard.domain.refs import CLOUDS, provider_of
from costguard.policy.syntax.problems import BadValueError
from costguard.policy.syntax.values import check_account_id, check_region

_GLOB_SIGNS = frozenset("*?[")
_EVERYTHING = "leave the key out to cover everything"
_LONGEST_TAGS = {"aws": (128, 256), "alibaba": (128, 128), "tencent": (127, 255)}
"""Characters of a key and of a value, by provider."""
_RESERVED_ON_TENCENT = frozenset({"project", "qcloud", "tencent"})  # InvalidParameter.ReservedTagKey


def exact(raw: object) -> object:
    """A word that is no pattern."""
    if isinstance(raw, str) and _GLOB_SIGNS & set(raw):
        message = f"{raw!r} is a pattern; a budget covers exact words"
        raise BadValueError(message, "list every word, or leave the key out")
    return raw


def exact_tags(tags: dict[str, str]) -> dict[str, str]:
    """Tags that must all be there, each with this very value."""
    if not tags:
        raise BadValueError("an empty mapping covers nothing", _EVERYTHING)
    for key, value in tags.items():
        for word, part in ((key, True), (value, False)):
            if _GLOB_SIGNS & set(word):
                message = f"{word!r} is a pattern; a budget covers exact words"
                fix = "write the value itself; spend of several values takes a budget for each"
                raise BadValueError(message, fix, at=(key,), key=part)
            if word != word.strip():
                message = f"{word!r} begins or ends with a space"
                raise BadValueError(message, f"write {word.strip()}", at=(key,), key=part)
        if not key:
            raise BadValueError("a tag without a name", "write the name of the tag", at=(key,), key=True)
        if not value:
            message = f"tag {key!r} without a value: on a bill that is also how it looks where the tag is missing"
            raise BadValueError(message, "give the tag a value, in the cloud and here", at=(key,))
    return tags


def check_reachable(
    clouds: Sequence[str] | None, accounts: Iterable[str], regions: Iterable[str], tags: Mapping[str, str]
) -> None:
    """That every word can be found on a bill of one of the clouds."""
    among = CLOUDS if clouds is None else clouds
    for index, account in enumerate(accounts):
        _fits_one(among, account, check_account_id, ("accounts", index))
    for index, region in enumerate(regions):
        _fits_one(among, region, check_region, ("regions", index))
    for key, value in tags.items():
        whys = {
            why
            for provider in sorted({provider_of(cloud) for cloud in among})
            if (why := unusable(provider, key, value))
        }
        if len(whys) == len({provider_of(cloud) for cloud in among}):
            message = f"no cloud covered here can have the tag {key!r} with that value: {'; '.join(sorted(whys))}"
            raise BadValueError(message, "copy the tag from the cloud's console", at=("tags", key), key=True)


def _fits_one(clouds: Sequence[str], word: str, check: Callable[[str, str], object], at: tuple[str | int, ...]) -> None:
    refused: BadValueError | None = None
    for cloud in clouds:
        try:
            check(cloud, word)
        except BadValueError as err:
            refused = refused or err
        else:
            return
    if refused is not None:
        raise BadValueError(refused.message, refused.fix, at=at) from refused


def unusable(provider: str, key: str, value: str) -> str:
    """Why no resource of this provider can carry the tag; empty where one can."""
    longest_key, longest_value = _LONGEST_TAGS[provider]
    if len(key) > longest_key or len(value) > longest_value:
        return f"{provider} allows {longest_key} characters in a key and {longest_value} in a value"
    if provider == "alibaba":
        if key.casefold().startswith(("aliyun", "acs:")):
            return "alibaba keeps keys that begin with aliyun or acs: for itself"
        if any(sign in word for word in (key, value) for sign in ("http://", "https://")):
            return "alibaba allows no http:// or https:// in a tag"
    if provider == "tencent" and key in _RESERVED_ON_TENCENT:
        return f"tencent keeps the key {key} for itself"
    return ""
