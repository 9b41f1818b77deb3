"""What every `CloudAuditLog` promises, run on each provider: see `trail_worlds.py` for what a provider brings."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

import pytest
from tests.contract.trail_worlds import DAY, EVERYBODY, MADE, OLD, ROLE, ROOT, SERVICE, SILENT, TRAILS, USER, TrailRig

from costguard.domain.errors import AccessDeniedError
from costguard.domain.refs import Deployment
from costguard.domain.resources import GapKind


@pytest.fixture(scope="module", params=sorted(TRAILS))
def provider(request: pytest.FixtureRequest) -> Iterator[TrailRig]:
    with TRAILS[request.param]() as made:
        yield made


@pytest.fixture
def rig(provider: TrailRig) -> TrailRig:
    provider.reset()
    return provider


def test_each_machine_has_the_launcher_that_the_trail_names(rig: TrailRig) -> None:
    """Four machines of one minute: a user, a role with its session, a service, and the root of the account."""
    report = rig.ask(*EVERYBODY)
    told = {name: report.launches[rig.instance(name).ref] for name in EVERYBODY}

    assert {name: launch.by for name, launch in told.items()} == {
        USER: "user/vision-lead",
        ROLE: "role/train/speech-lead@example.com",
        SERVICE: rig.service,
        ROOT: "root",
    }
    assert {launch.at for launch in told.values()} == {MADE}
    assert len({launch.event_id for launch in told.values()}) == len(EVERYBODY)
    assert report.gaps == ()


def test_starting_a_machine_again_is_not_launching_it(rig: TrailRig) -> None:
    rig.again(USER)

    report = rig.ask(USER)

    assert report.launches[rig.instance(USER).ref].by == "user/vision-lead"


def test_a_trail_without_the_event_is_no_gap(rig: TrailRig) -> None:
    report = rig.ask(SILENT, USER)

    assert set(report.launches) == {rig.instance(USER).ref}
    assert report.gaps == ()


def test_nothing_older_than_the_trail_is_asked_for(rig: TrailRig) -> None:
    report = rig.ask(OLD)

    assert (dict(report.launches), report.gaps) == ({}, ())
    assert rig.asked() == 0


def test_a_launch_on_a_later_page_is_found(rig: TrailRig) -> None:
    rig.again(USER)
    rig.desk().page = 1

    report = rig.ask(USER)

    assert report.launches[rig.instance(USER).ref].by == "user/vision-lead"
    assert rig.asked() > 1


def test_a_denial_is_a_gap_that_names_the_permission_and_ends_the_asking(rig: TrailRig) -> None:
    rig.deny()

    report = rig.ask(*EVERYBODY)

    (gap,) = report.gaps
    assert (gap.what, gap.kind, dict(report.launches)) == ("launches", GapKind.DENIED, {})
    assert rig.operation in gap.fix
    assert rig.asked() == 1


def test_throttling_that_passes_is_waited_out(rig: TrailRig) -> None:
    rig.throttle(times=2)

    report = rig.ask(USER)

    assert report.launches[rig.instance(USER).ref].by == "user/vision-lead"


def test_throttling_that_stays_is_a_gap_and_names_nobody(rig: TrailRig) -> None:
    rig.throttle()

    report = rig.ask(USER, ROLE)

    (gap,) = report.gaps
    assert (gap.what, gap.kind, dict(report.launches)) == ("launches", GapKind.THROTTLED, {})


def test_an_answer_in_another_form_names_nobody(rig: TrailRig) -> None:
    rig.garble()

    report = rig.ask(USER)

    (gap,) = report.gaps
    assert (gap.what, dict(report.launches)) == ("launches", {})
    assert gap.kind in {GapKind.UNREADABLE, GapKind.UNAVAILABLE}


def test_reading_the_trail_changes_nothing(rig: TrailRig) -> None:
    rig.ask(USER)

    made = rig.session().calls_made()
    assert rig.operation in {call.operation for call in made}
    assert not any(call.changes_something for call in made)


EU, RESEARCH = Deployment("platform-eu", "1a2b3c4d"), Deployment("research", "99999999")


def test_whoever_asks_is_seen_by_the_next_to_ask(rig: TrailRig) -> None:
    """Asking is the mark: two deployments with keys of their own find each other, and what only looks is none."""
    assert rig.seen() == {}
    since = rig.clock.now() - 7 * DAY

    assert rig.trail_of(EU).deployments(rig.shard, since) == {}
    rig.clock.advance(DAY)
    assert set(rig.trail_of(RESEARCH).deployments(rig.shard, since)) == {EU}
    rig.clock.advance(DAY)

    seen = rig.seen()
    assert {each: (rig.clock.now() - at).days for each, at in seen.items()} == {EU: 2, RESEARCH: 1}


def test_a_deployment_is_seen_by_the_session_of_its_role(rig: TrailRig) -> None:
    rig.trail_of(EU, role=True).deployments(rig.shard, rig.clock.now() - DAY)

    assert set(rig.seen()) == {EU}


def test_a_mark_from_before_is_not_seen(rig: TrailRig) -> None:
    rig.trail_of(EU).deployments(rig.shard, rig.clock.now() - DAY)
    rig.clock.advance(8 * DAY)

    assert rig.seen(days=7) == {}
    assert set(rig.seen(days=9)) == {EU}


def test_looking_for_others_takes_few_questions(rig: TrailRig) -> None:
    """A trail full of others' questions is not read to its end: the newest pages are."""
    for _ in range(30):
        rig.seen()
    rig.clock.advance(timedelta(minutes=5))
    rig.trail_of(EU).deployments(rig.shard, rig.clock.now() - DAY)
    rig.desk().page = 2
    before = rig.asked()

    assert set(rig.seen()) == {EU}
    assert rig.asked() - before <= 2 * 3


def test_a_trail_that_cannot_be_read_says_so(rig: TrailRig) -> None:
    rig.deny()
    with pytest.raises(AccessDeniedError):
        rig.seen()
