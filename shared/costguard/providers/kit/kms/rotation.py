"""What rotates keys and what succeeds them holds to: sessions that can do nothing else, and only what a key allows."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol, TypeVar

from costguard.domain.actions import Receipt
from costguard.domain.errors import OutcomeUnknownError, ProviderError, RefusedError
from costguard.domain.keys import EncryptionKey, KeyManager, KeyState, RotationMeans
from costguard.guards.keys.judge import DECISION, MOVED_BACK, SUCCESSOR_OF, can_be_made_again, is_alike
from costguard.providers.kit.core.fields import as_documented, named
from costguard.providers.kit.core.session import Session
from costguard.providers.kit.iam.permissions import OnlyFor, Purpose, SessionT


class KeyRotator(OnlyFor[SessionT], ABC):
    """The port of that name for `clouds`, from a session that can do nothing else; one key a call, never a retry."""

    purpose: ClassVar = Purpose.ROTATE
    clouds: ClassVar[Collection[str]]

    def set_period(self, key: EncryptionKey, days: int) -> Receipt:
        """Turn automatic rotation on with this period, or change the period.

        Raises:
            OutcomeUnknownError: it may have taken effect; read the key before anything else.
            AccessDeniedError: the role, or the key's own policy, lacks the permission.
            RefusedError: the cloud refused, or the period does not fit the key; nothing changed.
            ThrottledError: rejected before execution; nothing changed.
        """
        require_period(key, days, self.clouds)
        return self._set_period(key, days)

    def rotate(self, key: EncryptionKey) -> Receipt:
        """Rotate now; the schedule of automatic rotation stays as it is. Errors as `set_period`."""
        require_on_demand(key, self.clouds)
        return self._rotate(key)

    @abstractmethod
    def _set_period(self, key: EncryptionKey, days: int) -> Receipt:
        """Set a period that fits the key."""

    @abstractmethod
    def _rotate(self, key: EncryptionKey) -> Receipt:
        """Rotate what rotates on demand."""


def require_period(key: EncryptionKey, days: int, clouds: Collection[str]) -> None:
    """Refuse, before anything is sent, a period that this key cannot be given.

    Raises:
        RefusedError: it cannot.
    """
    _require_rotatable(key, RotationMeans.AUTOMATIC, clouds)
    shortest, longest = key.rotatability.shortest_days, key.rotatability.longest_days
    if shortest is None or longest is None or not shortest <= days <= longest:
        raise _not_sent(key, f"a period of {days} days is not from {shortest} to {longest}")


def require_on_demand(key: EncryptionKey, clouds: Collection[str]) -> None:
    """Refuse, before anything is sent, rotating a key that cannot be rotated on demand.

    Raises:
        RefusedError: it cannot.
    """
    _require_rotatable(key, RotationMeans.ON_DEMAND, clouds)


def _require_rotatable(key: EncryptionKey, means: RotationMeans, clouds: Collection[str]) -> None:
    if key.ref.kind != "key" or key.ref.cloud not in clouds or not key.ref.native_id or not key.ref.region:
        raise _not_sent(key, f"it needs a key of {' or '.join(sorted(clouds))}")
    if key.manager is not KeyManager.CUSTOMER:
        raise _not_sent(key, "its cloud decides over it")
    if key.state is not KeyState.ENABLED:
        raise _not_sent(key, f"it is {key.state.value}")
    if means not in key.rotatability.means:
        raise _not_sent(key, key.rotatability.note or f"its kind does not rotate {means.value}")


def _not_sent(key: EncryptionKey, why: str) -> RefusedError:
    """The error of a key about which nothing was sent."""
    message = f"rotation of {key.ref}: nothing was sent: {why}"
    return RefusedError(message, code="Unfit")


CANARY_FAILED = "CanaryFailed"
"""A code of our own: the alias was moved and is back, as a canary did not come through."""

CANARY = "costguard canary: not a secret, only to see whether a key can be used"
CONTEXT = {"costguard-canary": "alias-move"}
"""Of every canary that is encrypted: a role may be allowed to decrypt what has it, and nothing else."""


@dataclass(frozen=True, slots=True)
class Sealed:
    """What came of a canary: by which key, as the cloud says, and the ciphertext or signature."""

    by: str
    proof: str


class AliasWire(Protocol):
    """What a vendor brings to `moved`: three requests about one alias and the two keys it is between."""

    def seal(self, named: str, key: EncryptionKey) -> Sealed:
        """A canary encrypted (of a key for signatures: signed) by whatever `named` is, an id or an alias.

        `key` tells what for.
        """

    def holds(self, key: EncryptionKey, sealed: Sealed) -> bool:
        """Whether this key, by its id, decrypts the canary to what it was (or verifies it)."""

    def point(self, alias: str, key: EncryptionKey) -> Receipt:
        """Let the alias, with its prefix, name this key."""


_SessionT = TypeVar("_SessionT", bound=Session[Any, Any])


class KeySuccessor(OnlyFor[_SessionT], ABC):
    """The port of that name for `clouds`, and the `AliasWire` of its own canaries; never a retry of a change.

    Tags that begin with a word of `reserved` only the cloud may write.
    """

    purpose: ClassVar = Purpose.SUCCEED
    clouds: ClassVar[Collection[str]]
    reserved: ClassVar[tuple[str, ...]]

    def create(self, key: EncryptionKey, decision: str) -> Receipt:
        """Make a key like this one: spec, usage, key policy, and tags but those that the cloud keeps for itself.

        A schedule of rotation is not copied. A key whose policy names itself is refused.

        Raises:
            OutcomeUnknownError: there may be a new key; list them before anything else.
            AccessDeniedError: the role, or the old key's policy, lacks a permission.
            RefusedError: nothing was made.
            ThrottledError: rejected before execution; nothing was made.
        """
        require_creatable(key, decision, self.clouds)
        return self._create(key, successor_tags(key, decision, self.reserved))

    def move_alias(self, alias: str, holder: EncryptionKey, heir: EncryptionKey) -> Receipt:
        """Move the alias, and back where a canary fails; it may take minutes until every request sees it.

        Raises:
            ProviderError: as `moved`.
        """
        return moved(self, alias, holder, heir, self.clouds)

    @abstractmethod
    def _create(self, key: EncryptionKey, tags: Mapping[str, str]) -> Receipt:
        """As `create`, of a key that another can be made like."""

    @abstractmethod
    def seal(self, named: str, key: EncryptionKey) -> Sealed:
        """As of `AliasWire`."""

    @abstractmethod
    def holds(self, key: EncryptionKey, sealed: Sealed) -> bool:
        """As of `AliasWire`."""

    @abstractmethod
    def point(self, alias: str, key: EncryptionKey) -> Receipt:
        """As of `AliasWire`. API: KMS UpdateAlias."""

    def _policy_of(self, key: EncryptionKey) -> str:
        """The key's policy, where another key may have the same. API: KMS GetKeyPolicy."""
        answer = self._call(key, "GetKeyPolicy", KeyId=key.ref.native_id, PolicyName="default")
        with as_documented("kms:GetKeyPolicy"):
            policy = named(answer, "Policy")
        require_policy_of_any_key(key, policy)
        return policy

    def _call(self, key: EncryptionKey, operation: str, **parameters: Any) -> dict[str, Any]:
        return self._session.call(key.ref.shard, "kms", operation, **parameters)


