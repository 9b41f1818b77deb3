"""What every executor holds to: it needs a session made for acting, sends what fits its resource, and never guesses."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager

from costguard.domain.actions import Action
from costguard.domain.errors import InvalidInputError, OutcomeUnknownError, ProviderError, RefusedError
from costguard.providers.kit.core.fields import as_documented


def require_acting(session: str, *, may_change: bool) -> None:
    """`session` is the name of its class.

    Raises:
        InvalidInputError: it is read-only: whoever wires this would act where nothing may be done.
    """
    if not may_change:
        message = f"an executor needs a session made for acting ({session}.acting()), this one is read-only"
        raise InvalidInputError(message)


def require_instance(action: Action, clouds: Collection[str], needs: str) -> None:
    """`action` changes the instance of its case, one of `clouds`; `needs` names what that is (`an AWS instance`).

    Raises:
        RefusedError: it does not.
    """
    if action.copies:
        raise unfit(action, "it copies no set of volumes")
    _require_subject(action, clouds, needs)


def require_set(action: Action, clouds: Collection[str], needs: str) -> None:
    """`action` is about several volumes of the instance of its case, which one call copies together.

    Raises:
        RefusedError: it is not.
    """
    _require_subject(action, clouds, needs)
    for volume in action.copies:
        if volume.kind != "volume" or volume.shard != action.subject.shard or not volume.native_id:
            raise unfit(action, f"{volume} is no volume of its account and region")


def require_volume(action: Action, clouds: Collection[str], needs: str) -> None:
    """`action` is about a volume of one of `clouds`, in the account and region of the instance of its case.

    Raises:
        RefusedError: it is not.
    """
    if action.copies:
        raise unfit(action, "it copies no set of volumes")
    _require(action, "volume", clouds, needs)
    if action.resource.shard != action.subject.shard:
        raise unfit(action, "volume and instance must be of one account and region")


def _require_subject(action: Action, clouds: Collection[str], needs: str) -> None:
    if action.resource != action.subject:
        raise unfit(action, "it must change the instance of its case")
    _require(action, "instance", clouds, needs)


def _require(action: Action, kind: str, clouds: Collection[str], needs: str) -> None:
    if action.resource.kind != kind or action.resource.cloud not in clouds:
        raise unfit(action, f"it needs {needs}")
    if not action.resource.native_id or not action.resource.region:
        raise unfit(action, "its resource has no id or region")  # an empty list of ids could mean all


def unfit(action: Action, why: str) -> RefusedError:
    """The error of an action that was not sent, as it does not fit."""
    message = f"{action.verb.value} of {action.resource}: not sent: {why}"
    return RefusedError(message, code="Unfit")


@contextmanager
def after_sending(operation: str) -> Iterator[None]:
    """The change was sent: an answer that cannot be read leaves its outcome unknown.

    Raises:
        OutcomeUnknownError: it could not.
    """
    try:
        with as_documented(operation):
            yield
    except ProviderError as err:
        message = f"{err}; it may have taken effect"
        raise OutcomeUnknownError(message, operation=operation, code=err.code) from err
