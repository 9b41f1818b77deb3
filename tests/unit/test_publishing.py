"""Published policies: what may be published, what is in force, and what the functions refuse whoever published it."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import date, timedelta
from importlib.metadata import version
from pathlib import Path

import pytest
from tests.builders import NOW
from tests.published_rig import (
    DAY,
    ENFORCES,
    FIRST,
    HOUR,
    LOOSER,
    OBSERVES,
    SECOND,
    THIRD,
    TIGHTER,
    Office,
    gpu_bound,
    text,
)

from costguard.adapters.object_stores.folder import FolderStore
from costguard.adapters.policy_sources.published import BundleShelf
from costguard.domain.errors import InvalidInputError, LedgerError, ProviderError
from costguard.domain.reasons import ReasonCode
from costguard.engine.ledger.audit.audit import ENTRY
from costguard.engine.ledger.audit.people import told_again
from costguard.engine.ledger.audit.verify import verify
from costguard.engine.ledger.publications import ApproverWord, Publication
from costguard.engine.policy.agreeing import Word, agree, ask_approver
from costguard.engine.policy.in_force import PolicyInForce, named, tell_of_policy
from costguard.engine.policy.publishing import chronicle
from costguard.guards.rules.common import Mode, Selector
from costguard.policy.diff.policies import loosenings, observes_only
from costguard.policy.documents.bundle import bundle_bytes, bundle_digest, bundle_files
from costguard.policy.documents.loader import load_policy
from costguard.policy.model.policy import Exemption, with_policy_digest
from costguard.ports import Put, Record

TOMORROW = NOW + DAY + HOUR


@pytest.fixture
def office(tmp_path: Path) -> Iterator[Office]:
    made = Office(tmp_path / "bundles")
    yield made
    made.memory.store.close()


@pytest.fixture
def enforcing(office: Office) -> Office:
    return office.enforcing()


def test_the_same_files_are_the_same_bundle_whatever_their_order() -> None:
    one = {"costguard.yaml": "version: 1\n", "policies/a.yaml": "策略: 甲\n"}

    assert bundle_bytes(one) == bundle_bytes(dict(reversed(one.items())))
    assert bundle_files(bundle_bytes(one), bundle_digest(bundle_bytes(one))) == one


def test_a_bundle_with_one_byte_changed_is_refused() -> None:
    body = bundle_bytes({"costguard.yaml": "lasting: 24h"})

    with pytest.raises(InvalidInputError, match="was altered"):
        bundle_files(body.replace(b"24h", b"14h"), bundle_digest(body))


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b'{"schema":2,"files":{}}', "has schema 2, this Costguard understands 1; upgrade it"),
        (b'{"files":{}}', "is no published policy"),
        (b"[]", "is no published policy"),
        (b"\xff", "is no published policy"),
        (b'{"schema":1,"files":{"costguard.yaml":1}}', "is no published policy"),
    ],
)
def test_what_a_newer_costguard_or_nobody_wrote_is_refused(body: bytes, said: str) -> None:
    with pytest.raises(InvalidInputError, match=said):
        bundle_files(body, bundle_digest(body))


def test_the_first_policy_of_all_may_only_observe(office: Office) -> None:
    with pytest.raises(InvalidInputError, match="it may only observe"):
        office.publish(ENFORCES)

    office.publish(OBSERVES)

    assert office.runs().policy.mode is Mode.OBSERVE


def test_functions_take_no_first_policy_that_does_more_whoever_published_it(office: Office) -> None:
    digest = office.bundles.keep(text(ENFORCES).files)
    office.memory.policies.published.publish(0, Publication(0, digest, "", "ops", NOW))

    with pytest.raises(InvalidInputError, match="it may only observe"):
        office.runs()


def test_a_deployment_that_read_files_goes_on_by_what_it_did(enforcing: Office) -> None:
    """What runs decided by is what a first publication is compared with; its approvers were nobody's to name before."""
    found = enforcing.runs()

    assert (gpu_bound(found), found.error, found.waits) == (5.0, "", None)