def require_creatable(key: EncryptionKey, decision: str, clouds: Collection[str]) -> None:
    """Refuse, before anything is sent, a key that no other can be made like.

    Raises:
        RefusedError: none can.
    """
    _require_replaceable(key, clouds)
    if not decision:
        raise unfit(key, "no decision stands behind it")


def successor_tags(key: EncryptionKey, decision: str, reserved: tuple[str, ...]) -> Mapping[str, str]:
    """The tags of the new key: those of the old but the cloud's own (`reserved` prefixes), whose it is and by what."""
    kept = {name: value for name, value in key.tags.items() if not name.lower().startswith(reserved)}
    return {**kept, SUCCESSOR_OF: key.ref.native_id, DECISION: decision}


def require_policy_of_any_key(key: EncryptionKey, policy: str) -> None:
    """Refuse a policy that names the old key: on another it would say something else.

    Raises:
        RefusedError: it does.
    """
    if key.ref.native_id in policy:
        raise unfit(key, "its policy names the key itself, so another cannot have the same")


def moved(wire: AliasWire, alias: str, holder: EncryptionKey, heir: EncryptionKey, clouds: Collection[str]) -> Receipt:
    """Move an alias, see that old and new data can be read, and move it back where they cannot.

    Both keys are tried before the move, so that a key that cannot be used costs nothing. Afterwards the alias may go on
    naming the old key for a while, as clouds take their time: that is no failure, and the next look reads it back.

    Raises:
        RefusedError: nothing changed; or, with `CANARY_FAILED`, the alias was moved and is back.
        OutcomeUnknownError: the alias may be with either.
    """
    _require_movable(alias, holder, heir, clouds)
    named = f"alias/{alias}"
    before = wire.seal(named, holder)
    if before.by != holder.ref.native_id:
        raise unfit(holder, f"{named} is with {before.by}, not with it")
    for key, canary in ((holder, before), (heir, wire.seal(heir.ref.native_id, heir))):
        if not wire.holds(key, canary):
            raise unfit(key, "what it made of a canary it does not take back")
    receipt = wire.point(named, heir)
    failed = _failed(wire, named, holder, heir, before)
    if not failed:
        return receipt
    try:
        wire.point(named, holder)
    except ProviderError as err:
        message = f"{named} was moved to {heir.ref.native_id}, then {failed}; moving it back: {err}"
        raise OutcomeUnknownError(message, operation=err.operation, code=err.code) from err
    message = f"{named} was moved to {heir.ref.native_id}, then {failed}; {MOVED_BACK} to {holder.ref.native_id}"
    raise RefusedError(message, code=CANARY_FAILED)


