"""How rules in the shadow are told to differ, in the words that scripts read."""

from __future__ import annotations

from dataclasses import replace

from tests.builders import ref

from costguard.domain.findings import Finding, Verdict
from costguard.domain.reasons import Reason, ReasonCode
from costguard.domain.remediations import Remediation, RemediationKind
from costguard.guards.keys.rules import KeyRule, KeySelector
from costguard.guards.rules.common import Mode
from costguard.planning.plan import Differs
from costguard.planning.remediation import Judged
from costguard.planning.shadows import shadow_of_remediations

KEY = ref("k-1", "key")
STRICT = KeyRule("strict", Mode.ENFORCE, KeySelector(), digest="d2")


def test_scripts_read_how_a_rule_in_the_shadow_differs_as_the_name_in_small_letters() -> None:
    assert [each.value for each in Differs] == [each.name.lower() for each in Differs]


def test_a_rule_for_keys_in_the_shadow_differs_by_its_mend_and_stops_no_machine() -> None:
    off = Reason(ReasonCode.KEY_ROTATION_OFF)
    finding = Finding("kms_rotation", "rotation", STRICT.name, STRICT.digest, KEY, Verdict.VIOLATION, off)
    in_force = Judged(
        replace(finding, rule="lax"), None, Remediation(RemediationKind.SET_ROTATION, KEY, {"days": "90"})
    )
    shadow = shadow_of_remediations(
        (in_force,), (Judged(finding, STRICT, Remediation(RemediationKind.ROTATE_KEY, KEY)),), STRICT
    )
    assert (shadow.compared, shadow.would_stop) == (1, 0)
    assert [each.differs.value for each in shadow.differences] == ["other_mend"]