def test_a_first_publication_may_name_approvers_where_there_were_none(office: Office) -> None:
    office.memory.policies.remember(text(ENFORCES.replace(f"{FIRST}, {SECOND}, {THIRD}", FIRST)), NOW)
    office.publish(ENFORCES)

    assert office.runs().waits is None


def test_a_first_publication_names_no_others_where_there_were_some(office: Office) -> None:
    office.memory.policies.remember(text(ENFORCES.replace(f", {THIRD}", "")), NOW)
    published = office.publish(ENFORCES, TOMORROW)

    assert published.publication.loosened[0].startswith("policy: notify.answers.approvers: ")
    assert office.runs().waits is not None


def test_what_a_newer_costguard_cannot_read_any_more_gives_way_to_observing_only(enforcing: Office) -> None:
    """Else nothing could be published ever again."""
    published = enforcing.memory.policies.published
    outdated = enforcing.bundles.keep({"costguard.yaml": ENFORCES.replace("lasting", "longer_than")})
    published.publish(1, Publication(0, outdated, "", "ops", NOW))
    published.settle(2, NOW)
    assert "longer_than" in enforcing.runs().error

    with pytest.raises(InvalidInputError, match="it may only observe"):
        enforcing.publish(TIGHTER)
    enforcing.publish(OBSERVES)

    assert (enforcing.runs().error, enforcing.runs().policy.mode) == ("", Mode.OBSERVE)


def test_a_first_publication_that_loosens_what_was_read_from_files_waits(office: Office) -> None:
    office.memory.policies.remember(text(ENFORCES), NOW)
    office.publish(LOOSER, TOMORROW)

    assert gpu_bound(office.runs()) == 5.0


def test_a_policy_from_files_that_is_too_old_to_act_on_is_nothing_to_compare_with(office: Office) -> None:
    office.memory.policies.remember(text(ENFORCES), NOW - 8 * DAY)

    with pytest.raises(InvalidInputError, match="it may only observe"):
        office.publish(ENFORCES)


def test_a_policy_without_two_approvers_is_not_published(office: Office) -> None:
    with pytest.raises(InvalidInputError, match="names at least 2 approvers"):
        office.publish(OBSERVES.replace(f"{FIRST}, {SECOND}, {THIRD}", FIRST))


def test_a_policy_with_a_mistake_is_not_published(enforcing: Office) -> None:
    with pytest.raises(InvalidInputError, match=r"costguard\.yaml:7"):
        enforcing.publish(ENFORCES.replace("5%", "500%"))

    assert len(enforcing.memory.policies.published.all()) == 1


def test_a_tightening_decides_from_the_next_run_on(enforcing: Office) -> None:
    enforcing.publish(TIGHTER)

    assert enforcing.runs().policy.idle_gpu[0].idle.lasting == 3 * DAY


def test_a_loosening_names_its_moment_a_day_ahead_or_is_not_published(enforcing: Office) -> None:
    for effective_at in (None, NOW + DAY - timedelta(minutes=1)):
        with pytest.raises(InvalidInputError, match="24 h ahead at least: --effective-at 2"):
            enforcing.publish(LOOSER, effective_at)

    assert enforcing.publish(LOOSER, NOW + DAY).waits is not None


def test_a_loosening_waits_for_its_moment_and_for_two_approvers(enforcing: Office) -> None:
    digest = enforcing.publish(LOOSER, TOMORROW).publication.digest
    enforcing.approve(digest, FIRST, SECOND)
    enforcing.now = TOMORROW - timedelta(minutes=1)
    assert gpu_bound(enforcing.runs()) == 5.0

    enforcing.now = TOMORROW
    assert gpu_bound(enforcing.runs()) == 9.0


