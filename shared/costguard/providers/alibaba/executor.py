"""The four changes Costguard makes on Alibaba Cloud: stop, snapshot, terminate, and start to undo a stop."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from typing import Any

from typing_extensions import assert_never

from costguard.domain.actions import Action, Receipt, Verb
from costguard.domain.errors import InvalidInputError, OutcomeUnknownError, ProviderError, RefusedError
from costguard.providers.alibaba import errors
from costguard.providers.alibaba.attached import CASE_TAG, DECISION_TAG
from costguard.providers.alibaba.forms import structures_in
from costguard.providers.alibaba.products import HOME_REGIONS
from costguard.providers.alibaba.session import AlibabaSession
from costguard.providers.documented import as_documented, named, text

_LONGEST_TAG = 128
_LONGEST_TEXT = 128  # of a name; a description may have 256
_BATCH = "InstanceResponses.InstanceResponse"


class AlibabaExecutor:
    """`ActionExecutor` for one site of Alibaba Cloud; one resource a call, never a retry."""

    def __init__(self, session: AlibabaSession) -> None:
        """Take a session made for acting.

        Raises:
            InvalidInputError: `session` is read-only: whoever wires this would act where nothing may be done.
        """
        if not session.may_change:
            message = "an executor needs a session made for acting (AlibabaSession.acting()), this one is read-only"
            raise InvalidInputError(message)
        self._session = session

    def execute(self, action: Action) -> Receipt:
        """Start `action`; return once Alibaba Cloud has accepted it. Accepted is not done.

        A stop asks for economical mode, which is ignored in silence where it does not exist: what the machine says
        afterwards (`billed_while_stopped`) tells. A release never forces: a machine that runs is refused, and so is a
        prepaid one.

        Raises:
            OutcomeUnknownError: the call may have taken effect; describe before anything else.
            AccessDeniedError: the role lacks a permission listed in permissions.py.
            RefusedError: the cloud refused, or the action does not fit its resource; nothing changed.
            ThrottledError: rejected before execution; nothing changed.

        API: ECS StopInstances, StartInstances, DeleteInstances with one id, CreateSnapshot of one disk. Where the
        API has a ClientToken it is made from the decision: sent twice, it would still be done once.
        """
        verb = action.verb
        if verb is Verb.STOP:
            return self._batch(action, "StopInstances", StoppedMode="StopCharging", ForceStop=False)
        if verb is Verb.START:
            return self._batch(action, "StartInstances")
        if verb is Verb.TERMINATE:
            return self._terminate(action)
        if verb is Verb.SNAPSHOT:
            return self._snapshot(action)
        if verb is Verb.WARN:
            raise _unfit(action, "warning people is not the cloud's business")
        assert_never(verb)

    def _batch(self, action: Action, operation: str, **parameters: Any) -> Receipt:
        """A call that answers for each instance apart, with a code of its own."""
        native_id = _instance(action)
        # SuccessFirst: without it a refusal of one among many rolls back the others; of one alone it is the same
        answer = self._session.call(
            action.resource.shard,
            "ecs",
            operation,
            InstanceId=[native_id],
            BatchOptimization="SuccessFirst",
            **parameters,
        )
        api = f"ecs:{operation}"
        with _after_sending(api):
            responses = structures_in(answer, _BATCH, api)
            told = [(text(each, "InstanceId"), text(each, "Code"), text(each, "Message")) for each in responses]
            receipt = Receipt(request_id=named(answer, "RequestId"))
        if [about for about, _, _ in told] != [native_id]:
            message = f"{api}: answered about {len(told)} instances, not {native_id} alone; it may have taken effect"
            raise OutcomeUnknownError(message, operation=api, code="UnexpectedAnswer")
        _, code, message = told[0]
        if code != "200":
            raise errors.refusal(api, code, message, changes=True)
        return receipt

    def _terminate(self, action: Action) -> Receipt:
        native_id = _instance(action)
        answer = self._session.call(
            action.resource.shard,
            "ecs",
            "DeleteInstances",
            InstanceId=[native_id],
            Force=False,
            TerminateSubscription=False,
            ClientToken=_token(action),
        )
        with _after_sending("ecs:DeleteInstances"):
            return Receipt(request_id=named(answer, "RequestId"))

    def _snapshot(self, action: Action) -> Receipt:
        _check(action, "volume")
        if action.resource.shard != action.subject.shard:
            raise _unfit(action, "volume and instance must be of one account and region")
        disk, instance = action.resource.native_id, action.subject.native_id
        tags = {DECISION_TAG: action.decision_id, CASE_TAG: action.case_id}
        if any(len(value) > _LONGEST_TAG or "://" in value for value in tags.values()):
            raise _unfit(action, f"a tag would be longer than {_LONGEST_TAG} characters, or an address")
        answer = self._session.call(
            action.resource.shard,
            "ecs",
            "CreateSnapshot",
            DiskId=disk,
            SnapshotName=f"costguard-{instance}-{disk}"[:_LONGEST_TEXT],
            Description=f"made by costguard of a disk of {instance}, case {action.case_id}"[:_LONGEST_TEXT],
            Tag=[{"Key": key, "Value": value} for key, value in tags.items()],
            ClientToken=_token(action),
        )
        api = "ecs:CreateSnapshot"
        with _after_sending(api):
            return Receipt(request_id=named(answer, "RequestId"), native_id=named(answer, "SnapshotId"))


def _token(action: Action) -> str:
    """64 characters that belong to one decision about one resource."""
    words = "\n".join((action.verb.value, action.decision_id, str(action.resource)))
    return sha256(words.encode()).hexdigest()


@contextmanager
def _after_sending(operation: str) -> Iterator[None]:
    """The change was sent: an answer that cannot be read leaves its outcome unknown."""
    try:
        with as_documented(operation):
            yield
    except ProviderError as err:
        message = f"{err}; it may have taken effect"
        raise OutcomeUnknownError(message, operation=operation, code=err.code) from err


def _instance(action: Action) -> str:
    if action.resource != action.subject:
        raise _unfit(action, "it must change the instance of its case")
    _check(action, "instance")
    return action.resource.native_id


def _check(action: Action, kind: str) -> None:
    if action.resource.kind != kind or action.resource.cloud not in HOME_REGIONS:
        raise _unfit(action, f"it needs an {kind} of Alibaba Cloud")
    if not action.resource.native_id or not action.resource.region:
        raise _unfit(action, "its resource has no id or region")


def _unfit(action: Action, why: str) -> RefusedError:
    message = f"{action.verb.value} of {action.resource}: not sent: {why}"
    return RefusedError(message, code="Unfit")
