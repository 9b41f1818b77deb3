"""What a rule of the `kms_rotation` guard says."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta

from costguard.domain.keys import EncryptionKey, RotationMeans
from costguard.guards.rules.common import Mode
from costguard.guards.rules.spelling import any_glob, tags_match, tags_spare

QUARTER = timedelta(days=90)


@dataclass(frozen=True, slots=True)
class KeySelector:
    """Which keys: every restriction given must hold, of a list any one. An empty list matches nothing.

    Patterns are globs; aliases are compared without `alias/`. A key without an alias has none that matches.
    """

    clouds: tuple[str, ...] | None = None
    accounts: tuple[str, ...] | None = None
    regions: tuple[str, ...] | None = None
    aliases: tuple[str, ...] | None = None
    tags: Mapping[str, str] | None = None

    def matches(self, key: EncryptionKey) -> bool:
        """Whether every given restriction holds."""
        return tags_match(key.tags, self.tags) and self._rest_matches(key)

    def spares(self, key: EncryptionKey) -> bool:
        """Whether every given restriction holds, tags without regard to case and separators."""
        return (self.tags is None or tags_spare(key.tags, self.tags)) and self._rest_matches(key)

    def _rest_matches(self, key: EncryptionKey) -> bool:
        ref = key.ref
        return (
            any_glob(self.clouds, ref.cloud)
            and any_glob(self.accounts, ref.account)
            and any_glob(self.regions, ref.region)
            and any_glob(self.aliases, *(alias.removeprefix("alias/") for alias in key.aliases))
        )


@dataclass(frozen=True, slots=True)
class KeyRule:
    """One entry of `kms_rotation:` in the policy. `digest` is a hash of everything else here.

    `means`: what may be used to rotate. `customer_keys`: data encrypted under a service's default key is a finding.
    `late_by` is how long after its date a rotation still counts as in time: vendors rotate within days of it.
    `wait`: how long after its delivered notice a key is mended. `actions_per_day` caps a rolling 24 hours; 0 allows
    nothing.
    """

    name: str
    mode: Mode
    applies_to: KeySelector
    rotate_every: timedelta = QUARTER
    means: frozenset[RotationMeans] = frozenset({RotationMeans.AUTOMATIC})
    customer_keys: bool = False
    late_by: timedelta = timedelta(days=3)
    wait: timedelta = timedelta(days=1)
    actions_per_day: int = 10
    except_for: tuple[KeySelector, ...] = ()
    digest: str = ""

    def covers(self, key: EncryptionKey) -> bool:
        """Whether the rule speaks of this key."""
        return self.applies_to.matches(key) and not any(each.spares(key) for each in self.except_for)