@pytest.mark.parametrize("people", [(), (FIRST,)])
def test_a_loosening_without_two_approvers_waits_for_ever(enforcing: Office, people: tuple[str, ...]) -> None:
    published = enforcing.publish(LOOSER, TOMORROW)
    for agreed in enforcing.approve(published.publication.digest, *people):
        published = agreed
    assert published.waits is not None
    assert published.waits.missing == 2 - len(people)

    enforcing.now += 365 * DAY
    found = enforcing.runs()

    assert (gpu_bound(found), found.error, found.problem) == (5.0, "", None)
    assert found.waits is not None


def forged(office: Office, **changes: object) -> None:
    """What the ledger holds of the last publication is changed, by other code than this."""
    record = next(each for each in office.memory.store.query("policy_publication") if each.key.endswith("2"))
    office.memory.store.put(replace(record, body={**record.body, **changes}), record.version)


def test_functions_judge_themselves_whatever_the_publisher_said(enforcing: Office) -> None:
    """A publisher of another version, or with other intentions, called a loosening nothing at all."""
    enforcing.publish(LOOSER, TOMORROW)
    forged(enforcing, loosened=[], loosens=0, tightens=1, effective_at=None)

    enforcing.now += 30 * DAY
    found = enforcing.runs()

    assert gpu_bound(found) == 5.0
    assert found.waits is not None
    assert found.waits.until is None, "it has to be published again, with a moment"


def test_functions_take_no_moment_less_than_a_day_after_publication(enforcing: Office) -> None:
    digest = enforcing.publish(LOOSER, TOMORROW).publication.digest
    enforcing.approve(digest, FIRST, SECOND)
    forged(enforcing, effective_at=(NOW + HOUR).isoformat())

    enforcing.now += 30 * DAY

    assert gpu_bound(enforcing.runs()) == 5.0


def test_only_approvers_whom_the_policy_in_force_names_count(enforcing: Office) -> None:
    """A change that brings its own approvers is not approved by them."""
    own = LOOSER.replace(f"{FIRST}, {SECOND}, {THIRD}", "U0FRIEND1, U0FRIEND2")
    published = enforcing.publish(own, TOMORROW).publication
    with pytest.raises(InvalidInputError, match="no approver of the policy in force"):
        enforcing.approve(published.digest, "U0FRIEND1")

    for person in ("U0FRIEND1", "U0FRIEND2"):
        enforcing.memory.policies.published.agree(published.seq, ApproverWord(person, NOW, "slack_code"))
    enforcing.now = TOMORROW

    assert gpu_bound(enforcing.runs()) == 5.0


def test_one_person_counts_once(enforcing: Office) -> None:
    digest = enforcing.publish(LOOSER, TOMORROW).publication.digest
    enforcing.approve(digest, FIRST)

    with pytest.raises(InvalidInputError, match="has agreed already; 1 more must"):
        enforcing.approve(digest, FIRST)


def test_an_approval_belongs_to_one_publication(enforcing: Office) -> None:
    digest = enforcing.publish(LOOSER, TOMORROW).publication.digest
    enforcing.approve(digest, FIRST, SECOND)
    again = enforcing.publish(LOOSER, TOMORROW + DAY)

    assert again.publication.digest == digest
    assert again.waits is not None
    assert again.waits.missing == 2


def test_a_code_is_the_approvers_own_lasts_15_minutes_and_is_used_once(enforcing: Office) -> None:
    digest = enforcing.publish(LOOSER, TOMORROW).publication.digest
    bundles, memory = enforcing.bundles, enforcing.memory
    ask_approver(bundles, memory, Word(digest, FIRST, "11111111"), NOW)
    ask_approver(bundles, memory, Word(digest, SECOND, "22222222"), NOW)

    for person, code, at in ((FIRST, "22222222", NOW), (FIRST, "11111111", NOW + timedelta(minutes=16))):
        with pytest.raises(InvalidInputError, match="that is not the code"):
            agree(bundles, memory, Word(digest, person, code), at)
    agree(bundles, memory, Word(digest, FIRST, "11111111"), NOW)
    assert not memory.policies.published.code_fits(2, FIRST, "11111111", NOW)


