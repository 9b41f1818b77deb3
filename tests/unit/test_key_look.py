"""One look at all keys, and one run: what is judged, what could not be read, and that nothing is ever done."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timedelta, timezone

import pytest
from tests.world_ports.inventory import WorldInventory, WorldPrices, WorldSignals
from tests.world_ports.keys import WorldKeys

from cloudstand.clock import MovedClock
from cloudstand.demo.fleet import demo_fleet
from cloudstand.demo.keys import demo_keys
from cloudstand.world.cloud import World
from costguard.adapters.ledgers.open import open_ledger
from costguard.adapters.notifiers.router import NotifierRouter
from costguard.bootstrap import open_run_context, run_function
from costguard.cli.demo.story import demo_policy
from costguard.cli.look.keys import keys_answer
from costguard.cli.program import CliContext
from costguard.domain.errors import ThrottledError, UnavailableError
from costguard.domain.findings import Verdict
from costguard.domain.keys import EncryptionKey, KeyInventory
from costguard.domain.reasons import ReasonCode
from costguard.domain.refs import ResourceRef, Shard
from costguard.domain.remediations import RemediationKind
from costguard.domain.resources import Gap, GapKind
from costguard.engine.guards.keys.look import KeyLook, look_at_keys
from costguard.engine.guards.registry import runner_of
from costguard.engine.ledger.memory import Memory
from costguard.engine.run.run import GuardRun, run_guard
from costguard.engine.run.run_context import RunContext
from costguard.engine.run.scan import CloudReaders
from costguard.policy.documents.loader import load_policy
from costguard.policy.model.policy import Policy
from costguard.ports import KeySource, PolicyText, Target
from costguard.report.keys.views import KeyReport, key_closing, key_summary_lines, key_tables
from costguard.report.words.sentences import Language, phrase
from costguard.settings import Settings, load_settings

NOW = datetime(2026, 3, 2, 9, tzinfo=timezone.utc)
CLOUDS = ("aws", "alibaba", "tencent")
POLICY = load_policy(demo_policy())
EAST = Shard("aws", "111122223333", "us-east-1")


class Source:
    """Keys of a world, but for one shard that fails or answers in part."""

    def __init__(self, inner: KeySource, shard: Shard, gap: Gap | None = None) -> None:
        self.inner, self.shard, self.gap = inner, shard, gap

    def read(self, shard: Shard) -> KeyInventory:
        if shard != self.shard:
            return self.inner.read(shard)
        if self.gap is None:
            raise ThrottledError("slow down", operation="kms:ListKeys")
        return replace(self.inner.read(shard), gaps=(self.gap,))

    def look(self, ref: ResourceRef) -> EncryptionKey | None:
        return self.inner.look(ref)


class Place:
    """The demo's clouds and keys without any wire."""

    def __init__(self) -> None:
        self.clock = MovedClock(NOW)
        self.cloud = World(demo_fleet(NOW), NOW)
        for key in demo_keys(NOW):
            self.cloud.keys.add(key)
        self.source: KeySource = WorldKeys(self.cloud, self.clock)
        self.memory = Memory.over(open_ledger("memory:"))

    def world(self, policy: Policy = POLICY) -> RunContext:
        reading = CloudReaders(
            WorldInventory(self.cloud, self.clock), WorldSignals(self.cloud, self.clock), WorldPrices(self.cloud)
        )
        return RunContext(
            guard="kms_rotation",
            policy=policy,
            targets=tuple(Target(cloud, organisation=True) for cloud in CLOUDS),
            readings=dict.fromkeys(CLOUDS, reading),
            executors={},
            memory=self.memory,
            notifier=NotifierRouter({}, default="slack"),
            clock=self.clock,
            policy_now=lambda: policy,
            keys=dict.fromkeys(CLOUDS, self.source),
        )

    def look(self, policy: Policy = POLICY, deadline: datetime | None = None) -> KeyLook:
        world = self.world(policy)
        return look_at_keys(world.readings, world.keys, world.targets, world.policy, world.clock, deadline=deadline)

    def run(self, run_id: str = "run-1") -> GuardRun:
        return run_guard(self.world(), run_id)


