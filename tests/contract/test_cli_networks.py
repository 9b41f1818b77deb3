"""`costguard networks` on a sandbox: the same through three wires as in the world, as SARIF too, nothing changed."""

from __future__ import annotations

import json
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path

import jsonschema
import pytest
from tests.contract.cli_sandbox import Cli
from tests.contract.network_fleet import NetworkFleet, network_fleet
from tests.unit.sarif_schema import against_the_standard
from tests.world_ports.inventory import WorldInventory, WorldPrices, WorldSignals
from tests.world_ports.networks import WorldNetworks
from tests.world_ports.translate import to_world

from cloudstand.clouds import STARTS_AT
from cloudstand.world.network.networks import Networks
from costguard.adapters.policy_sources.files import FilePolicySource
from costguard.cli.exits import Exit
from costguard.cli.sandbox.running import Sandbox
from costguard.engine.guards.networks.look import NetworkLook, look_at_networks
from costguard.engine.run.scan import CloudReaders
from costguard.policy.documents.loader import load_policy
from costguard.ports import Target
from costguard.report.network.sarif import fingerprint

SCHEMA = json.loads(files("costguard.report").joinpath("schemas/networks.schema.json").read_text(encoding="utf-8"))
CLOUDS = ("aws", "alibaba", "tencent")
RULE = """\
network_audit:
  - name: gpu-hosts
    forbid:
      - public_ip
      - open_admin_port
      - wide_rule
      - unattached_public_address
      - idle_nat_gateway
      - default_vpc
      - flow_logs_off
      - imds_v1
      - unused_security_group
    mend: [narrow_rule]
    narrow_to: [198.51.100.0/24]
"""


@pytest.fixture(scope="module")
def fleets() -> dict[str, NetworkFleet]:
    return {cloud: network_fleet(cloud, STARTS_AT) for cloud in CLOUDS}


@pytest.fixture(scope="module")
def sandbox(fleets: dict[str, NetworkFleet]) -> Iterator[Sandbox]:
    with Sandbox.start([spec for fleet in fleets.values() for spec in fleet.machines.values()]) as running:
        networks = Networks(to_world([fleet.networks for fleet in fleets.values()]))
        for fleet in fleets.values():
            networks.imds_v1.update(to_world(fleet.imds_v1))
        running.world.networks = networks
        yield running


@pytest.fixture
def cli(sandbox: Sandbox, fleets: dict[str, NetworkFleet], tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> Cli:
    accounts = "".join(
        f"  - {{cloud: {cloud}, id: '{fleet.shard.account}', regions: [{fleet.shard.region}]}}\n"
        for cloud, fleet in fleets.items()
    )
    (tmp_path / "costguard.yaml").write_text(
        f"version: 1\nmode: enforce\naccounts:\n{accounts}{RULE}", encoding="utf-8"
    )
    return Cli(sandbox, tmp_path, capfd)


def policy_of(cli: Cli) -> tuple[str, str]:
    return "--policy", str(cli.folder / "costguard.yaml")


def test_three_wires_tell_what_is_in_the_world_and_the_documented_json_and_sarif(cli: Cli) -> None:
    happened, file = len(cli.sandbox.world.networks.history), cli.folder / "networks.sarif"

    told = cli("networks", "--json", "--sarif", str(file), *policy_of(cli))

    assert told.status == Exit.OK
    jsonschema.validate(told.json, SCHEMA)
    through_wires = {
        (
            each["id"],
            each["owner"],
            each["check"],
            each["verdict"],
            each["severity"],
            each["reason"],
            each["path"] is None,
        )
        for each in told.json["findings"]
    }
    looked = _in_the_world(cli)
    assert through_wires == {
        (
            str(line.finding.subject),
            line.finding.owner,
            line.finding.check,
            line.finding.verdict.value,
            None if line.severity is None else line.severity.value,
            line.finding.reason.code.value,
            "path" not in line.finding.reason.facts,
        )
        for line in looked.report.lines
    }
    for cloud in CLOUDS:
        assert any(each["cloud"] == cloud and each["path"] and each["allowed"] for each in told.json["findings"])
    log = json.loads(file.read_text(encoding="utf-8"))
    assert against_the_standard(log) == []
    assert {result["fingerprints"]["costguardNetwork/v1"] for result in log["runs"][0]["results"]} == {
        fingerprint(line.finding) for line in looked.report.worth
    }
    assert len(cli.sandbox.world.networks.history) == happened
    assert not (cli.folder / "ledger.db").exists()


def _in_the_world(cli: Cli) -> NetworkLook:
    world, clock = cli.sandbox.world, cli.sandbox.clock
    reading = CloudReaders(WorldInventory(world, clock), WorldSignals(world, clock), WorldPrices(world))
    policy = load_policy(FilePolicySource(str(cli.folder / "costguard.yaml")).read())
    targets = [Target(each.cloud, account=each.id, regions=each.regions) for each in policy.accounts]
    sources = dict.fromkeys(CLOUDS, WorldNetworks(world, clock))
    return look_at_networks(dict.fromkeys(CLOUDS, reading), sources, targets, policy, clock)


def test_people_see_each_way_in_whole_what_is_paid_for_nothing_and_what_could_not_be_read(
    cli: Cli, fleets: dict[str, NetworkFleet]
) -> None:
    account = fleets["tencent"].shard.account
    cli.sandbox.world.deny("tencent", account, "network")
    try:
        told = cli("networks", *policy_of(cli))
    finally:
        cli.sandbox.world.allow("tencent", account, "network")

    assert told.status == Exit.GAPS
    assert "Networks worth a look (" in told.out
    assert "Way in: internet → 203.0.113.10 → " in told.out
    assert "Least change: narrow rule " in told.out
    assert "Paid for and not used (" in told.out
    assert "Everything else" not in told.out
    assert f"tencent:{account}:ap-guangzhou: networks not read (permission denied)" in told.out
    assert "nothing is changed here" in told.out


def test_a_file_that_cannot_be_written_is_told_in_one_line(cli: Cli) -> None:
    told = cli("networks", "--sarif", str(cli.folder), *policy_of(cli))

    assert told.status == Exit.BAD_INPUT
    assert told.err == f"costguard: {cli.folder}: cannot be written: it is a folder, or there is none to hold it\n"


def test_a_policy_without_a_rule_for_networks_reads_none_and_shows_how_one_looks(cli: Cli) -> None:
    (cli.folder / "costguard.yaml").write_text("version: 1\nidle_gpu: [{name: a}]\n", encoding="utf-8")
    told = cli("networks", *policy_of(cli))

    assert told.status == Exit.OK
    assert "  - {name: gpu-hosts, forbid: [public_ip, open_admin_port, " in told.out
    example = told.out.partition("network_audit:")[2].split("\n")[1]
    (cli.folder / "costguard.yaml").write_text(f"version: 1\nnetwork_audit:\n{example}\n", encoding="utf-8")
    assert load_policy(FilePolicySource(str(cli.folder / "costguard.yaml")).read()).network_audit


def test_the_function_runs_as_its_host_would_call_it(cli: Cli) -> None:
    event = Path(__file__).parents[2] / "events/scf/network_audit.json"

    told = cli("invoke", "network_audit", "--event", str(event), ledger=False)

    assert told.status == Exit.OK
    assert "networks seen     6\n" in told.out