def test_a_code_cannot_be_guessed_at_length(enforcing: Office) -> None:
    digest = enforcing.publish(LOOSER, TOMORROW).publication.digest
    ask_approver(enforcing.bundles, enforcing.memory, Word(digest, FIRST, "11111111"), NOW)
    fits = enforcing.memory.policies.published.code_fits

    assert not any(fits(2, FIRST, f"{guess:08}", NOW) for guess in range(5))
    assert not fits(2, FIRST, "11111111", NOW)


def test_a_change_that_also_tightens_waits_whole(enforcing: Office) -> None:
    published = enforcing.publish(LOOSER.replace("lasting: 24h", "lasting: 72h"), TOMORROW)

    assert (published.publication.loosens, published.publication.tightens) == (1, 1)
    assert enforcing.runs().policy.idle_gpu[0].idle.lasting == DAY


def test_a_tightening_published_by_itself_passes_a_loosening_that_waits(enforcing: Office) -> None:
    enforcing.publish(LOOSER, TOMORROW)
    enforcing.publish(TIGHTER)

    assert enforcing.runs().policy.idle_gpu[0].idle.lasting == 3 * DAY


def test_a_loosening_in_two_steps_is_one(enforcing: Office) -> None:
    """What no run has decided by is no step: every publication is compared with what runs decide by."""
    enforcing.publish(LOOSER, TOMORROW)
    enforcing.now = NOW + 2 * DAY
    harder = LOOSER.replace("wait: 24h", "wait: 1h")
    loosened = enforcing.publish(harder, enforcing.now + DAY).publication.loosened

    assert [each.partition(": ")[2].partition(":")[0] for each in loosened] == [
        "idle_when_all.every_gpu_max_below",
        "then",
    ]


def test_a_moment_may_also_be_given_to_what_loosens_nothing(enforcing: Office) -> None:
    enforcing.publish(TIGHTER, NOW + HOUR)
    assert enforcing.runs().waits is not None

    enforcing.now += HOUR
    assert enforcing.runs().waits is None


def test_a_moment_that_is_past_is_refused(enforcing: Office) -> None:
    with pytest.raises(InvalidInputError, match="--effective-at is past"):
        enforcing.publish(TIGHTER, NOW)


def test_an_exception_that_has_run_out_may_go() -> None:
    new = load_policy(text(ENFORCES))
    kept = Exemption(Selector(resources=("i-0abc",)), "nlp", "demo", "lead", NOW + HOUR)
    old = with_policy_digest(replace(new, exemptions=(kept,)))

    assert loosenings(old, new, NOW)
    assert not loosenings(old, new, NOW + 2 * HOUR)


def test_going_back_needs_what_publishing_needs(enforcing: Office) -> None:
    enforcing.publish(TIGHTER)
    enforcing.runs()

    with pytest.raises(InvalidInputError, match="loosens the one in force"):
        enforcing.roll_back()
    back = enforcing.roll_back(effective_at=TOMORROW)
    assert back.publication.rollback
    enforcing.approve(back.publication.digest[:8], FIRST, THIRD)
    enforcing.now = TOMORROW

    assert enforcing.runs().policy.idle_gpu[0].idle.lasting == DAY


def test_going_back_takes_away_what_waits(enforcing: Office) -> None:
    waiting = enforcing.publish(LOOSER, TOMORROW).publication.digest
    back = enforcing.roll_back()

    assert back.waits is None
    assert enforcing.runs().waits is None
    with pytest.raises(InvalidInputError, match="names no published policy"):
        enforcing.approve(waiting, FIRST)


@pytest.mark.parametrize("digest", ["0" * 64, "abc", "../../etc"])
def test_nobody_goes_back_to_what_was_never_published(enforcing: Office, digest: str) -> None:
    with pytest.raises(InvalidInputError, match="names no published policy"):
        enforcing.roll_back(digest)