@pytest.fixture
def place() -> Iterator[Place]:
    made = Place()
    yield made
    made.memory.store.close()


def found(looked: KeyLook, cloud: str) -> dict[str, set[ReasonCode]]:
    """What is not as asked, by the key's alias."""
    named: dict[str, set[ReasonCode]] = {}
    for line in looked.report.lines:
        if line.key.ref.cloud == cloud and line.finding.verdict is Verdict.VIOLATION:
            named.setdefault(line.finding.name, set()).add(line.finding.reason.code)
    return named


def test_on_every_cloud_the_demo_has_each_kind_of_finding(place: Place) -> None:
    looked = place.look()

    assert found(looked, "aws") == {
        "checkpoints": {ReasonCode.KEY_ROTATION_OFF},
        "customer-uploads": {ReasonCode.KEY_PERIOD_LONG},
        "release-signing": {ReasonCode.KEY_OVERDUE},
        "partner-data": {ReasonCode.KEY_CANNOT_ROTATE},
        "artefact-signing": {ReasonCode.KEY_CANNOT_ROTATE},
        "old-disks": {ReasonCode.KEY_DELETED_IN_USE},
    }
    for cloud, off, long in (("alibaba", "ad-features", "labels"), ("tencent", "telemetry", "replays")):
        assert found(looked, cloud) == {
            off: {ReasonCode.KEY_ROTATION_OFF},
            long: {ReasonCode.KEY_PERIOD_LONG},
            "partner-data": {ReasonCode.KEY_CANNOT_ROTATE},
            "old-disks": {ReasonCode.KEY_DELETED_IN_USE},
        }
    assert looked.gaps == ()


def test_what_would_mend_a_finding_is_rehearsed_and_nothing_is_done(place: Place) -> None:
    happened = len(place.cloud.keys.history)
    mends = {
        (line.key.ref.cloud, line.finding.name): (line.mend.kind, line.mend.parameters.get("days"))
        for line in place.look().report.lines
        if line.mend is not None
    }

    automatic = (RemediationKind.SET_ROTATION, "90")
    assert mends == {
        ("aws", "checkpoints"): automatic,
        ("aws", "customer-uploads"): automatic,
        ("aws", "release-signing"): (RemediationKind.ROTATE_KEY, None),
        ("alibaba", "ad-features"): automatic,
        ("alibaba", "labels"): automatic,
        ("tencent", "telemetry"): automatic,
        ("tencent", "replays"): automatic,
    }
    assert len(place.cloud.keys.history) == happened


def test_a_key_belongs_to_whom_owners_or_its_tags_say(place: Place) -> None:
    owned_by_all = load_policy(
        PolicyText(
            {
                "costguard.yaml": "version: 1\nkms_rotation: [{name: a}]\n",
                "owners.yaml": (
                    "- {name: cards, owns: {instance_types: ['*'], clouds: [aws]}}\n"
                    "- {name: china, owns: {clouds: [alibaba, tencent]}}\n"
                ),
            },
            "r1",
        )
    )
    owners = {line.key.ref.cloud: line.finding.owner for line in place.look(owned_by_all).report.lines if line.key.tags}

    assert owners == {"aws": "search", "alibaba": "china", "tencent": "china"}


def test_an_exception_covers_the_key_it_names_until_it_expires_and_a_selection_of_machines_none(place: Place) -> None:
    key = next(line.key for line in place.look().report.worth if line.finding.name == "checkpoints")
    agreed = "owner: a, reason: moving, approver: b, expires: '2026-03-09T00:00:00Z'"

    def verdicts(exceptions: str) -> list[Verdict]:
        text = f"version: 1\nkms_rotation: [{{name: a}}]\nexceptions: [{exceptions}]\n"
        lines = place.look(load_policy(PolicyText({"c.yaml": text}, "r1"))).report.lines
        assert all(line.mend is None for line in lines if line.finding.verdict is Verdict.EXEMPT)
        return [line.finding.verdict for line in lines if line.key.ref == key.ref]

    assert verdicts(f"{{resource: {key.ref.native_id}, {agreed}}}") == [Verdict.EXEMPT]
    assert verdicts(f"{{resource: '{key.ref}', {agreed}}}") == [Verdict.EXEMPT]
    assert verdicts(f"{{applies_when_all: {{clouds: [aws]}}, {agreed}}}") == [Verdict.VIOLATION]
    place.clock.advance(timedelta(days=7))
    assert verdicts(f"{{resource: {key.ref.native_id}, {agreed}}}") == [Verdict.VIOLATION]


