"""Stopping, starting and releasing machines: alone, or in a batch of which each part answers for itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from typing_extensions import assert_never

from cloudstand.alibaba.compute.instances import machine_named, status_of
from cloudstand.alibaba.core.errors import FORBIDDEN, NOT_FOUND, ApiError
from cloudstand.alibaba.core.site import ApiCall
from cloudstand.world.cloud import World
from cloudstand.world.kinds import Billing, InstanceState
from cloudstand.world.records import Machine, Operation, Refusal

BY = "api"  # who did it, as the world's history tells


def stop_instances(call: ApiCall, world: World) -> Mapping[str, Any]:
    """Stop up to a hundred machines; what stops for free depends on the machine, and nobody is told."""
    return _batch(call, world, Operation.STOP)


def stop_instance(call: ApiCall, world: World) -> Mapping[str, Any]:
    """Stop one machine."""
    return _single(call, world, Operation.STOP)


def start_instances(call: ApiCall, world: World) -> Mapping[str, Any]:
    """Start up to a hundred machines."""
    return _batch(call, world, Operation.START)


def start_instance(call: ApiCall, world: World) -> Mapping[str, Any]:
    """Start one machine."""
    return _single(call, world, Operation.START)


def delete_instances(call: ApiCall, world: World) -> Mapping[str, Any]:
    """Release up to a hundred machines: all of them, or none.

    Raises:
        ApiError: one of them cannot be released, or this was a dry run, which looks at no machine at all.
    """
    if call.asked.flag("DryRun"):
        raise _dry_run_succeeded()
    return call.once(lambda: _release(call, world, call.asked.many("InstanceId")))


def delete_instance(call: ApiCall, world: World) -> Mapping[str, Any]:
    """Release one machine.

    Raises:
        ApiError: it cannot be released, or this was a dry run.
    """
    if call.asked.flag("DryRun"):
        machine = machine_named(call, world, call.asked.text("InstanceId"))
        _check(call, world, machine, Operation.TERMINATE)
        raise dry_run()
    return _release(call, world, [call.asked.text("InstanceId")])


def dry_run() -> ApiError:
    """What a dry run answers that would have been allowed: an error, by its form."""
    return ApiError("DryRunOperation", "Request validation has been passed with DryRun flag set.")


def _dry_run_succeeded() -> ApiError:
    return ApiError("DRYRUN.SUCCESS", "Request validation has been passed with DryRun flag set.")


def _single(call: ApiCall, world: World, verb: Operation) -> Mapping[str, Any]:
    machine = machine_named(call, world, call.asked.text("InstanceId"))
    _check(call, world, machine, verb)
    if call.asked.flag("DryRun"):
        raise dry_run()
    _do(call, world, machine, verb)
    return {}


def _batch(call: ApiCall, world: World, verb: Operation) -> Mapping[str, Any]:
    """Both ways of a batch: all or nothing, or each for itself with a code of its own."""
    ids = dict.fromkeys(call.asked.many("InstanceId"))
    each_alone = call.asked.text("BatchOptimization") == "SuccessFirst"
    if call.asked.flag("DryRun") and each_alone:
        raise _dry_run_succeeded()
    refused: dict[str, ApiError] = {}
    for native_id in ids:
        try:
            _check(call, world, machine_named(call, world, native_id), verb)
        except ApiError as err:
            if not each_alone:
                raise
            refused[native_id] = err
    if call.asked.flag("DryRun"):
        raise _dry_run_succeeded()
    answers = [_done(call, world, native_id, verb, refused.get(native_id)) for native_id in ids]
    return {"InstanceResponses": {"InstanceResponse": answers}}


def _done(call: ApiCall, world: World, native_id: str, verb: Operation, refused: ApiError | None) -> dict[str, Any]:
    machine = world.machines.get(native_id)
    before = status_of(machine) if machine is not None and not _unknown(refused) else ""
    if refused is not None or machine is None:
        code, message = (refused.code, refused.message) if refused else ("", "")
        return {
            "InstanceId": native_id,
            "Code": code,
            "Message": message,
            "PreviousStatus": before,
            "CurrentStatus": before,
        }
    _do(call, world, machine, verb)
    return {
        "InstanceId": native_id,
        "Code": "200",
        "Message": "success",
        "PreviousStatus": before,
        "CurrentStatus": status_of(machine),
    }


def _unknown(refused: ApiError | None) -> bool:
    return refused is not None and refused.status == NOT_FOUND


def _do(call: ApiCall, world: World, machine: Machine, verb: Operation) -> None:
    if verb is Operation.STOP:
        _set_mode(call, machine)
        world.stop(machine.native_id, BY, forced=call.asked.flag("ForceStop"))
    elif verb is Operation.START:
        world.start(machine.native_id, BY)


def _set_mode(call: ApiCall, machine: Machine) -> None:
    """Without StopCharging a stop is a standard one here, which bills on and keeps the public address.

    The account's own default could be the other one; no call tells which.
    """
    standard = call.site.standard_stops
    wanted = call.asked.text("StoppedMode") == "StopCharging"
    if not wanted and not machine.spec.stop_keeps_billing:
        standard.add(machine.native_id)
        machine.spec = replace(machine.spec, stop_keeps_billing=True)
    elif wanted and machine.native_id in standard:
        standard.discard(machine.native_id)
        machine.spec = replace(machine.spec, stop_keeps_billing=False)


def _release(call: ApiCall, world: World, native_ids: Sequence[str]) -> Mapping[str, Any]:
    machines = [machine_named(call, world, native_id) for native_id in dict.fromkeys(native_ids)]
    for machine in machines:
        _check(call, world, machine, Operation.TERMINATE)
    for machine in machines:
        world.terminate(machine.native_id, BY, forced=call.asked.flag("Force"))  # of a machine that runs
    return {}


def _check(call: ApiCall, world: World, machine: Machine, verb: Operation) -> None:
    refusal = world.refusal(verb, machine.native_id)
    if refusal is not None:
        raise _refused(refusal, machine)
    if verb is Operation.TERMINATE and machine.terminate_requested_at is None:
        if machine.spec.billing is Billing.PREPAID and not call.asked.flag("TerminateSubscription"):
            raise _refused(Refusal.PREPAID, machine)
        stopped = machine.state is InstanceState.STOPPED
        if not stopped and not (call.asked.flag("Force") and machine.state is InstanceState.RUNNING):
            raise _refused(Refusal.WRONG_STATE, machine)


def _refused(refusal: Refusal, machine: Machine) -> ApiError:
    """The world's refusal in the vendor's words."""
    if refusal is Refusal.NOT_FOUND:
        return ApiError("InvalidInstanceId.NotFound", "The specified InstanceId does not exist.", NOT_FOUND)
    if refusal is Refusal.WRONG_STATE:
        if machine.state is InstanceState.PENDING:
            message = "The specified instance status does not support this operation."
            return ApiError("IncorrectInstanceStatus.Initializing", message, FORBIDDEN)
        message = "The current status of the resource does not support this operation."
        return ApiError("IncorrectInstanceStatus", message, FORBIDDEN)
    if refusal is Refusal.TERMINATION_PROTECTED:
        message = "The operation is not allowed due to deletion protection."
        return ApiError("InvalidOperation.DeletionProtection", message, FORBIDDEN)
    if refusal is Refusal.PREPAID:
        message = "The operation is not permitted due to charge type of the instance."
        return ApiError("ChargeTypeViolation", message, FORBIDDEN)
    if refusal is Refusal.NO_CAPACITY:
        message = "The requested resource is sold out in the specified zone; try other types or zones."
        return ApiError("OperationDenied.NoStock", message, FORBIDDEN)
    if refusal is Refusal.COPY_UNDER_WAY:
        message = "A previous snapshot creation is in process."
        return ApiError("IncorrectDiskStatus.CreatingSnapshot", message, FORBIDDEN)
    if refusal in (
        Refusal.CANNOT_STOP,
        Refusal.STOP_PROTECTED,
        Refusal.DENIED,
        Refusal.REFUND_QUOTA,
        Refusal.MIXED_BILLING,
    ):
        return ApiError("OperationDenied", f"The operation is denied: {refusal.value}.", FORBIDDEN)
    assert_never(refusal)