def test_the_same_policy_is_not_published_twice(enforcing: Office) -> None:
    with pytest.raises(InvalidInputError, match="this very one"):
        enforcing.publish(ENFORCES)


def test_of_two_who_publish_at_once_one_is_told_to_look_again(enforcing: Office) -> None:
    published = enforcing.memory.policies.published
    enforcing.publish(TIGHTER)

    with pytest.raises(InvalidInputError, match="somebody else published meanwhile"):
        published.publish(1, Publication(0, "0" * 64, "", "ops", NOW))
    assert [each.seq for each in published.all()] == [1, 2]


def test_every_move_of_the_pointer_is_audited(enforcing: Office) -> None:
    digest = enforcing.publish(LOOSER, TOMORROW).publication.digest
    enforcing.approve(digest, FIRST)
    store = enforcing.memory.store
    told = [told_again(store, record) for record in store.query(ENTRY, "operator/policy/")]

    assert [each["did"] for each in told] == ["published", "in_force", "published", "agreed"]
    assert (told[2]["from"], told[2]["to"], told[2]["by"], told[2]["note"], told[2]["loosens"]) == (
        told[0]["to"],
        digest,
        "ops",
        "why",
        1,
    )
    assert verify(enforcing.memory.store).problems == ()


# what is broken


def test_an_altered_bundle_is_a_broken_policy_and_the_last_good_one_decides_for_seven_days(enforcing: Office) -> None:
    digest = enforcing.publish(TIGHTER).publication.digest
    enforcing.object(digest).write_bytes(b'{"schema":1,"files":{}}')

    found = enforcing.runs(cold=True)
    assert (found.policy.idle_gpu[0].idle.lasting, found.problem) == (DAY, None)
    assert "was altered where it is kept" in found.error

    enforcing.now = NOW + 7 * DAY + timedelta(minutes=1)
    late = enforcing.runs(cold=True)
    assert late.problem is not None
    assert late.problem.code is ReasonCode.POLICY_STALE


def test_a_bundle_that_is_missing_is_a_broken_policy(enforcing: Office) -> None:
    """Even of the policy that is in force already: what a process keeps is no reason to go on for ever."""
    enforcing.object(enforcing.memory.policies.published.all()[0].digest).unlink()

    found = enforcing.runs(cold=True)

    assert "is not at" in found.error
    assert gpu_bound(found) == 5.0


def test_a_waiting_policy_does_not_hide_that_the_one_in_force_is_lost(enforcing: Office) -> None:
    enforcing.publish(LOOSER, TOMORROW)
    enforcing.object(enforcing.memory.policies.published.all()[0].digest).unlink()

    assert "is not at" in enforcing.runs(cold=True).error


def test_a_bundle_that_is_lost_is_kept_again_with_the_next_publication(enforcing: Office) -> None:
    lost = enforcing.object(enforcing.memory.policies.published.all()[0].digest)
    lost.unlink()
    enforcing.publish(TIGHTER)

    assert lost.exists()
    assert enforcing.runs(cold=True).error == ""


@pytest.mark.parametrize("seq", [1, 7])
def test_a_pointer_that_cannot_be_read_is_a_broken_policy(enforcing: Office, seq: int) -> None:
    store = enforcing.memory.store
    record = store.get("policy_pointer", "current")
    assert record is not None
    store.put(replace(record, body={"seq": seq, "digest": "0" * 64}), record.version)

    found = enforcing.runs()

    assert "the pointer to the published policy is damaged" in found.error
    assert gpu_bound(found) == 5.0


def test_where_nothing_is_published_nothing_decides(office: Office) -> None:
    """Not even the policy that runs took from files before: what is published is one place, and it is empty."""
    office.memory.policies.remember(text(ENFORCES), NOW)

    with pytest.raises(InvalidInputError, match="nothing is published in this ledger"):
        office.runs()
    with pytest.raises(InvalidInputError, match="nothing is published in this ledger"):
        chronicle(office.bundles, office.memory, NOW)