def test_a_shard_that_fails_is_a_gap_and_touches_no_other(place: Place) -> None:
    whole = place.look()
    place.source = Source(place.source, EAST)
    looked = place.look()

    assert [(gap.shard, gap.what, gap.kind) for gap in looked.gaps] == [(EAST, "keys", GapKind.THROTTLED)]
    left = [line for line in whole.report.lines if line.key.ref.shard != EAST]
    assert list(looked.report.lines) == left
    assert len(looked.shards) == len(whole.shards) - 1


@pytest.mark.parametrize(("what", "told"), [("inventory", "keys"), ("details", "key_details")])
def test_what_a_source_could_read_in_part_is_shown_with_its_gap_in_words_of_keys(
    place: Place, what: str, told: str
) -> None:
    seen = place.look().report.keys_seen
    place.source = Source(place.source, EAST, Gap(EAST, what, GapKind.DENIED, "no", "allow it"))
    looked = place.look()

    assert [gap.what for gap in looked.gaps] == [told]
    assert looked.report.keys_seen == seen
    for language in Language:
        (line,) = (line for line in key_closing(looked.report, language) if "us-east-1" in line)
        assert "instance" not in line
        assert "实例" not in line


def test_a_denied_account_is_a_gap_and_never_an_account_without_keys(place: Place) -> None:
    place.cloud.deny("tencent", "100012345678", "keys")
    looked = place.look()

    assert {(gap.shard.cloud, gap.kind) for gap in looked.gaps} == {("tencent", GapKind.DENIED)}
    assert found(looked, "tencent") == {}
    assert found(looked, "aws")


def test_what_the_deadline_leaves_unread_is_a_gap(place: Place) -> None:
    looked = place.look(deadline=NOW)

    assert {gap.kind for gap in looked.gaps} == {GapKind.DEADLINE}
    assert (looked.shards, looked.report.keys_seen) == ({}, 0)


def test_a_run_remembers_its_figures_and_a_second_delivery_does_nothing(
    place: Place, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO, "costguard"):
        first, again = place.run(), place.run()

    figures = runner_of("kms_rotation").figures(first.report)
    assert figures == {
        "run_id": "run-1",
        "guard": "kms_rotation",
        "duplicate": False,
        "keys_seen": 25,
        "findings": {"compliant": 5, "exempt": 10, "violation": 14},
        "checks": {
            "references": {"violation": 3},
            "rotation": {"compliant": 5, "exempt": 9, "violation": 11},
            "vendor_limit": {"exempt": 1},
        },
        "due": 0,
        "done": 0,
        "not_done": 0,
        "held": 3,
        "rehearsed": 4,
        "gaps": 0,
        "notices": 0,
    }
    remembered = place.memory.runs.latest("kms_rotation")
    assert remembered is not None
    assert remembered.summary == figures
    assert again.look is None
    assert runner_of("kms_rotation").figures(again.report) == {"run_id": "run-1", "duplicate": True}
    assert sum(record.message == "a key is not as the policy asks" for record in caplog.records) == 14


def test_a_run_logs_what_it_could_not_read(place: Place, caplog: pytest.LogCaptureFixture) -> None:
    place.source = Source(place.source, EAST)
    with caplog.at_level(logging.WARNING, "costguard"):
        figures = runner_of("kms_rotation").figures(place.run().report)

    assert figures["gaps"] == 1
    assert [record.shard for record in caplog.records if record.message == "could not be read"] == [str(EAST)]  # type: ignore[attr-defined]  # logged as a field


