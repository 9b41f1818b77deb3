"""Which key takes which one's place, as the keys' own tags tell, and what would come next.

A successor says whose it is in a tag. The tag alone moves no alias: a key must be like the one it follows, and the
engine asks the ledger whether Costguard made it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from costguard.domain.keys import EncryptionKey, KeyManager, KeyOrigin, KeyState, MultiRegion
from costguard.domain.refs import ResourceRef
from costguard.domain.remediations import Remediation, RemediationKind

SUCCESSOR_OF, DECISION = "costguard-successor-of", "costguard-decision"
"""Tags of a successor: the id of the key it follows, and the action that made it."""

MOVED_BACK = "the alias was moved back"
"""Words of a refusal that an intent keeps: the alias had been with the other key for a moment."""


@dataclass(frozen=True, slots=True)
class Lineage:
    """Who follows a key. `claims` are ids of the keys that say so, in whatever state they are.

    `heir` is the one among them that an alias can be moved to, None unless there is exactly one claim. `aliases` are
    those that the successors hold, and theirs after them.
    """

    claims: tuple[str, ...] = ()
    heir: EncryptionKey | None = None
    aliases: tuple[str, ...] = ()


NOBODY = Lineage()


def lineages(keys: Iterable[EncryptionKey]) -> Mapping[ResourceRef, Lineage]:
    """Who follows each key that is followed by any."""
    by_ref = {key.ref: key for key in keys}
    claims: defaultdict[ResourceRef, list[EncryptionKey]] = defaultdict(list)
    for ref, key in sorted(by_ref.items()):
        named = key.tags.get(SUCCESSOR_OF, "")
        if named and named != ref.native_id:
            claims[ref.sibling("key", named)].append(key)
    return {
        ref: Lineage(
            tuple(each.ref.native_id for each in followed),
            _heir(by_ref.get(ref), followed),
            tuple(sorted({alias for each in _after(ref, claims) for alias in each.aliases})),
        )
        for ref, followed in claims.items()
    }


def is_superseded(key: EncryptionKey, line: Lineage) -> bool:
    """Whether its successor, or one after that, has taken all its aliases."""
    return bool(line.claims) and not key.aliases and bool(line.aliases)


def next_step(key: EncryptionKey, line: Lineage) -> Remediation | None:
    """What brings a successor in the place of a key; None where Costguard cannot, or where it is not clear who follows.

    One alias at a time: each is a change, and a way back, of its own.
    """
    if not can_be_made_again(key) or not key.aliases:
        return None
    if not line.claims:
        return Remediation(RemediationKind.CREATE_SUCCESSOR, key.ref)
    if line.heir is None:
        return None
    said = {"alias": min(key.aliases).removeprefix("alias/"), "successor": line.heir.ref.native_id}
    return Remediation(RemediationKind.MOVE_ALIAS, key.ref, said)


def can_be_made_again(key: EncryptionKey) -> bool:
    """Whether a key of its kind can be made anew with material of the cloud's own, and is known to work now."""
    return (
        key.rotatability.succeeds
        and key.state is KeyState.ENABLED
        and key.manager is KeyManager.CUSTOMER
        and key.origin is KeyOrigin.CLOUD
        and key.multi_region is MultiRegion.NONE
    )


def is_alike(key: EncryptionKey, other: EncryptionKey) -> bool:
    """Whether one can do all that the other does."""
    return (key.spec, key.usage, key.ref.shard) == (other.spec, other.usage, other.ref.shard)


def inverse(mend: Remediation) -> Remediation | None:
    """What takes a mend of a key back; only an alias can be."""
    return (
        Remediation(RemediationKind.RESTORE_ALIAS, mend.subject, mend.parameters)
        if mend.kind is RemediationKind.MOVE_ALIAS
        else None
    )


def _heir(key: EncryptionKey | None, claims: list[EncryptionKey]) -> EncryptionKey | None:
    if key is None or len(claims) != 1:
        return None
    (heir,) = claims
    return heir if can_be_made_again(heir) and is_alike(key, heir) else None


def _after(ref: ResourceRef, claims: Mapping[ResourceRef, list[EncryptionKey]]) -> Iterable[EncryptionKey]:
    """All that follow a key, each once: tags can be made to point in a circle."""
    seen, waiting = {ref}, [ref]
    while waiting:
        for each in claims.get(waiting.pop(), ()):
            if each.ref not in seen:
                seen.add(each.ref)
                waiting.append(each.ref)
                yield each
