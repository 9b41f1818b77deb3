"""Rules for keys and networks in the shadow: what they find beside those in force, and that they mend nothing."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from tests.scenario.stage import CLOUDS, DAY
from tests.scenario.test_a_keys_month import KeyStage, enforcing
from tests.scenario.test_a_networks_week import NetworkStage, forbidding
from tests.world_ports.translate import to_product

from costguard.domain.findings import Verdict
from costguard.engine.ledger.learned import ShadowRepository
from costguard.guards.keys.rules import KeyRule
from costguard.guards.network.rules import NetworkCheck
from costguard.guards.rules.common import Mode
from costguard.planning.plan import Differs
from costguard.policy.model.policy import Shadows


def observing(**changes: object) -> KeyRule:
    return enforcing(**{"name": "others", "mode": Mode.OBSERVE, **changes})


@pytest.mark.parametrize("cloud", CLOUDS)
def test_keys_that_only_the_shadow_finds_are_shown_and_not_rotated(tmp_path: Path, cloud: str) -> None:
    stage = KeyStage(tmp_path, observing(name="none", rotate_every=400 * DAY))
    key = stage.key(cloud=cloud, age=30, period_days=365)
    stage.policy = replace(stage.policy, shadows=Shadows(kms_rotation=(observing(),)))

    stage.every_day(0, 3)

    (standing,) = ShadowRepository(stage.memory.store).all()
    found = {(each.subject, each.differs) for each in standing.differences}
    assert (standing.guard, standing.rule, standing.compared) == ("kms_rotation", "others", 1)
    assert found == to_product({(key.ref, Differs.ONLY_SHADOW)})
    assert stage.rotator.calls == []
    assert stage.mailbox.messages == []
    stage.close()


def test_networks_are_judged_by_the_shadow_beside_what_is_in_force(tmp_path: Path) -> None:
    stage = NetworkStage(tmp_path, "aws", forbidding(NetworkCheck.PUBLIC_IP))
    shadow = forbidding(NetworkCheck.PUBLIC_IP, NetworkCheck.OPEN_ADMIN_PORT, name="stricter", mode=Mode.OBSERVE)
    stage.policy = replace(stage.policy, shadows=Shadows(network_audit=(shadow,)))

    stage.look(0 * DAY)

    (standing,) = ShadowRepository(stage.memory.store).all()
    assert {each.check for each in standing.differences} == {NetworkCheck.OPEN_ADMIN_PORT.value}
    assert {each.differs for each in standing.differences} == {Differs.ONLY_SHADOW}
    assert all(each.in_force.verdict is Verdict.EXEMPT for each in standing.differences)
    assert stage.remediator.calls == []
    stage.memory.store.close()
