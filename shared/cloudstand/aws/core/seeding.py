"""Puts a world's fleet into moto: moto's own instances, volumes and addresses, renamed and back-dated in process."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from moto.ec2.models import EC2Backend, ec2_backends
from moto.ec2.models.elastic_ip_addresses import ElasticAddress
from moto.ec2.models.instances import Instance
from moto.iam.models import iam_backends
from moto.organizations.models import OrganizationsBackend, organizations_backends

from cloudstand.aws.compute.catalogue import TYPES
from cloudstand.world.cloud import World
from cloudstand.world.fleet import made_up_id
from cloudstand.world.kinds import Billing
from cloudstand.world.records import Machine

_LONE_ACCOUNT, _LONE_REGION = "111122223333", "us-east-1"  # of a world without machines
IMAGE = "ami-0c0571a9d2e5f6b38"  # any id: no image is loaded


@dataclass(frozen=True, slots=True)
class Credentials:
    """Made-up keys of the management account; worth nothing outside this process."""

    access_key_id: str
    secret_access_key: str


def backend_of(machine: Machine) -> EC2Backend:
    """The moto backend of the account and region a machine stands in."""
    return ec2_backends[machine.spec.account][machine.spec.region]


def seed_accounts(world: World) -> Credentials:
    """An organisation led by the fleet's first account, with the others as members; the keys of that first account."""
    accounts = accounts_of(world)
    management = organizations_backends[accounts[0]]["aws"]
    management.create_organization(region="us-east-1", FeatureSet="ALL")
    for account in accounts[1:]:
        join_organisation(management, account)
    key = iam_backends[accounts[0]]["aws"].create_temp_access_key()
    return Credentials(key.access_key_id, key.secret_access_key)


def join_organisation(management: OrganizationsBackend, account: str) -> None:
    """A member of the organisation, with a number of our own: moto chooses one itself."""
    management.create_account(AccountName=f"member-{account[-4:]}", Email=f"aws+{account}@example.com")
    created = management.accounts[-1]
    organizations_backends.master_accounts[account] = organizations_backends.master_accounts.pop(created.id)
    created.id = account


def in_organisation(account: str) -> bool:
    """Whether some organisation here has it as a member."""
    return account in organizations_backends.master_accounts


def accounts_of(world: World) -> tuple[str, ...]:
    """The fleet's accounts in order of appearance; the first one leads the organisation."""
    found = dict.fromkeys(spec.account for spec in world.fleet if spec.cloud.startswith("aws"))
    return tuple(found) or (_LONE_ACCOUNT,)


def regions_of(world: World) -> tuple[str, ...]:
    """The regions in which the fleet stands."""
    found = {spec.region for spec in world.fleet if spec.cloud.startswith("aws")}
    return tuple(sorted(found)) or (_LONE_REGION,)


def seed_machine(world: World, machine: Machine) -> Instance:
    """One moto instance for one machine, with the world's ids, disks and address."""
    backend, spec = backend_of(machine), machine.spec
    mappings = [
        {
            "DeviceName": volume.disk.device,
            "Ebs": {
                "VolumeSize": volume.disk.size_gib,
                "VolumeType": volume.disk.volume_type,
                "DeleteOnTermination": volume.disk.deleted_with_instance,
            },
        }
        for volume in world.volumes_of(machine.native_id)
    ]
    extra: dict[str, Any] = {"placement": spec.zone} if spec.zone else {}
    reservation = backend.run_instances(
        IMAGE,
        1,
        None,
        [],
        instance_type=spec.instance_type,
        is_instance_type_default=False,
        region_name=spec.region,
        block_device_mappings=mappings,
        **extra,
    )
    instance: Any = reservation.instances[0]
    instance.id = machine.native_id
    instance.architecture = TYPES[spec.instance_type].arch if spec.instance_type in TYPES else "x86_64"
    instance.platform_details = "Linux/UNIX"
    for card in instance.nics.values():
        card.attach_time = spec.launched_at  # moto's says when the sandbox was started
    if spec.billing is Billing.SPOT:
        instance.lifecycle = "spot"
        instance.spot_instance_request_id = spot_request_of(machine)
    if spec.billing is Billing.RESERVED:
        instance.capacity_reservation_id = made_up_id("aws", "reservation", spec.native_id)
    _rename_volumes(backend, world, machine, instance)
    for address in world.addresses_of(machine.native_id):
        keep_address(backend, address.native_id, spec.public_ip)
        backend.associate_address(instance=instance, allocation_id=address.native_id)
    return reservation.instances[0]


def keep_address(backend: EC2Backend, native_id: str, public_ip: str | None) -> ElasticAddress:
    """An address that the account keeps; one of moto's own numbers where the world has none."""
    kept = backend.allocate_address(domain="vpc")
    kept.allocation_id = kept.id = native_id
    kept.public_ip = public_ip or kept.public_ip
    return kept


def spot_request_of(machine: Machine) -> str:
    """The id of the Spot request behind a machine."""
    return "sir-" + machine.native_id[-8:]


def _rename_volumes(backend: EC2Backend, world: World, machine: Machine, instance: Any) -> None:
    for volume in world.volumes_of(machine.native_id):
        mapping = instance.block_device_mapping[volume.disk.device]
        moto_volume = backend.volumes.pop(mapping.volume_id)
        moto_volume.id = mapping.volume_id = volume.native_id
        moto_volume.create_time = mapping.attach_time = machine.spec.launched_at
        if volume.disk.key_id:
            moto_volume.encrypted, moto_volume.kms_key_id = True, _key_arn(machine, volume.disk.key_id)
        backend.volumes[volume.native_id] = moto_volume


def attach_volumes(backend: EC2Backend, world: World, machine: Machine, instance: Any) -> None:
    """Bring moto the disks that were attached to a machine after it was made, and take off those that were detached."""
    there = {volume.native_id: volume for volume in world.volumes_of(machine.native_id)}
    for device, mapping in list(instance.block_device_mapping.items()):
        if mapping.volume_id not in there:
            backend.detach_volume(mapping.volume_id, machine.native_id, device)
    shown = {mapping.volume_id for mapping in instance.block_device_mapping.values()}
    for volume in (each for native_id, each in there.items() if native_id not in shown):
        disk = volume.disk
        if volume.native_id not in backend.volumes:
            made: Any = backend.create_volume(disk.size_gib, instance.placement, volume_type=disk.volume_type)
            del backend.volumes[made.id]
            made.id = volume.native_id
            backend.volumes[volume.native_id] = made
        backend.attach_volume(volume.native_id, machine.native_id, disk.device, disk.deleted_with_instance)
        kept: Any = backend.volumes[volume.native_id]
        kept.create_time = instance.block_device_mapping[disk.device].attach_time = volume.created_at


def _key_arn(machine: Machine, said: str) -> str:
    """As EC2 shows the key of a disk: by its ARN, unless somebody gave it a form of his own."""
    at = machine.ref
    return said if ":" in said or "/" in said else f"arn:{at.cloud}:kms:{at.region}:{at.account}:key/{said}"
