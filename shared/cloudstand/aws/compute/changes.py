"""EC2's changing calls, asked of the world: its semantics, its time, and EC2's words when it refuses."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

from moto.core.responses import ActionResult, EmptyResult
from moto.ec2.exceptions import EC2ClientError
from moto.ec2.responses import EC2Response

from cloudstand.aws.compute.bridge import STATE_CODES
from cloudstand.aws.core.patching import Patch, Request, Wire, asking
from cloudstand.world.records import Machine, Operation, Refusal, WorldRefusalError

_WORDS = {
    Operation.STOP: ("stopped", "StoppingInstances"),
    Operation.START: ("started", "StartingInstances"),
    Operation.TERMINATE: ("terminated", "TerminatingInstances"),
}


def acting(wire: Wire) -> tuple[Patch, ...]:
    """Patches of everything that changes an instance, a volume's copies, or tags."""
    instant = "changes are instant, wrong states and one-time Spot are accepted, a start keeps the old LaunchTime"
    unforced = instant + ", Force says nothing"
    tags = "a missing instance is accepted"
    return (
        Patch(EC2Response, "stop_instances", asking(wire, _stop_instances), unforced + ", reasons end in UTC"),
        Patch(EC2Response, "start_instances", asking(wire, _start_instances), instant),
        Patch(EC2Response, "terminate_instances", asking(wire, _terminate_instances), unforced),
        Patch(EC2Response, "create_snapshot", asking(wire, _create_snapshot), "complete at once"),
        Patch(
            EC2Response,
            "create_snapshots",
            asking(wire, _create_snapshots),
            "complete at once, no State in the reply, exclusions and tags of the source are ignored",
        ),
        Patch(EC2Response, "create_tags", asking(wire, _create_tags), tags),
        Patch(EC2Response, "delete_tags", asking(wire, _delete_tags), tags),
        Patch(
            EC2Response,
            "modify_instance_attribute",
            asking(wire, _modify_instance_attribute),
            "only moto would hear of it",
        ),
    )


def _stop_instances(wire: Wire, request: Request) -> ActionResult:
    return _change(wire, request, Operation.STOP, partial(wire.world.stop, forced=_forced(request)))


def _start_instances(wire: Wire, request: Request) -> ActionResult:
    return _change(wire, request, Operation.START, wire.world.start)


def _terminate_instances(wire: Wire, request: Request) -> ActionResult:
    return _change(wire, request, Operation.TERMINATE, partial(wire.world.terminate, forced=_forced(request)))


def _forced(request: Request) -> bool:
    """Whether caches may be lost: SkipOsShutdown never flushes them, Force gives up where flushing takes long.

    API: EC2 StopInstances, TerminateInstances. When Force gives up no page says: here at once, the worst it can be.
    """
    return any(str(request.parameter(name)).lower() == "true" for name in ("Force", "SkipOsShutdown"))


def _change(wire: Wire, request: Request, verb: Operation, ask: Callable[[str, str], object]) -> ActionResult:
    request.refuse_dry_run()
    ids = request.parameter("InstanceIds", [])
    before = {native_id: _state(wire.machine(request, native_id)) for native_id in ids}
    for native_id in ids:  # all or none, as EC2 does within a zone
        refusal = wire.world.refusal(verb, native_id)
        if refusal is not None:
            raise _ec2_error(refusal, verb, native_id)
    for native_id in ids:
        ask(native_id, "api")
    wire.bridge.refresh()
    changes = [
        {"InstanceId": native_id, "PreviousState": previous, "CurrentState": _state(wire.world.machines[native_id])}
        for native_id, previous in before.items()
    ]
    return ActionResult({_WORDS[verb][1]: changes})


def _create_snapshot(wire: Wire, request: Request) -> ActionResult:
    request.refuse_dry_run()
    volume_id = request.parameter("VolumeId")
    tags = request.tags("snapshot")
    description = request.parameter("Description") or ""
    try:
        made = wire.world.create_snapshot(volume_id, "api", tags=tags, description=description)
    except WorldRefusalError as err:
        raise EC2ClientError("InvalidVolume.NotFound", f"The volume '{volume_id}' does not exist.") from err
    return ActionResult(wire.bridge.snapshot(made))


