"""Changes of elastic addresses. Each is a task, here over in no time."""

from __future__ import annotations

from cloudstand.tencent.compute.changes import BY
from cloudstand.tencent.core.asking import Answer, Asked
from cloudstand.tencent.core.errors import ApiError, missing
from cloudstand.tencent.network.vpcs import inventory
from cloudstand.world.network.parts import AddressState, NetworkInterface, PublicAddress

_FIRST_TASK = 8_000_000


def release_addresses(asked: Asked) -> Answer:
    """ReleaseAddresses: all or none, for good, and only what is bound to nothing."""
    addresses = [_address(asked, native_id) for native_id in asked.parameters["AddressIds"]]
    for address in addresses:
        _require(address, AddressState.UNATTACHED)
        if address.protected_by:
            raise ApiError(
                "OperationDenied.AddressDeletionProtectionEnabled", "it is protected.", "EIP开启了删除保护。"
            )
        if address.is_prepaid:
            raise ApiError(
                "UnsupportedOperation.AddressIpInternetChargeTypeNotPermit", "it is prepaid.", "计费模式不支持。"
            )
    for address in addresses:
        asked.world.networks.release(address.ref, asked.now, BY)
    return _task(asked)


def disassociate_address(asked: Asked) -> Answer:
    """DisassociateAddress: of a machine or an interface; a NAT gateway has an operation of its own."""
    address = _address(asked, asked.parameters["AddressId"])
    _require(address, AddressState.IN_USE)
    if address.bound_to is None or address.bound_to.kind not in {"instance", "interface"}:
        raise ApiError("UnsupportedOperation.InvalidAction", "it is bound to something else.", "操作不支持。")
    asked.world.networks.detach(address.ref, asked.now, BY)
    if address.ref.native_id in asked.memory.networks.cascades:
        asked.world.networks.release(address.ref, asked.now, BY)
    return _task(asked)


def associate_address(asked: Asked) -> Answer:
    """AssociateAddress: with a machine's first address, or with one of an interface."""
    address = _address(asked, asked.parameters["AddressId"])
    _require(address, AddressState.UNATTACHED)
    machine, card_id = asked.get("InstanceId"), asked.get("NetworkInterfaceId")
    if bool(machine) == bool(card_id):
        code = "InvalidParameter.Coexist" if machine else "MissingParameter"
        raise ApiError(code, "InstanceId or NetworkInterfaceId.", "参数不支持同时指定。")
    if card_id and not asked.get("PrivateIpAddress"):
        raise missing("PrivateIpAddress")
    card = _card(asked, machine or "", card_id or "")
    private_ip = asked.get("PrivateIpAddress") if card_id else card.private_ips[0]
    if private_ip not in card.private_ips:
        raise ApiError("InvalidParameterValue.PrivateIpAddressNotMatch", f"no {private_ip} there.", "内网IP不匹配。")
    if any(private == private_ip for private, _ in card.public_ips):
        code = "InvalidPrivateIpAddress.AlreadyBindEip" if card_id else "InvalidInstanceId.AlreadyBindEip"
        raise ApiError(code, "it has a public address.", "已经绑定了EIP。")
    asked.world.networks.attach(address.ref, card.ref, private_ip, asked.now, BY)
    return _task(asked)


def _address(asked: Asked, native_id: str) -> PublicAddress:
    found = next((each for each in inventory(asked).addresses if each.ref.native_id == native_id), None)
    if found is None:
        raise ApiError("InvalidAddressId.NotFound", f"there is no address {native_id}.", "指定EIP不存在。")
    return found


def _require(address: PublicAddress, state: AddressState) -> None:
    if address.state is not state:
        raise ApiError(
            "InvalidAddressIdStatus.NotPermit", f"it is {address.state.value}.", "指定EIP当前状态不能进行操作。"
        )


def _card(asked: Asked, machine: str, card_id: str) -> NetworkInterface:
    for card in inventory(asked).interfaces:
        of_machine = card.instance is not None and card.instance.native_id == machine and card.primary
        if card.ref.native_id == card_id or (machine and of_machine):
            return card
    if machine:
        raise ApiError("InvalidInstanceId.NotFound", f"there is no instance {machine}.", "指定实例不存在。")
    raise ApiError("InvalidNetworkInterfaceId.NotFound", f"there is no {card_id}.", "指定弹性网卡不存在。")


def _task(asked: Asked) -> Answer:
    return {"TaskId": str(_FIRST_TASK + len(asked.world.networks.history))}