def test_a_policy_from_files_never_stands_in_for_a_published_one(enforcing: Office) -> None:
    enforcing.memory.policies.remember(text(LOOSER), NOW)
    enforcing.object(enforcing.memory.policies.published.all()[0].digest).unlink()

    assert gpu_bound(enforcing.runs(cold=True)) == 5.0


def test_a_bundle_is_fetched_once_a_process(enforcing: Office) -> None:
    """A hash names the same bytes for ever; the pointer is read for every decision."""
    enforcing.runs()
    enforcing.object(enforcing.memory.policies.published.all()[0].digest).unlink()

    assert enforcing.runs().error == ""


def test_a_store_that_forgets_what_it_was_given_is_noticed(office: Office) -> None:
    class Forgetful(FolderStore):
        def put(self, name: str, body: bytes, content_type: str) -> str:
            return super().put(f"elsewhere/{name}", body, content_type)

    with pytest.raises(ProviderError):
        BundleShelf(Forgetful(office.folder), "here").keep({"costguard.yaml": OBSERVES})


# what people see


def test_the_history_needs_no_bundle_where_nothing_waits(enforcing: Office) -> None:
    enforcing.object(enforcing.memory.policies.published.all()[0].digest).unlink()

    assert len(chronicle(enforcing.cold, enforcing.memory, NOW).publications) == 1


def test_people_are_told_once_of_a_policy_that_waits(enforcing: Office) -> None:
    digest = enforcing.publish(LOOSER, TOMORROW).publication.digest
    for hour in range(30):
        enforcing.now = NOW + hour * HOUR
        tell_of_policy(enforcing.memory, enforcing.runs(), "en", enforcing.now)

    told, *asked = enforcing.memory.outbox.due(enforcing.now)
    assert told.channel == "slack:#gpu"
    assert [each.channel for each in asked] == [f"slack:{person}" for person in (FIRST, SECOND, THIRD)]
    assert told.title == f"Published policy {digest[:12]} waits: it loosens what is in force"
    assert "idle_gpu all: idle_when_all.every_gpu_max_below: 5%, now 9%" in told.text
    assert f"costguard policy approve {digest[:12]}" in told.text


def test_a_run_names_the_policy_it_decided_by_and_the_one_that_waits(enforcing: Office) -> None:
    digest = enforcing.publish(LOOSER, TOMORROW).publication.digest
    found = enforcing.runs()
    memory = named(enforcing.memory, found)
    memory.runs.begin("run-1", "idle_gpu", NOW)

    run = enforcing.memory.runs.get("run-1")
    assert run is not None
    first = enforcing.memory.policies.published.all()[0].digest
    assert (run.policy, run.bundle, run.policy_waiting) == (found.policy.digest, first, digest)


def test_a_run_recorded_before_publishing_was_possible_is_still_read(office: Office) -> None:
    body = {"run_id": "run-0", "guard": "idle_gpu", "started_at": NOW.isoformat(), "finished_at": None}
    office.memory.store.transact([Put(Record("run", "run-0", {**body, "summary": {}, "heads": {}}), 0)])

    run = office.memory.runs.get("run-0")
    assert run is not None
    assert run.bundle == ""


@pytest.mark.parametrize(
    "more",
    [
        "mode: warn\nidle_gpu: [{name: all, mode: observe}]",
        "budgets: [{name: team, mode: enforce, monthly: 5 USD}]",
        "kms_rotation: [{name: keys, mode: warn}]",
        "network_audit: [{name: nets, mode: warn, forbid: [public_ip]}]",
    ],
)
def test_what_does_more_than_observe_is_told_apart(more: str) -> None:
    beside = "" if more.startswith("mode") else "mode: enforce\nidle_gpu: [{name: all, mode: observe}]\n"
    policy = load_policy(text(f"version: 1\n{more}\n{beside}"))

    assert not observes_only(replace(policy, mode=Mode.OBSERVE) if beside else policy)
    assert observes_only(load_policy(text(OBSERVES)))


