"""Rules for keys as users write them, and what they compile to. Needs pydantic."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Annotated

from pydantic import AfterValidator, BeforeValidator

from costguard.domain.keys import RotationMeans
from costguard.guards.keys.rules import QUARTER, KeyRule, KeySelector
from costguard.guards.rules.common import Mode
from costguard.policy.documents import fields as f
from costguard.policy.documents.fields import EXCEPTED, Entry, MatchDocument, Whole, made
from costguard.policy.syntax import units
from costguard.policy.syntax import values as v
from costguard.policy.syntax.problems import BadValueError

SHORTEST, LONGEST = timedelta(days=7), timedelta(days=2560)
"""The shortest period that any vendor offers for any key (Tencent Cloud, Alibaba Cloud), and the longest (AWS)."""

_DAY = timedelta(days=1)
_SHIPPED = KeyRule("", Mode.OBSERVE, KeySelector())
_ALIAS = re.compile(r"[A-Za-z0-9/_.:*?\[\]!-]{1,256}")
_PREFIX = "alias/"
_MEANS = {means.value: means for means in RotationMeans}
_is_alias = v.matching(_ALIAS, "an alias or pattern", "write for example training or prod-*")
_read_means = v.choice(_MEANS, "a means of rotation")


def _rotate_every(raw: object) -> timedelta:
    if (isinstance(raw, int) and not isinstance(raw, bool)) or (isinstance(raw, str) and raw.isdecimal()):
        message = f"{raw} has no unit; expected whole days such as {QUARTER.days}d"
        raise BadValueError(message, f"write {raw}d")
    every = units.parse_duration(raw)
    if every % _DAY:
        message = f"{raw} is not a whole number of days; clouds rotate by the day"
        raise BadValueError(message, f"write {max(round(every / _DAY), SHORTEST.days)}d")
    if every < SHORTEST:
        message = f"no cloud rotates a key every {every.days} days; the shortest is {SHORTEST.days}"
        raise BadValueError(message, f"write {SHORTEST.days}d or more")
    if every > LONGEST:
        message = f"no cloud rotates a key every {every.days} days; the longest is {LONGEST.days}"
        raise BadValueError(message, f"write {LONGEST.days}d or less")
    return every


def _alias(text: str) -> str:
    if text.startswith(_PREFIX):
        bare = text.removeprefix(_PREFIX)
        raise BadValueError("aliases are written without alias/", f"write {bare}" if bare else "write the alias itself")
    return _is_alias(text)


RotateEvery = Annotated[timedelta, BeforeValidator(_rotate_every)]
Aliases = Annotated[tuple[Annotated[str, AfterValidator(_alias)], ...], AfterValidator(v.some(v.ALL))]
Means = Annotated[
    tuple[Annotated[RotationMeans, BeforeValidator(_read_means)], ...],
    AfterValidator(v.some("leave the key out to allow automatic rotation")),
]


class KeySelectorDocument(MatchDocument):
    """Which keys: every key given must match."""

    clouds: f.CloudPatterns | None = None
    accounts: f.AccountPatterns | None = None
    regions: f.RegionPatterns | None = None
    aliases: Aliases | None = None
    tags: f.TagPatterns | None = None


class KeyRuleDocument(Entry):
    """One entry of `kms_rotation`. What is left out of `mode` is observed, whatever the policy's mode is."""

    mode: f.ModeWord = Mode.OBSERVE
    shadow: bool = False
    applies_when_all: KeySelectorDocument | None = None
    except_when_any: Annotated[tuple[KeySelectorDocument, ...], EXCEPTED] = ()
    rotate_every: RotateEvery = QUARTER
    means: Means = (RotationMeans.AUTOMATIC,)
    customer_keys: bool = False
    wait: f.Wait = _SHIPPED.wait
    actions_per_day: f.Count = _SHIPPED.actions_per_day

    def rule(self, whole: Whole) -> KeyRule:
        """What it compiles to, without its digest."""
        del whole
        chosen = self.applies_when_all
        return made(
            KeyRule,
            self,
            means=frozenset(self.means),
            applies_to=KeySelector() if chosen is None else made(KeySelector, chosen),
            except_for=tuple(made(KeySelector, each) for each in self.except_when_any),
        )