def test_keys_rotate_as_time_passes_and_the_next_look_sees_it(place: Place) -> None:
    def version() -> tuple[str, datetime | None]:
        (line,) = (line for line in place.look().report.lines if line.finding.name == "training-data")
        return line.key.version, line.key.rotation.last_at

    before = version()
    place.clock.advance(timedelta(days=90))

    assert before[0] != version()[0]
    assert version()[1] == NOW + timedelta(days=50)


def test_people_see_the_gravest_first_and_limits_once_for_each_kind(place: Place) -> None:
    looked = place.look()
    lines = tuple(key_summary_lines(looked.report))
    worth, limits = key_tables(looked.report)

    assert lines[0] == phrase("keys_total", keys=25, violations=14, unmeasured=0, compliant=5, exempt=9)
    assert [record["name"] for record in worth.records()][:4] == ["old-disks", "old-disks", "old-disks", "ad-features"]
    assert [(record["cloud"], record["count"]) for record in limits.records()] == [("alibaba", "1")]
    doubled = KeyReport((*looked.report.lines, *looked.report.limits), looked.report.keys_seen)
    assert [record["count"] for record in key_tables(doubled)[1].records()] == ["2"]


def test_the_rest_is_shown_only_where_it_is_asked_for(place: Place) -> None:
    report = place.look().report

    assert [table.title for table in key_tables(report, whole=True)][2:] == [phrase("keys_rest_title", count=14)]
    assert "`--all`" in "\n".join(key_closing(report))
    assert "`--all`" not in "\n".join(key_closing(report, whole=True))
    assert "密钥" in key_tables(report, Language.ZH)[0].title


def test_no_key_and_nothing_read_are_told_apart() -> None:
    gap = Gap(EAST, "keys", GapKind.DENIED, "no")

    assert tuple(key_summary_lines(KeyReport((), 0))) == (phrase("keys_nothing"),)
    assert next(iter(key_summary_lines(KeyReport((), 0, (gap,))))) == phrase("keys_nothing_read")


ENFORCING = """
version: 1
mode: enforce
accounts: [{cloud: aws, id: '111122223333', regions: [us-east-1]}]
idle_gpu: [{name: a}]
notify: {default: 'slack:#a'}
"""


def test_a_run_about_keys_has_no_client_that_could_change_anything() -> None:
    """Whatever other rules of the policy enforce."""
    policy = load_policy(PolicyText({"c.yaml": f"{ENFORCING}kms_rotation: [{{name: a}}]\n"}, "r1"))
    memory = Memory.over(open_ledger("memory:"))
    with open_run_context(load_settings({}), "kms_rotation", policy=policy, memory=memory) as world:
        assert set(world.keys) == {"aws"}
        assert (world.executors, world.freezers, world.spends) == ({}, {}, {})
    memory.store.close()


def test_a_policy_without_a_rule_for_keys_reads_none_and_shows_how_one_looks(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    path = tmp_path_factory.mktemp("policy") / "costguard.yaml"
    path.write_text(ENFORCING, encoding="utf-8")
    answer = keys_answer(CliContext(replace(load_settings({}), policy=str(path)), MovedClock(NOW)))

    assert "  - {name: ninety-days, rotate_every: 90d}" in answer.lines
    assert (answer.data["keys"], answer.exit) == ([], 0)


def test_a_function_that_saw_no_key_while_something_could_not_be_read_is_an_error() -> None:
    """An empty answer that may only be empty because nobody answered."""
    settings = _nobody_answers()
    with pytest.raises(UnavailableError, match="no key was seen, and not everything could be read"):
        run_function("kms_rotation", "run-1", None, settings, MovedClock(NOW))


def _nobody_answers() -> Settings:
    return load_settings(
        {
            "AWS_ENDPOINT_URL": "http://127.0.0.1:1",
            "AWS_ACCESS_KEY_ID": "test",
            "AWS_SECRET_ACCESS_KEY": "test",
            "COSTGUARD_LEDGER": "memory:",
        }
    )
