"""What every `NetworkRemediator` holds to: a session that can do nothing else, and only what was decided on."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping
from typing import ClassVar, Protocol

from typing_extensions import assert_never

from costguard.domain.actions import Receipt
from costguard.domain.errors import InvalidInputError, NotFoundError, RefusedError
from costguard.domain.network import NetworkRule
from costguard.domain.remediations import Remediation, RemediationKind
from costguard.guards.network.rules import read_rule
from costguard.providers.kit.iam.purposes import OnlyFor, Purpose, SessionT

_LOGGED = ("interface", "subnet", "vpc")


class Addresses(Protocol):
    """Changes what one public address is bound to; read anew just before, and refused where it is not as `before`."""

    def release(self, mend: Remediation, before: Mapping[str, str]) -> Receipt:
        """Give the address up, for good."""

    def detach(self, mend: Remediation, before: Mapping[str, str]) -> Receipt:
        """Take the address off what it is bound to."""

    def attach(self, mend: Remediation, before: Mapping[str, str]) -> Receipt:
        """Bind the address to the private one it was taken off."""


class Rules(Protocol):
    """Changes one rule of a security group, never the whole group; read anew just before."""

    def revoke(self, mend: Remediation, before: Mapping[str, str]) -> Receipt:
        """Take one rule away."""

    def narrow(self, mend: Remediation, before: Mapping[str, str]) -> Receipt:
        """The same for fewer: the narrower rules first, so that nobody of them is cut off in between.

        Raises:
            OutcomeUnknownError: also where the narrower rules are there, and the wide one could not be taken away.
        """

    def restore(self, mend: Remediation) -> Receipt:
        """Put back a rule as its image has it, and then take away what stands in its place.

        Raises:
            OutcomeUnknownError: also where the rule is back, and the others could not be taken away.
        """


class NetworkRemediator(OnlyFor[SessionT], ABC):
    """The port of that name for `clouds`, from a session that can do nothing else; one setting a call, no retry."""

    purpose: ClassVar = Purpose.MEND
    clouds: ClassVar[Collection[str]]

    @property
    @abstractmethod
    def addresses(self) -> Addresses:
        """What changes public addresses."""

    @property
    @abstractmethod
    def rules(self) -> Rules:
        """What changes rules of security groups."""

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
                return self.addresses.release(self._of(mend, "address"), before)
            case RemediationKind.DETACH_ADDRESS:
                return self.addresses.detach(self._of(mend, "address"), before)
            case RemediationKind.ATTACH_ADDRESS:
                return self.addresses.attach(self._of(mend, "address"), before)
            case RemediationKind.REVOKE_RULE:
                return self.rules.revoke(self._of(mend, "security_group"), before)
            case RemediationKind.NARROW_RULE:
                return self.rules.narrow(self._of(mend, "security_group"), before)
            case RemediationKind.RESTORE_RULE:
                return self.rules.restore(self._of(mend, "security_group"))
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