def test_a_bundle_is_plain_json_with_the_files_as_they_were_written(enforcing: Office) -> None:
    (path,) = enforcing.folder.glob("bundles/*.json")

    assert json.loads(path.read_bytes()) == {"schema": 1, "files": {"costguard.yaml": ENFORCES}}
    with pytest.raises(LedgerError):
        enforcing.memory.policies.published.agree(9, ApproverWord(FIRST, NOW, ""))


# holidays


IN_CHINA = TIGHTER + '\ncalendar: {zone: Asia/Shanghai, hours: "10:00-18:00", holidays: [cn, de-BY]}\n'


def test_a_published_policy_carries_the_dates_of_its_holidays(enforcing: Office) -> None:
    digest = enforcing.publish(IN_CHINA).publication.digest

    kept = enforcing.cold.fetch(digest).files
    assert sorted(kept) == ["costguard.yaml", "holidays.yaml"]
    assert "2026-10-01" in kept["holidays.yaml"]
    assert f'source: "holidays {version("holidays")}"' in kept["holidays.yaml"]
    calendar = enforcing.runs(cold=True).policy.calendar
    assert calendar is not None
    assert calendar.source == f"holidays {version('holidays')}"
    assert not calendar.is_working_day(date(2026, 1, 6))  # a holiday of Bavaria


WITHOUT_THE_PACKAGE = """
import json, sys
sys.modules["holidays"] = None  # as in a function: importing it fails
from costguard.policy.documents.loader import load_policy
from costguard.ports import PolicyText
policy = load_policy(PolicyText(json.load(sys.stdin), "r", "bundle"))
print(policy.digest, policy.calendar.known_until)
"""


def in_a_function(files: Mapping[str, str]) -> list[str]:
    said = subprocess.run(  # noqa: S603 - our own interpreter
        [sys.executable, "-c", WITHOUT_THE_PACKAGE], input=json.dumps(files), capture_output=True, text=True, check=True
    )
    return said.stdout.split()


def test_a_function_without_the_package_decides_by_the_same_policy(enforcing: Office) -> None:
    digest = enforcing.publish(IN_CHINA).publication.digest

    decides = enforcing.runs(cold=True).policy
    assert decides.calendar is not None
    assert in_a_function(enforcing.cold.fetch(digest).files) == [decides.digest, str(decides.calendar.known_until)]


def test_a_bundle_from_before_there_were_dates_opens_and_knows_none() -> None:
    assert in_a_function({"costguard.yaml": IN_CHINA})[1] == str(date.min)


def test_the_first_dates_of_an_older_bundle_loosen_nothing() -> None:
    """Else what the publisher, who has the package, finds ready would wait for ever where no function has it."""
    dated = load_policy(text(IN_CHINA))
    assert dated.calendar is not None
    without = replace(dated, calendar=replace(dated.calendar, exceptions={}, known_until=date.min))

    assert loosenings(without, dated, NOW) == ()
    assert loosenings(dated, load_policy(text(IN_CHINA.replace("cn, ", ""))), NOW) != ()


def test_people_are_told_once_where_the_policy_in_force_has_no_holidays_of_this_year(enforcing: Office) -> None:
    dated = load_policy(text(IN_CHINA))
    assert dated.calendar is not None
    found = PolicyInForce(replace(dated, calendar=replace(dated.calendar, known_until=date(NOW.year - 1, 12, 31))))

    for hour in range(3):
        tell_of_policy(enforcing.memory, found, "en", NOW + hour * HOUR)

    told = [notice for notice in enforcing.memory.outbox.pending() if notice.notice_id.startswith("policy-holidays")]
    assert [notice.title for notice in told] == [f"No holidays are known for {NOW.year}"]
    assert "publish" in told[0].text.lower()
