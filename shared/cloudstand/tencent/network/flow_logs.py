"""VPC's flow logs: new ones are of an interface, or of what a world does not have; old ones may be of a VPC."""

from __future__ import annotations

from typing import Any

from cloudstand.tencent.compute.changes import BY
from cloudstand.tencent.core.asking import Answer, Asked, page
from cloudstand.tencent.core.errors import ApiError, bad_value, missing, not_modelled
from cloudstand.tencent.network.vpcs import MADE_AT, inventory
from cloudstand.world.fleet import made_up_request_id
from cloudstand.world.network.parts import FlowLog

_TYPES = {"vpc": "VPC", "subnet": "SUBNET", "interface": "NETWORKINTERFACE", "nat_gateway": "NAT"}
_TRAFFIC = {"all": "ALL", "accepted": "ACCEPT", "rejected": "REJECT"}
_USUAL_PAGE = 10
_COMPARED = ("VpcId", "FlowLogId", "FlowLogName", "ResourceType", "ResourceId", "TrafficType")


def describe_flow_logs(asked: Asked) -> Answer:
    """DescribeFlowLogs: ten of them unless more are asked for, and their count is TotalNum."""
    entries = [_shown(asked, log) for log in inventory(asked).flow_logs]
    found = [entry for entry in entries if all(asked.get(key, entry[key]) == entry[key] for key in _COMPARED)]
    return {"TotalNum": len(found), "FlowLog": list(page(asked, found, _USUAL_PAGE))}


def create_flow_log(asked: Asked) -> Answer:
    """CreateFlowLog."""
    if asked.get("StorageType", "cls") == "cls" and not asked.get("CloudLogId"):
        raise missing("CloudLogId")
    if asked.parameters["ResourceType"] != "NETWORKINTERFACE":
        raise not_modelled("ResourceType")
    wanted = asked.parameters["ResourceId"]
    card = next((each for each in inventory(asked).interfaces if each.ref.native_id == wanted), None)
    if card is None:
        raise ApiError("ResourceNotFound", f"there is no network interface {wanted}.", f"资源`{wanted}`不存在。")
    if not asked.get("VpcId"):
        raise missing("VpcId")
    if card.vpc is None or card.vpc.native_id != asked.get("VpcId"):
        raise bad_value("VpcId", "the interface is in another")
    if card.instance is None:
        raise ApiError(
            "UnsupportedOperation.FlowLogsNotSupportNullInstanceEni", "it has no instance.", "当前弹性网卡未绑定实例。"
        )
    if any(log.covers == card.ref for log in inventory(asked).flow_logs):
        raise ApiError("UnsupportedOperation.FlowLogInstanceExisted", "it has one.", "流日志已经创建。")
    made = made_up_request_id("flow", wanted, str(len(asked.world.networks.history))).replace("-", "")[:8]
    log = FlowLog(
        card.ref.sibling("flow_log", f"fl-{made}"),
        card.ref,
        active=True,
        traffic={word: ours for ours, word in _TRAFFIC.items()}[asked.parameters["TrafficType"]],
    )
    asked.world.networks.log_flows(log, asked.now, BY)
    return {"FlowLog": [{**_shown(asked, log), "CloudLogState": "", "CreatedTime": "0000-00-00 00:00:00"}]}


def delete_flow_log(asked: Asked) -> Answer:
    """DeleteFlowLog, which has to name the VPC as well."""
    wanted = asked.parameters["FlowLogId"]
    log = next((each for each in inventory(asked).flow_logs if each.ref.native_id == wanted), None)
    if log is None:
        raise ApiError("ResourceNotFound", f"there is no flow log {wanted}.", f"资源`{wanted}`不存在。")
    if not asked.get("VpcId"):
        raise missing("VpcId")
    if _vpc_of(asked, log) != asked.get("VpcId"):
        raise bad_value("VpcId", "the flow log is of another")
    asked.world.networks.end_flow_log(log.ref, asked.now, BY)
    return {}


def _shown(asked: Asked, log: FlowLog) -> dict[str, Any]:
    return {
        "VpcId": _vpc_of(asked, log),
        "FlowLogId": log.ref.native_id,
        "FlowLogName": "",
        "ResourceType": _TYPES[log.covers.kind],
        "ResourceId": log.covers.native_id,
        "TrafficType": _TRAFFIC[log.traffic],
        "CloudLogId": "29a6c8c8-d57d-4e25-84b5-9114734ce6ca",
        "CloudLogState": "SUCCESS",
        "FlowLogDescription": "",
        "CreatedTime": MADE_AT,
        "TagSet": [],
        "Enable": log.active,
        "StorageType": "cls",
        "CloudLogRegion": asked.region,
        "Period": 600,
    }


def _vpc_of(asked: Asked, log: FlowLog) -> str:
    here = inventory(asked)
    homes = {part.ref: part.vpc for parts in (here.subnets, here.interfaces, here.nat_gateways) for part in parts}
    home = log.covers if log.covers.kind == "vpc" else homes.get(log.covers)
    return "" if home is None else home.native_id
