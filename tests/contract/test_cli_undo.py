"""`costguard undo` over the wire: shown first, done once, and what was taken back is left alone."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from tests.contract.cli_sandbox import Cli
from tests.contract.network_fleet import OPEN, NetworkFleet, network_fleet
from tests.world_ports.translate import to_world

from cloudstand.clouds import STARTS_AT
from costguard.cli.exits import Exit
from costguard.cli.sandbox.running import Sandbox

WORLD = {"0.0.0.0/0", "::/0"}
POLICY = """\
version: 1
mode: enforce
accounts: [{cloud: aws, id: "111122223333", regions: [us-east-1], role: costguard, external_id: costguard-sandbox}]
notify: {default: "slack:#gpu-costs"}
network_audit:
  - name: notebooks
    mode: enforce
    forbid: [open_admin_port]
    ports: [8888]
    mend: [narrow_rule]
    narrow_to: [198.51.100.0/24, "2001:db8:77::/48"]
    wait: 24h
    applies_when_all: {resources: ["%s"]}
"""


@pytest.fixture(scope="module")
def fleet() -> NetworkFleet:
    return network_fleet("aws", STARTS_AT)


@pytest.fixture(scope="module")
def sandbox(fleet: NetworkFleet) -> Iterator[Sandbox]:
    with Sandbox.start(fleet.machines.values()) as running:
        fleet.place(running.world)
        yield running


@pytest.fixture
def cli(sandbox: Sandbox, fleet: NetworkFleet, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> Cli:
    policy = POLICY % fleet.ref("security_group", OPEN)
    (tmp_path / "costguard.yaml").write_text(policy, encoding="utf-8")
    return Cli(sandbox, tmp_path, capfd)


def test_a_narrowed_rule_is_put_back_as_it_was_once_and_then_left_alone(cli: Cli, fleet: NetworkFleet) -> None:
    under = ("--policy", str(cli.folder / "costguard.yaml"))
    file = str(cli.folder / "plan.json")

    def let_in() -> set[str]:
        rules = cli.sandbox.world.networks.group(to_world(fleet.ref("security_group", OPEN))).rules
        return {peer for rule in rules if rule.ports == ((8888, 8888),) for peer in rule.peers}

    first = cli("plan", "--guard", "network_audit", "--out", file, *under)
    assert first.status == Exit.DUE, first.out
    assert cli("apply", "--plan", file, *under).status == Exit.OK
    cli.sandbox.clock.advance(timedelta(hours=25))
    assert cli("plan", "--guard", "network_audit", "--out", file, *under).status == Exit.DUE
    assert let_in() == WORLD
    assert cli("apply", "--plan", file, *under).status == Exit.OK
    narrowed = let_in()
    assert len(WORLD - narrowed) == 1

    (due,) = json.loads(Path(file).read_text(encoding="utf-8"))["due"]
    shown = cli("undo", due["action_id"], *under)
    assert (shown.status, "put the rule back" in shown.out, let_in()) == (Exit.DUE, True, narrowed)
    done = cli("undo", due["action_id"], "--yes", "--by", "netops", "--reason", "a workshop", "--json", *under)
    assert (done.status, done.json["outcome"], done.json["mend"]) == (Exit.OK, "accepted", "restore_rule")
    assert let_in() == WORLD
    unknown = cli("undo", "nothing-like-it", *under)
    assert (unknown.status, "there is no action nothing-like-it" in unknown.err) == (Exit.BAD_INPUT, True)
    again = cli("undo", due["action_id"], "--yes", *under)
    assert (again.status, "once is enough" in again.err) == (Exit.BAD_INPUT, True)

    cli.sandbox.clock.advance(timedelta(days=2))
    left = cli("plan", "--guard", "network_audit", "--json", *under)
    assert left.json["due"] == []