def _failed(wire: AliasWire, named: str, holder: EncryptionKey, heir: EncryptionKey, before: Sealed) -> str:
    """What went wrong after the move; empty where all is well."""
    try:
        if not wire.holds(holder, before):
            return f"{holder.ref.native_id} no longer takes back what it made before"
        after = wire.seal(named, heir)
        maker = next((key for key in (heir, holder) if key.ref.native_id == after.by), None)
        if maker is None:
            return f"{named} is with {after.by}, which is neither of the two"
        if not wire.holds(maker, after):
            return f"{maker.ref.native_id} does not take back what was made through {named}"
    except ProviderError as err:
        return str(err)
    return ""


def _require_movable(alias: str, holder: EncryptionKey, heir: EncryptionKey, clouds: Collection[str]) -> None:
    _require_replaceable(holder, clouds)
    _require_replaceable(heir, clouds)
    if not alias or alias.startswith("alias/"):
        raise unfit(holder, "it needs an alias without its prefix")
    if holder.ref == heir.ref or not is_alike(holder, heir):
        raise unfit(holder, f"{heir.ref.native_id} cannot do what it does")


def _require_replaceable(key: EncryptionKey, clouds: Collection[str]) -> None:
    if key.ref.kind != "key" or key.ref.cloud not in clouds or not key.ref.native_id or not key.ref.region:
        raise unfit(key, f"it needs a key of {' or '.join(sorted(clouds))}")
    if not can_be_made_again(key):
        raise unfit(key, f"costguard makes no other in its place ({key.state.value}, {key.spec})")


def unfit(key: EncryptionKey, why: str) -> RefusedError:
    """The error of a key about which nothing was changed."""
    message = f"successor of {key.ref}: nothing was changed: {why}"
    return RefusedError(message, code="Unfit")
