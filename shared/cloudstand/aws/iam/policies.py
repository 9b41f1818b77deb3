"""Attaching service control policies, where moto says yes to what AWS refuses."""

from __future__ import annotations

from typing import Any

from moto.organizations.exceptions import OrganizationsClientError, TargetNotFoundException
from moto.organizations.models import OrganizationsBackend

from cloudstand.aws.core.patching import Patch

_SCP = "SERVICE_CONTROL_POLICY"
MOST_OF_TARGET = 5


def attaching() -> tuple[Patch, ...]:
    """Duplicates, what is not attached, the last policy of a target and a sixth are refused."""
    attach, detach = OrganizationsBackend.attach_policy, OrganizationsBackend.detach_policy

    def attach_policy(backend: Any, **asked: Any) -> None:
        found = _attached(backend, asked)
        if asked["PolicyId"] in found:
            raise OrganizationsClientError("DuplicatePolicyAttachmentException", "The policy is attached already.")
        if len(found) >= MOST_OF_TARGET:
            raise OrganizationsClientError("ConstraintViolationException", "MAX_POLICY_TYPE_ATTACHMENT_LIMIT_EXCEEDED")
        attach(backend, **asked)

    def detach_policy(backend: Any, **asked: Any) -> None:
        found = _attached(backend, asked)
        if asked["PolicyId"] not in found:
            raise OrganizationsClientError("PolicyNotAttachedException", "The policy isn't attached to the target.")
        if len(found) == 1:
            raise OrganizationsClientError("ConstraintViolationException", "MIN_POLICY_TYPE_ATTACHMENT_LIMIT_EXCEEDED")
        detach(backend, **asked)

    return (
        Patch(
            OrganizationsBackend,
            "attach_policy",
            attach_policy,
            "what is attached already is attached again in silence, and any number of policies",
        ),
        Patch(
            OrganizationsBackend,
            "detach_policy",
            detach_policy,
            "what is not attached is detached in silence, and the last one of a target too",
        ),
    )


def _attached(backend: Any, asked: Any) -> list[str]:
    """The ids at the target, of the kind of the policy in question."""
    policy = backend.get_policy_by_id(asked["PolicyId"])
    places = {place.id: place for place in (*backend.ou, *backend.accounts)}
    found = places.get(asked["TargetId"])
    if found is None:
        raise TargetNotFoundException
    return [each.id for each in found.attached_policies if each.type == policy.type]
