"""What every `NetworkRemediator` holds to: a session that can do nothing else, and only what was decided on."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping
from typing import Any, ClassVar, Generic

from typing_extensions import assert_never

from costguard.domain.actions import Receipt
from costguard.domain.errors import InvalidInputError, NotFoundError, RefusedError
from costguard.domain.network import NetworkRule, PublicAddress
from costguard.domain.refs import ResourceRef
from costguard.domain.remediations import Remediation, RemediationKind
from costguard.guards.network.rules import read_rule
from costguard.providers.kit.iam.permissions import OnlyFor, Purpose, SessionT

_LOGGED = ("interface", "subnet", "vpc")


class AddressRemediator(ABC, Generic[SessionT]):
    """Changes what one public address is bound to; read anew just before, and refused where it is not as `before`.

    `keeper` says whose an address is that a service keeps. Takes the session of its `NetworkRemediator`.
    """

    keeper: ClassVar = "a service of the cloud keeps it"

    def __init__(self, session: SessionT) -> None:
        self._session = session

    @abstractmethod
    def release(self, mend: Remediation, before: Mapping[str, str]) -> Receipt:
        """Give the address up, for good; only one that is bound to nothing."""

    @abstractmethod
    def detach(self, mend: Remediation, before: Mapping[str, str]) -> Receipt:
        """Take the address off what it is bound to."""

    @abstractmethod
    def attach(self, mend: Remediation, before: Mapping[str, str]) -> Receipt:
        """Bind the address to the private one it was taken off."""

    def _unmoved(self, mend: Remediation, address: PublicAddress, before: Mapping[str, str]) -> None:
        """Refuse one that is not the address that was decided on, or that something else keeps."""
        require(mend, bool(address.ip) and address.ip == mend.parameters.get("ip"), f"the address is {address.ip}")
        require(mend, not address.is_service_managed, self.keeper)
        bound_to = "" if address.bound_to is None else str(address.bound_to)
        require_unmoved(mend, {"ip": address.ip, "state": address.state.value, "bound_to": bound_to}, before)


class RuleRemediator(ABC, Generic[SessionT]):
    """Changes one rule of a security group, never the whole group; read anew just before.

    Takes the session of its `NetworkRemediator`.
    """

    def __init__(self, session: SessionT) -> None:
        self._session = session

    @abstractmethod
    def revoke(self, mend: Remediation, before: Mapping[str, str]) -> Receipt:
        """Take one rule away."""

    @abstractmethod
    def narrow(self, mend: Remediation, before: Mapping[str, str]) -> Receipt:
        """The same for fewer: the narrower rules first, so that nobody of them is cut off in between.

        Raises:
            OutcomeUnknownError: also where the narrower rules are there, and the wide one could not be taken away.
        """

    @abstractmethod
    def restore(self, mend: Remediation) -> Receipt:
        """Put back a rule as its image has it, and then take away what stands in its place.

        Raises:
            OutcomeUnknownError: also where the rule is back, and the others could not be taken away.
        """


class NetworkRemediator(OnlyFor[SessionT], ABC):
    """The port of that name for `clouds`, from a session that can do nothing else; one setting a call, no retry."""

    purpose: ClassVar = Purpose.MEND
    clouds: ClassVar[Collection[str]]
    addresses: ClassVar[type[AddressRemediator[Any]]]
    rules: ClassVar[type[RuleRemediator[Any]]]

    def change(self, mend: Remediation, before: Mapping[str, str]) -> Receipt:  # noqa: C901 - one case a kind
        """Make the change, unless what is there is not what `before` says. Called once per intent, never retried.

        Everything is read just before, and nothing is sent about what has moved since `before`.

        Raises:
            OutcomeUnknownError: the call may have taken effect, or half of the change has; read before anything else.
            AccessDeniedError: the role lacks a permission listed in permissions.py.
            RefusedError: the cloud refused, or what is there is not what `before` says; nothing changed.
            NotFoundError: what it is about is gone; nothing changed.
            ThrottledError: rejected before execution; nothing changed.
            UnavailableError: it could not be read just before; nothing changed.

        API: what each kind sends stands with it.
        """
        match mend.kind:
            case RemediationKind.RELEASE_ADDRESS:
                return self.addresses(self._session).release(self._of(mend, "address"), before)
            case RemediationKind.DETACH_ADDRESS:
                return self.addresses(self._session).detach(self._of(mend, "address"), before)
            case RemediationKind.ATTACH_ADDRESS:
                return self.addresses(self._session).attach(self._of(mend, "address"), before)
            case RemediationKind.REVOKE_RULE:
                return self.rules(self._session).revoke(self._of(mend, "security_group"), before)
            case RemediationKind.NARROW_RULE:
                return self.rules(self._session).narrow(self._of(mend, "security_group"), before)
            case RemediationKind.RESTORE_RULE:
                return self.rules(self._session).restore(self._of(mend, "security_group"))
            case RemediationKind.ENABLE_FLOW_LOGS:
                return self._log_flows(self._of(mend, *_LOGGED))
            case RemediationKind.REMOVE_FLOW_LOGS:
                return self._end_flow_log(self._of(mend, *_LOGGED))
            case RemediationKind.REQUIRE_IMDSV2:
                return self._set_imds(self._of(mend, "instance"), before, v1=False)
            case RemediationKind.ALLOW_IMDSV1:
                return self._set_imds(self._of(mend, "instance"), before, v1=True)
            case (
                RemediationKind.SET_ROTATION
                | RemediationKind.ROTATE_KEY
                | RemediationKind.CREATE_SUCCESSOR
                | RemediationKind.MOVE_ALIAS
                | RemediationKind.RESTORE_ALIAS
            ):
                raise refusal(mend, "that is about a key, not a network")
            case _:
                assert_never(mend.kind)

    def _of(self, mend: Remediation, *kinds: str) -> Remediation:
        require_subject(mend, kinds, self.clouds)
        return mend

    @abstractmethod
    def _log_flows(self, mend: Remediation) -> Receipt:
        """Begin to record all traffic, where `destination` says; nothing where there is a record already."""

    @abstractmethod
    def _end_flow_log(self, mend: Remediation) -> Receipt:
        """End the record that `flow_log` names; what it has recorded stays where it is."""

    @abstractmethod
    def _set_imds(self, mend: Remediation, before: Mapping[str, str], *, v1: bool) -> Receipt:
        """Whether metadata answers without a session token; the endpoint itself stays as it is."""


def imaged(mend: Remediation) -> NetworkRule:
    """The rule that the mend puts back.

    Raises:
        RefusedError: it has no image of one.
    """
    try:
        return read_rule(mend.parameters.get("rule", ""))
    except InvalidInputError as err:
        raise refusal(mend, str(err)) from err


def bound_before(mend: Remediation) -> ResourceRef:
    """What the mend says that the address is, or was, bound to: a machine or interface of its own account and region.

    Raises:
        RefusedError: something else, or nothing.
    """
    try:
        where = ResourceRef.parse(mend.parameters.get("bound_to", ""))
    except InvalidInputError as err:
        raise refusal(mend, "it does not say what the address is bound to") from err
    require(mend, where.kind in {"instance", "interface"}, f"what is bound to {where.kind} is taken off there")
    require(mend, where.shard == mend.subject.shard, "it is bound in another account or region")
    return where


def listed(mend: Remediation, name: str) -> list[str]:
    """The words of a parameter that holds several: networks, or rules."""
    return [each.strip() for each in mend.parameters.get(name, "").split(",") if each.strip()]


def require_subject(mend: Remediation, kinds: Collection[str], clouds: Collection[str]) -> None:
    """The mend is about something of one of these kinds in one of these clouds, and says which.

    Raises:
        RefusedError: it is not.
    """
    subject = mend.subject
    fits = subject.kind in kinds and subject.cloud in clouds and bool(subject.native_id and subject.region)
    wanted = f"it needs {' or '.join(sorted(kinds))} of {' or '.join(sorted(clouds))}, with id and region"
    require(mend, fits, wanted)


def require_unmoved(mend: Remediation, now: Mapping[str, str], before: Mapping[str, str]) -> None:
    """Refuse what was decided on something that is not there any more; words that only one of them has count nothing.

    Raises:
        RefusedError: it has moved.
    """
    moved = sorted(word for word, was in before.items() if word in now and now[word] != was)
    require(mend, not moved, f"changed since it was decided on: {', '.join(moved)}")


def require(mend: Remediation, fits: bool, why: str) -> None:  # noqa: FBT001 - the question comes first, as in an assertion
    """Refuse for the reason `why` unless it `fits`.

    Raises:
        RefusedError: it does not.
    """
    if not fits:
        raise refusal(mend, why)


def refusal(mend: Remediation, why: str) -> RefusedError:
    """The error of a mend of which nothing was sent."""
    message = f"{mend.kind.value} of {mend.subject}: nothing was sent: {why}"
    return RefusedError(message, code="Unfit")


def gone(mend: Remediation, what: str, operation: str, code: str = "NotListed") -> NotFoundError:
    """The error of a mend whose object is not there any more; `code` is what the cloud would say, where it is asked."""
    message = f"{mend.kind.value} of {mend.subject}: nothing was sent: {what} is not there"
    return NotFoundError(message, operation=operation, code=code)
