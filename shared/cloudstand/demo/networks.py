"""The demo's networks: on each cloud a notebook open to the world, an address paid for in vain, what only looks bad.

Every machine of the demo's fleet is in one of them; who is not named here is private.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import datetime

from cloudstand.demo.fleet import demo_fleet
from cloudstand.fleets import (
    ALIBABA_ACCOUNT,
    EAST,
    GUANGZHOU,
    HANGZHOU,
    PRODUCT,
    RESEARCH,
    TENCENT_ACCOUNT,
    WEST,
)
from cloudstand.world.fleet import MachineSpec
from cloudstand.world.network.networks import Networks
from cloudstand.world.network.parts import Forward
from cloudstand.world.network.region import Region, barred, rule
from cloudstand.world.places import Place

OFFICE = "198.51.100.0/24"
"""Where the demo's people come from."""
_INSIDE = "10.0.0.0/8"

_Machines = Mapping[str, MachineSpec]


def demo_networks(at: datetime) -> Networks:
    """All networks at `at`, the start of day 0, with the setting of each machine's metadata service where told."""
    machines: dict[Place, dict[str, MachineSpec]] = {}
    for spec in demo_fleet(at):
        machines.setdefault(spec.shard, {})[spec.name] = spec
    networks = Networks()
    for shard, lay_out in _REGIONS.items():
        region = Region(shard, at)
        lay_out(region, machines[shard])
        networks.place(region.networks())
        networks.imds_v1.update(region.imds_v1)
    return networks


def _research_east(region: Region, machines: _Machines) -> None:
    """An idle notebook server with Jupyter open; a private box whose group says open and which nothing leads to."""
    _private(region, "research", "10.10")
    region.subnet("research-front", "research", "10.10.1.0/24", public=True)
    _default(region)
    region.group("notebooks", "research", rule("ssh", port=22, peer=OFFICE), rule("jupyter", port=8888))
    region.group("ssh-anywhere", "research", rule("ssh", port=22))
    region.group("conference-desk", "research", rule("desktop", port=3389))  # nobody is in it any more
    region.spare_address("paper-website", "203.0.113.11")
    notebook = machines["thesis-notebook"]
    region.machine(notebook, "research-front", "notebooks", address="203.0.113.10", imds_v1=True)
    region.machine(machines["pretraining-a"], "research-inside", "ssh-anywhere", imds_v1=False)
    region.machine(machines["cluster-trial"], "default-a", "default", imds_v1=True)
    region.others(machines.values(), "research-inside", "research", imds_v1=False)


def _research_west(region: Region, machines: _Machines) -> None:
    """Flow logs as they should be, and a login node that anybody may knock at."""
    _private(region, "robotics", "10.11", logs_flows=True)
    region.subnet("robotics-front", "robotics", "10.11.1.0/24", public=True)
    region.group("login", "robotics", rule("ssh", port=22))
    node = machines["shared-login-node"]
    region.machine(node, "robotics-front", "login", address="203.0.113.20", imds_v1=False)
    region.others(machines.values(), "robotics-inside", "robotics", imds_v1=False)


def _product_east(region: Region, machines: _Machines) -> None:
    """A NAT gateway that nothing is routed to any more."""
    _private(region, "product", "10.20", logs_flows=True)
    region.subnet("product-front", "product", "10.20.1.0/24", public=True)
    region.gateway("migration-leftover", "product", "203.0.113.30")
    region.others(machines.values(), "product-inside", "product", imds_v1=False)


def _product_west(region: Region, machines: _Machines) -> None:
    """Nothing to find."""
    _private(region, "media", "10.21", logs_flows=True)
    region.others(machines.values(), "media-inside", "media", imds_v1=False)


def _hangzhou(region: Region, machines: _Machines) -> None:
    """Jupyter open; a way in through a NAT gateway; a group that says open and bars it with a lower number."""
    _private(region, "recsys", "10.30", nat="recsys-out")
    region.subnet("recsys-front", "recsys", "10.30.1.0/24")
    _default(region)
    jupyter, ssh = rule("jupyter", port=8888, priority=100), rule("ssh", port=22, priority=100)
    region.group("dev", "recsys", rule("ssh", port=22, peer=OFFICE, priority=1), jupyter)
    region.group("barred-ssh", "recsys", ssh, barred(replace(ssh, rule_id="no-ssh", priority=1)))
    region.group("debugging", "recsys", replace(ssh, priority=1))
    region.spare_address("campaign-2024", "203.0.113.41")
    region.machine(machines["ad-ranking-dev"], "recsys-front", "dev", address="203.0.113.40", imds_v1=True)
    ocr = machines["ocr-training"]
    region.machine(ocr, "recsys-front", "barred-ssh", "recsys", address="203.0.113.42", imds_v1=False)
    inside = region.machine(machines["click-model-p100"], "recsys-inside", "debugging", imds_v1=True)
    forward = Forward("tcp", "203.0.113.43", ((8022, 8022),), inside, ((22, 22),), "fwd-bp1debugging")
    region.gateway("recsys-out", "recsys", "203.0.113.43", forward)
    region.machine(machines["annotation-yearly"], "default-a", "default", imds_v1=True)
    region.others(machines.values(), "recsys-inside", "recsys", imds_v1=False)


def _guangzhou(region: Region, machines: _Machines) -> None:
    """Jupyter open; SSH open in the default network; a group whose first rule bars what a later one opens."""
    _private(region, "games", "10.40")
    region.subnet("games-front", "games", "10.40.1.0/24")
    _default(region)
    ssh = rule("ssh", port=22)
    region.group("notebooks", "games", rule("office", port=8888, peer=OFFICE), rule("jupyter", port=8888))
    region.group("barred-ssh", "games", barred(replace(ssh, rule_id="no-ssh")), ssh)
    region.group("desktops", "default", ssh)
    region.spare_address("old-game-server", "203.0.113.51")
    region.machine(machines["npc-notebook"], "games-front", "notebooks", address="203.0.113.50")
    region.machine(machines["world-model-8"], "games-front", "barred-ssh", address="203.0.113.52")
    region.machine(machines["cloud-desktop"], "default-a", "desktops", address="203.0.113.53")
    region.others(machines.values(), "games-inside", "games")


def _private(region: Region, name: str, begins: str, *, logs_flows: bool = False, nat: str = "") -> None:
    """A network with a subnet that only its own may reach, and a group of the same name for who is in there."""
    region.vpc(name, f"{begins}.0.0/16", logs_flows=logs_flows)
    region.subnet(f"{name}-inside", name, f"{begins}.2.0/24", nat=nat)
    region.group(name, name, rule("inside", peer=_INSIDE, priority=1))


def _default(region: Region) -> None:
    """The network that every region of an account begins with."""
    region.vpc("default", "172.31.0.0/16", is_default=True)
    region.subnet("default-a", "default", "172.31.0.0/24", public=True)
    region.group("default", "default", rule("inside", peer="172.31.0.0/16", priority=1), is_default=True)


_REGIONS: Mapping[Place, Callable[[Region, _Machines], None]] = {
    Place("aws", RESEARCH, EAST): _research_east,
    Place("aws", RESEARCH, WEST): _research_west,
    Place("aws", PRODUCT, EAST): _product_east,
    Place("aws", PRODUCT, WEST): _product_west,
    Place("alibaba", ALIBABA_ACCOUNT, HANGZHOU): _hangzhou,
    Place("tencent", TENCENT_ACCOUNT, GUANGZHOU): _guangzhou,
}
