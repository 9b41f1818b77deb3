"""Flow logs, and the metadata service of instances."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cloudstand.alibaba.compute.instances import machine_named
from cloudstand.alibaba.core.errors import NOT_FOUND, ApiError
from cloudstand.alibaba.core.shapes import tags
from cloudstand.alibaba.core.site import ApiCall
from cloudstand.alibaba.network.desk import LogNote
from cloudstand.alibaba.network.pages import networks_of, numbered, ref_of
from cloudstand.world.cloud import World
from cloudstand.world.fleet import made_up_request_id
from cloudstand.world.network.parts import FlowLog

_BY, _USUAL = "api", 20
_MADE = "2025-01-15T08:00:00Z"
_KINDS = {"VPC": "vpc", "VSwitch": "subnet", "NetworkInterface": "interface"}
_TYPES = {kind: word for word, kind in _KINDS.items()}
_TRAFFIC = {"All": "all", "Allow": "accepted", "Drop": "rejected"}
_WORDS = {traffic: word for word, traffic in _TRAFFIC.items()}


def describe_flow_logs(call: ApiCall, world: World) -> Mapping[str, Any]:
    """DescribeFlowLogs, in numbered pages, whose counts are texts."""
    asked = call.asked
    told = [
        _log(call, world, log)
        for log in networks_of(call, world).flow_logs
        if asked.text("FlowLogId") in ("", log.ref.native_id)
        and asked.text("ResourceId") in ("", log.covers.native_id)
        and asked.text("ResourceType") in ("", _TYPES[log.covers.kind])
    ]
    return {**numbered(call, "FlowLogs", "FlowLog", told, usual=_USUAL, in_words=True), "Success": "true"}


def _log(call: ApiCall, world: World, log: FlowLog) -> dict[str, Any]:
    note = call.site.networks.logs.get(log.ref.native_id)
    starting = note is not None and note.active_from > world.now
    return {
        "FlowLogId": log.ref.native_id,
        "FlowLogName": note.name if note else "",
        "Description": note.description if note else "",
        "ResourceType": _TYPES[log.covers.kind],
        "ResourceId": log.covers.native_id,
        "TrafficType": _WORDS[log.traffic],
        "Status": "Activating" if starting else "Active" if log.active else "Inactive",
        "BusinessStatus": "Normal",
        "FlowLogDeliverStatus": "SUCCESS",
        "FlowLogDeliverErrorMessage": "",
        "ProjectName": note.project if note else "flows",
        "LogStoreName": note.store if note else "flows",
        "ServiceType": "",
        "AggregationInterval": 10,
        "RegionId": call.region,
        "CreationTime": _MADE,
        "ResourceGroupId": "",
        **tags({}, log.ref.native_id, "Key", "Value"),
    }


def create_flow_log(call: ApiCall, world: World) -> Mapping[str, Any]:
    """CreateFlowLog: there is no ClientToken. It goes on after the answer, whose success is a text.

    Raises:
        ApiError: what it is to cover is not there, or has one.
    """
    asked, found, desk = call.asked, networks_of(call, world), call.site.networks
    covers = ref_of(call, _KINDS[asked.text("ResourceType")], asked.text("ResourceId"))
    if covers not in {part.ref for parts in (found.vpcs, found.subnets, found.interfaces) for part in parts}:
        raise ApiError("InvalidResourceId.NotFound", "The specified resource does not exist.", NOT_FOUND)
    if any(log.covers == covers for log in found.flow_logs):
        raise ApiError("OperationDenied.FlowLogExist", "A flow log of the specified resource already exists.")
    made = made_up_request_id("flow log", str(covers), str(len(world.networks.history))).replace("-", "")[:17]
    log = FlowLog(
        ref_of(call, "flow_log", f"fl-bp1{made}"), covers, active=True, traffic=_TRAFFIC[asked.text("TrafficType")]
    )
    world.networks.log_flows(log, world.now, _BY)
    desk.logs[log.ref.native_id] = LogNote(
        asked.text("FlowLogName"),
        asked.text("Description"),
        asked.text("ProjectName"),
        asked.text("LogStoreName"),
        world.now + desk.settles_in,
    )
    return {"FlowLogId": log.ref.native_id, "Success": "true", "ResourceGroupId": ""}


def delete_flow_log(call: ApiCall, world: World) -> Mapping[str, Any]:
    """DeleteFlowLog.

    Raises:
        ApiError: there is none of this id.
    """
    ref = ref_of(call, "flow_log", call.asked.text("FlowLogId"))
    if ref not in {log.ref for log in networks_of(call, world).flow_logs}:
        raise ApiError("InvalidFlowLogId.NotFound", "The specified flow log does not exist.", NOT_FOUND)
    world.networks.end_flow_log(ref, world.now, _BY)
    return {"Success": "true"}


def modify_instance_metadata_options(call: ApiCall, world: World) -> Mapping[str, Any]:
    """ModifyInstanceMetadataOptions: a parameter left out takes its default, whatever was there.

    Raises:
        ApiError: no such machine.
    """
    machine = machine_named(call, world, call.asked.text("InstanceId"))
    on = call.asked.text("HttpEndpoint") == "enabled"
    optional = call.asked.text("HttpTokens", "optional") == "optional"
    world.networks.set_imds(machine.ref, v1=on and optional, now=world.now, by=_BY)
    return {}
