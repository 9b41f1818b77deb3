"""CVM's changes: stop, start, reboot, terminate, and the attributes that protect."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from cloudstand.tencent.compute.instances import well_formed
from cloudstand.tencent.compute.machines import state_of
from cloudstand.tencent.core.asking import Answer, Asked
from cloudstand.tencent.core.errors import ApiError
from cloudstand.world.kinds import InstanceState
from cloudstand.world.records import Machine, Operation, Refusal, WorldPartialEffectError, WorldRefusalError

BY = "api"
"""Who did it, in the world's history."""


def stop_instances(asked: Asked) -> Answer:
    """StopInstances: all of them or none. What keeps its charges keeps its public address."""
    if "ForceStop" in asked.parameters and "StopType" in asked.parameters:
        raise ApiError("InvalidParameterCombination", "ForceStop and StopType exclude each other.", "参数组合不正确。")
    machines = named_machines(asked)
    free = asked.get("StoppedMode", "KEEP_CHARGING") == "STOP_CHARGING"
    for machine in machines:
        _possible(asked, Operation.STOP, machine)
        if free and machine.spec.instance_type in asked.settings.refuses_stop_charging:
            raise ApiError(
                "UnsupportedOperation.StoppedModeStopCharging",
                f"the instance `{machine.native_id}` cannot stop without charges.",
                "不支持关机不收费特性。",
            )
    for machine in machines:
        asked.memory.set_stop_mode(machine, keeps_charging=not free)
        asked.world.stop(machine.native_id, BY, forced=_forced(asked))
    return {"RequestId": asked.memory.changed(machines)}


def _forced(asked: Asked) -> bool:
    """Whether the power may be cut. When SOFT_FIRST loses patience no page says: here at once, the worst it can be.

    API: CVM StopInstances, StopType SOFT, SOFT_FIRST or HARD; ForceStop is the older word.
    """
    return asked.get("StopType", "SOFT") != "SOFT" or bool(asked.get("ForceStop"))


def reboot_instances(asked: Asked) -> Answer:
    """RebootInstances: here over in no time, and a new latest operation all the same."""
    machines = named_machines(asked)
    for machine in machines:
        if machine.state is not InstanceState.RUNNING:
            raise refused(asked, Refusal.WRONG_STATE, machine.native_id)
    for machine in machines:
        _operated(machine, "RebootInstances")
    return {"RequestId": asked.memory.changed(machines)}


def start_instances(asked: Asked) -> Answer:
    """StartInstances: all of them or none."""
    machines = named_machines(asked)
    for machine in machines:
        _possible(asked, Operation.START, machine)
    for machine in machines:
        asked.world.start(machine.native_id, BY)
        asked.memory.forget_stop_mode(machine)
    return {"RequestId": asked.memory.changed(machines)}


def terminate_instances(asked: Asked) -> Answer:
    """TerminateInstances: to the recycle bin where there is one, destroyed where not and by a second call."""
    machines = named_machines(asked)
    try:
        asked.world.terminate_many([machine.native_id for machine in machines], BY)
    except WorldRefusalError as err:
        raise refused(asked, err.refusal, err.native_id) from err
    except WorldPartialEffectError as err:
        raise refused(asked, err.refusal, err.native_id) from err
    return {"RequestId": asked.memory.changed(machines)}


def modify_instances_attribute(asked: Asked) -> Answer:
    """ModifyInstancesAttribute: exactly one attribute a call; it becomes the latest operation as any other does."""
    machines = named_machines(asked)
    given = set(asked.parameters) - {"InstanceIds"}
    if not given:
        raise ApiError("MissingParameter.AtLeastOne", "no attribute is given.", "缺少必要参数，请至少提供一个参数。")
    if len(given) > 1:
        raise ApiError("InvalidParameter.AtMostOne", "more than one attribute is given.", "最多指定一个参数。")
    for machine in machines:
        if "InstanceName" in given:
            machine.spec = replace(machine.spec, name=asked.parameters["InstanceName"])
        if "DisableApiTermination" in given:
            on = asked.parameters["DisableApiTermination"]
            asked.world.protect(machine.native_id, "termination_protection", BY, on=on)
        _operated(machine, "ModifyInstancesAttribute")
    return {"RequestId": asked.memory.changed(machines)}


def named_machines(asked: Asked) -> list[Machine]:
    """The machines that are named, each once.

    Raises:
        ApiError: one of them is not there, or not in this region of this account.
    """
    found = []
    for native_id in dict.fromkeys(well_formed(asked.parameters["InstanceIds"])):
        machine = asked.world.machines.get(native_id)
        if machine is None or machine.shard != asked.shard or not asked.world.is_listed(machine):
            raise refused(asked, Refusal.NOT_FOUND, native_id)
        found.append(machine)
    return found


def _operated(machine: Machine, operation: str) -> None:
    machine.operations += 1
    machine.latest_operation = operation


def _possible(asked: Asked, verb: Operation, machine: Machine) -> None:
    refusal = asked.world.refusal(verb, machine.native_id)
    if refusal is not None:
        raise refused(asked, refusal, machine.native_id)


_REFUSALS: Mapping[Refusal, tuple[str, str, str]] = {
    Refusal.NOT_FOUND: ("InvalidInstanceId.NotFound", "`{id}` does not exist.", "没有找到实例`{id}`。"),
    Refusal.WRONG_STATE: ("UnsupportedOperation.{code}", "`{id}` is {state}.", "请求不支持{state}的实例`{id}`。"),
    Refusal.TERMINATION_PROTECTED: (
        "UnsupportedOperation.InstancesProtected",
        "`{id}` is protected against termination.",
        "不支持已启用销毁保护的实例`{id}`。",
    ),
    Refusal.NO_CAPACITY: ("ResourcesSoldOut.SpecifiedInstanceType", "the type is sold out.", "指定的实例类型已售罄。"),
    Refusal.REFUND_QUOTA: ("LimitExceeded.UserReturnQuota", "no refund is left.", "退还失败，退还配额已达上限。"),
    Refusal.PREPAID: (
        "InvalidInstanceNotSupportedPrepaidInstance",
        "`{id}` is prepaid.",
        "实例`{id}`不满足包月退还规则。",
    ),
    Refusal.MIXED_BILLING: (
        "UnsupportedOperation.InstanceMixedPricingModel",
        "instances of different charge types do not go into one call.",
        "不支持操作不同计费方式的实例。",
    ),
    Refusal.CANNOT_STOP: ("UnsupportedOperation", "`{id}` cannot be stopped.", "实例`{id}`不支持该操作。"),
    Refusal.STOP_PROTECTED: ("UnsupportedOperation", "`{id}` cannot be stopped.", "实例`{id}`不支持该操作。"),
    Refusal.COPY_UNDER_WAY: ("InvalidDisk.SnapshotCreating", "`{id}` is being copied.", "云硬盘正在创建快照。"),
    Refusal.DENIED: ("UnauthorizedOperation", "`{id}`: no permission.", "未授权操作。"),
}


def refused(asked: Asked, refusal: Refusal, native_id: str) -> ApiError:
    """The world's refusal in CVM's words."""
    machine = asked.world.machines.get(native_id)
    state = "" if machine is None else state_of(machine)
    words = {"id": native_id, "state": state, "code": f"InstanceState{state.capitalize()}"}
    return ApiError(*(text.format(**words) for text in _REFUSALS[refusal]))