def _create_snapshots(wire: Wire, request: Request) -> ActionResult:
    request.refuse_dry_run()
    wanted = request.parameter("InstanceSpecification", {})
    machine = wire.machine(request, wanted["InstanceId"])
    left_out = set(wanted.get("ExcludeDataVolumeIds") or ())
    root = machine.spec.disks[0].device if str(wanted.get("ExcludeBootVolume")).lower() == "true" else None
    copied = request.parameter("CopyTagsFromSource") == "volume"
    tags = {
        volume.native_id: {**(volume.tags if copied else {}), **request.tags("snapshot")}
        for volume in wire.world.volumes_of(machine.native_id)
        if volume.native_id not in left_out and volume.disk.device != root
    }
    try:
        copies = wire.world.create_snapshots(
            machine.native_id, "api", tags=tags, description=request.parameter("Description") or ""
        )
    except WorldRefusalError as err:
        raise EC2ClientError("IncorrectState", f"The instance '{machine.native_id}' has no volumes to copy.") from err
    made = [wire.bridge.snapshot(copy) for copy in copies]
    shown = [{**_snapshot_info(snapshot), "Tags": snapshot.tag_set} for snapshot in made]
    return ActionResult({"Snapshots": shown})


def _create_tags(wire: Wire, request: Request) -> ActionResult:
    request.refuse_dry_run()
    for tag in request.parameter("Tags", []):
        for native_id in request.parameter("Resources", []):
            with _known(native_id):
                wire.world.tag(native_id, tag["Key"], tag.get("Value", ""), "api")
    wire.bridge.refresh()
    return EmptyResult()


def _delete_tags(wire: Wire, request: Request) -> ActionResult:
    request.refuse_dry_run()
    for tag in request.parameter("Tags", []):
        for native_id in request.parameter("Resources", []):
            with _known(native_id):
                wire.world.untag(native_id, tag["Key"], "api")
    wire.bridge.refresh()
    return EmptyResult()


def _modify_instance_attribute(wire: Wire, request: Request) -> ActionResult:
    request.refuse_dry_run()
    native_id = wire.machine(request, request.parameter("InstanceId")).native_id
    for name, protection in (
        ("DisableApiTermination", "termination_protection"),
        ("DisableApiStop", "stop_protection"),
    ):
        wanted = request.parameter(f"{name}.Value")
        if wanted is not None:
            wire.world.protect(native_id, protection, "api", on=str(wanted).lower() == "true")
    wire.bridge.refresh()
    return EmptyResult()


def _state(machine: Machine) -> dict[str, Any]:
    code, name = STATE_CODES[machine.state]
    return {"Code": code, "Name": name}


def _snapshot_info(snapshot: Any) -> dict[str, Any]:
    return {
        "SnapshotId": snapshot.id,
        "VolumeId": snapshot.volume_id,
        "State": snapshot.status,
        "VolumeSize": snapshot.volume_size,
        "StartTime": snapshot.start_time,
        "Progress": snapshot.progress,
        "OwnerId": snapshot.owner_id,
        "Description": snapshot.description,
        "Encrypted": snapshot.encrypted,
    }


@contextmanager
def _known(native_id: str) -> Iterator[None]:
    try:
        yield
    except WorldRefusalError as err:
        raise EC2ClientError("InvalidID", f"The ID '{native_id}' is not valid") from err


def _ec2_error(refusal: Refusal, verb: Operation, native_id: str) -> EC2ClientError:
    done = _WORDS[verb][0]
    code, message = {
        Refusal.NOT_FOUND: ("InvalidInstanceID.NotFound", f"The instance ID '{native_id}' does not exist"),
        Refusal.WRONG_STATE: (
            "IncorrectInstanceState",
            f"This instance '{native_id}' is not in a state from which it can be {done}.",
        ),
        Refusal.CANNOT_STOP: (
            "UnsupportedOperation",
            (
                f"You can't stop the Spot Instance '{native_id}' because it is associated with a one-time Spot "
                "Instance request. You can only stop Spot Instances associated with persistent Spot Instance requests."
            ),
        ),
        Refusal.STOP_PROTECTED: (
            "OperationNotPermitted",
            f"The instance '{native_id}' may not be stopped. Modify its 'disableApiStop' instance attribute.",
        ),
        Refusal.TERMINATION_PROTECTED: (
            "OperationNotPermitted",
            (
                f"The instance '{native_id}' may not be terminated. Modify its 'disableApiTermination' instance "
                "attribute and try again."
            ),
        ),
        Refusal.NO_CAPACITY: (
            "InsufficientInstanceCapacity",
            "We currently do not have sufficient capacity in the Availability Zone you requested.",
        ),
    }[refusal]
    return EC2ClientError(code, message)
