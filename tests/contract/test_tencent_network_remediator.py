"""Mending networks of Tencent Cloud: rules that are places, versions that refuse, and what an address takes with it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import pytest
from tests.contract.network_fleet import DEFAULT, NOTEBOOK, OPEN, ORDERED, SPARE, TRAINER, TRAINING, WORLD_V4
from tests.contract.tencent_network import TencentNetworkRig, tencent_network
from tests.contract.tencent_world import patient_pacer
from tests.world_ports.translate import to_product, to_world

from cloudstand.wire.faults import Fault, FaultKind
from cloudstand.world.network.networks import in_their_places
from costguard.domain.errors import NotFoundError, OutcomeUnknownError, ProviderError, RefusedError
from costguard.domain.network import NetworkRule, SecurityGroup
from costguard.domain.remediations import Remediation, RemediationKind
from costguard.guards.network.rules import rule_text
from costguard.providers.kit.iam.permissions import Purpose
from costguard.providers.tencent.core.session import TencentSession
from costguard.providers.tencent.network.remediator import TencentNetworkRemediator

K = RemediationKind
OFFICE, VPN, HOME = "198.51.100.0/24", "192.0.2.0/24", "203.0.113.128/25"


class Watched(TencentSession):
    """A session for mending that keeps what it sends, and lets somebody else come first."""

    def __init__(self, **made: Any) -> None:
        super().__init__(**made)
        self.sent: list[tuple[str, Mapping[str, Any]]] = []
        self.first: dict[str, Callable[[], None]] = {}

    def call(self, *where: Any, **parameters: Any) -> dict[str, Any]:
        action = where[2]
        self.first.pop(action, lambda: None)()
        if not action.startswith("Describe"):
            self.sent.append((action, parameters))
        return super().call(*where, **parameters)


@pytest.fixture(scope="module")
def provider() -> Iterator[TencentNetworkRig]:
    with tencent_network() as made:
        yield made


@pytest.fixture(scope="module")
def watched(provider: TencentNetworkRig) -> Iterator[Watched]:
    emulator = provider.emulator
    session = Watched(
        keys=emulator.keys,
        endpoint=emulator.url,
        pacer=patient_pacer(),
        now=provider.clock.now,
        may_change=True,
        purpose=Purpose.MEND,
    )
    yield session
    session.close()


@pytest.fixture
def session(watched: Watched, rig: TencentNetworkRig) -> Watched:
    del rig
    watched.sent.clear()
    watched.first.clear()
    return watched


@pytest.fixture
def rig(provider: TencentNetworkRig) -> TencentNetworkRig:
    provider.reset()
    return provider


def group_of(rig: TencentNetworkRig, name: str = OPEN) -> SecurityGroup:
    found: SecurityGroup = to_product(rig.world.networks.group(to_world(rig.ref("security_group", name))))
    return found


def rules_of(rig: TencentNetworkRig, name: str = OPEN) -> list[tuple[str, str]]:
    """Peer and first port of each rule for what comes in."""
    rules = [rule for rule in group_of(rig, name).rules if rule.direction.value == "ingress"]
    return [(rule.peers[0], str(rule.ports[0][0])) for rule in rules]


def place(rig: TencentNetworkRig, rules: list[NetworkRule], name: str = OPEN) -> None:
    """The owner writes the list anew."""
    rig.world.networks.set_rules(
        to_world(rig.ref("security_group", name)), to_world(rules), rig.clock.now(), "owner", "wrote"
    )


def about(rig: TencentNetworkRig, kind: RemediationKind, number: int = 1, name: str = OPEN, **more: str) -> Remediation:
    """About the rule at a place; 1 is Jupyter for the world."""
    group = group_of(rig, name)
    said = {"rule_id": str(number), "direction": "ingress", "version": group.version, **more}
    return Remediation(kind, group.ref, said)


def image(rig: TencentNetworkRig, number: int = 1) -> dict[str, str]:
    group = group_of(rig)
    return {"rule": rule_text(group.rules[number]), "version": group.version}


def change(session: TencentSession, mend: Remediation, before: Mapping[str, str] | None = None) -> str:
    return TencentNetworkRemediator(session).change(mend, before or {}).native_id


def a_new_top(rig: TencentNetworkRig) -> Callable[[], None]:
    """Somebody puts a rule above all others: what was at 1 is at 2."""

    def put() -> None:
        rules = list(group_of(rig).rules)
        place(rig, [replace(rules[0], ports=((9, 9),)), *rules])

    return put


def test_a_list_that_moves_between_look_and_change_is_refused_by_the_cloud(
    rig: TencentNetworkRig, session: Watched
) -> None:
    """Without the version the rule that has come to this place would be deleted."""
    session.first["DeleteSecurityGroupPolicies"] = a_new_top(rig)
    with pytest.raises(RefusedError, match="VersionMismatch"):
        change(session, about(rig, K.REVOKE_RULE), image(rig))
    assert rules_of(rig) == [(WORLD_V4, "9"), (WORLD_V4, "22"), (WORLD_V4, "8888"), ("::/0", "8888")]
    ((_, asked),) = session.sent
    assert asked["SecurityGroupPolicySet"] == {"Version": "7", "Ingress": [{"PolicyIndex": 1}]}


def test_a_place_without_a_version_means_nothing(rig: TencentNetworkRig, session: Watched) -> None:
    for version in ("", "6"):
        with pytest.raises(RefusedError, match="version"):
            change(session, about(rig, K.REVOKE_RULE, version=version))
    assert session.sent == []


def test_a_rule_that_is_not_the_one_of_the_image_is_left_alone(rig: TencentNetworkRig, session: Watched) -> None:
    with pytest.raises(RefusedError, match="changed since"):
        change(session, about(rig, K.REVOKE_RULE), image(rig, 0))
    assert session.sent == []


def test_one_network_takes_the_place_in_one_request(rig: TencentNetworkRig, session: Watched) -> None:
    made = change(session, about(rig, K.NARROW_RULE, peers=OFFICE), image(rig))
    assert [action for action, _ in session.sent] == ["ReplaceSecurityGroupPolicy"]
    assert (made, rules_of(rig)[1]) == ("1", (OFFICE, "8888"))


def test_of_several_networks_the_wide_rule_becomes_the_last(rig: TencentNetworkRig, session: Watched) -> None:
    """Until the second request nobody has lost a way in."""
    between: list[list[tuple[str, str]]] = []
    session.first["ReplaceSecurityGroupPolicy"] = lambda: between.append(rules_of(rig))
    made = change(session, about(rig, K.NARROW_RULE, peers=f"{OFFICE},{VPN},{HOME}"), image(rig))
    assert [action for action, _ in session.sent] == ["CreateSecurityGroupPolicies", "ReplaceSecurityGroupPolicy"]
    assert [asked["SecurityGroupPolicySet"]["Version"] for _, asked in session.sent] == ["7", "8"]
    assert (WORLD_V4, "8888") in between[0]
    assert made == "1,2,3"
    assert rules_of(rig)[1:4] == [(OFFICE, "8888"), (VPN, "8888"), (HOME, "8888")]


@pytest.mark.parametrize("when", ["DescribeSecurityGroupPolicies", "ReplaceSecurityGroupPolicy"])
def test_half_of_a_narrowing_is_no_refusal(rig: TencentNetworkRig, session: Watched, when: str) -> None:
    """Something was put in, so whoever hears of it has to look."""
    move = a_new_top(rig)
    session.first["CreateSecurityGroupPolicies"] = lambda: session.first.update({when: move})
    with pytest.raises(OutcomeUnknownError, match="narrower rules were put in"):
        change(session, about(rig, K.NARROW_RULE, peers=f"{OFFICE},{VPN}"), image(rig))
    assert {(OFFICE, "8888"), (WORLD_V4, "8888")} <= set(rules_of(rig))
    assert (VPN, "8888") not in rules_of(rig)


@pytest.mark.parametrize("peers", ["2001:db8::/32", "10.0.0.0/8,::/0", "somewhere"])
def test_narrowing_lets_in_nobody_new(rig: TencentNetworkRig, session: Watched, peers: str) -> None:
    with pytest.raises(RefusedError, match=r"does not let in|not appear to be"):
        change(session, about(rig, K.NARROW_RULE, peers=peers), image(rig))
    assert session.sent == []


def test_a_denial_is_neither_revoked_nor_narrowed(rig: TencentNetworkRig, session: Watched) -> None:
    """Below it stands a rule that lets in."""
    for kind in (K.REVOKE_RULE, K.NARROW_RULE):
        with pytest.raises(RefusedError, match="it denies"):
            change(session, about(rig, kind, name=ORDERED, peers=OFFICE))
    assert session.sent == []


def test_a_rule_by_template_is_left_to_who_keeps_the_template(rig: TencentNetworkRig, session: Watched) -> None:
    """Its image says what it stood for and not by which template: it could not be put back."""
    rules = list(group_of(rig).rules)
    there = rig.truth()
    by_template = in_their_places(
        [to_world(rules[0]), to_world(replace(rules[1], peers=(WORLD_V4, "10.0.0.0/8"))), *to_world(rules[2:])]
    )
    groups = tuple(
        replace(each, rules=to_product(by_template)) if each.ref == group_of(rig).ref else each for each in there.groups
    )
    rig.world.networks.place(to_world(replace(there, groups=groups)))
    for kind in (K.REVOKE_RULE, K.NARROW_RULE):
        with pytest.raises(RefusedError, match="template"):
            change(session, about(rig, kind, peers=OFFICE), image(rig))
    assert session.sent == []


def test_what_was_revoked_comes_back_to_its_place_or_to_the_end(rig: TencentNetworkRig, session: Watched) -> None:
    for number in (0, 2):
        rig.reset()
        session.sent.clear()
        there, before = rules_of(rig), image(rig, number)
        change(session, about(rig, K.REVOKE_RULE, number), before)
        made = change(session, Remediation(K.RESTORE_RULE, group_of(rig).ref, {"rule": before["rule"]}))
        assert (made, rules_of(rig)) == (str(number), there)
        _, asked = session.sent[-1]
        assert ("PolicyIndex" in asked["SecurityGroupPolicySet"]["Ingress"][0]) is (number == 0)


def test_half_of_an_undo_is_no_refusal(rig: TencentNetworkRig, session: Watched) -> None:
    before = image(rig)
    made = change(session, about(rig, K.NARROW_RULE, peers=f"{OFFICE},{VPN}"), before)
    session.first["DeleteSecurityGroupPolicies"] = a_new_top(rig)
    back = {"rule": before["rule"], "instead_of": made, "peers": f"{OFFICE},{VPN}"}
    with pytest.raises(OutcomeUnknownError, match="the rule is back"):
        change(session, Remediation(K.RESTORE_RULE, group_of(rig).ref, back))
    assert {(WORLD_V4, "8888"), (VPN, "8888")} <= set(rules_of(rig))


@pytest.mark.parametrize(
    "said",
    [
        {"rule": "{}"},
        {"rule": ""},
        {"instead_of": "77"},
        {"instead_of": "one"},
        {"instead_of": "2"},  # for the whole of IPv6: nothing that stood for it
    ],
    ids=["no rule", "nothing", "a place that is not there", "no place", "somebody else's rule"],
)
def test_an_undo_that_does_not_fit_changes_nothing(
    rig: TencentNetworkRig, session: Watched, said: dict[str, str]
) -> None:
    before = image(rig)
    change(session, about(rig, K.REVOKE_RULE), before)
    there = rules_of(rig)
    session.sent.clear()
    with pytest.raises((RefusedError, NotFoundError)):
        change(session, Remediation(K.RESTORE_RULE, group_of(rig).ref, {"rule": before["rule"], **said}))
    assert (rules_of(rig), session.sent) == (there, [])


def address(rig: TencentNetworkRig, kind: RemediationKind, name: str = NOTEBOOK, **more: str) -> Remediation:
    found = rig.world.networks.address(to_world(rig.ref("address", name)))
    said = {"ip": found.ip, "bound_to": str(rig.ref("instance", NOTEBOOK)), "private_ip": "10.20.1.10", **more}
    return Remediation(kind, to_product(found.ref), said)


def test_an_address_that_goes_with_its_binding_is_not_taken_off(rig: TencentNetworkRig, session: Watched) -> None:
    """CascadeRelease: it would be given up for good, and nobody was asked that."""
    rig.emulator.network_desk.cascades.add(rig.ref("address", NOTEBOOK).native_id)
    with pytest.raises(RefusedError, match="released with that"):
        change(session, address(rig, K.DETACH_ADDRESS))
    assert session.sent == []


def test_an_address_of_a_term_or_a_package_is_not_released(rig: TencentNetworkRig, session: Watched) -> None:
    for prepaid, why in ((True, "paid for in advance"), (False, "package against attacks")):
        rig.reset()
        there = rig.truth()
        kept = tuple(
            replace(each, is_prepaid=prepaid, is_service_managed=not prepaid)
            if each.ref == rig.ref("address", SPARE)
            else each
            for each in there.addresses
        )
        rig.world.networks.place(to_world(replace(there, addresses=kept)))
        with pytest.raises(RefusedError, match=why):
            change(session, address(rig, K.RELEASE_ADDRESS, SPARE))
    assert session.sent == []


def test_an_address_in_use_is_not_even_asked_to_be_released(rig: TencentNetworkRig, session: Watched) -> None:
    with pytest.raises(RefusedError, match="it is in_use"):
        change(session, address(rig, K.RELEASE_ADDRESS))
    assert session.sent == []


def test_a_protected_address_is_refused_by_the_cloud(rig: TencentNetworkRig, session: Watched) -> None:
    there = rig.truth()
    kept = tuple(replace(each, protected_by=("deletion_protection",)) for each in there.addresses)
    rig.world.networks.place(to_world(replace(there, addresses=kept)))
    with pytest.raises(RefusedError, match="AddressDeletionProtectionEnabled"):
        change(session, address(rig, K.RELEASE_ADDRESS, SPARE))
    assert rig.ref("address", SPARE) in {each.ref for each in rig.truth().addresses}


def test_an_address_goes_back_by_the_machine_or_to_a_further_address_by_the_card(
    rig: TencentNetworkRig, session: Watched
) -> None:
    first = address(rig, K.DETACH_ADDRESS)
    change(session, first)
    change(session, replace(first, kind=K.ATTACH_ADDRESS))
    assert session.sent[-1][1].keys() == {"AddressId", "InstanceId"}
    there, card = rig.truth(), rig.ref("interface", TRAINER)
    cards = tuple(
        replace(each, private_ips=("10.20.2.10", "10.20.2.11")) if each.ref == card else each
        for each in there.interfaces
    )
    rig.world.networks.place(to_world(replace(there, interfaces=cards)))
    further = {"bound_to": str(rig.ref("instance", TRAINER)), "private_ip": "10.20.2.11"}
    change(session, address(rig, K.ATTACH_ADDRESS, SPARE, **further))
    assert session.sent[-1][1]["NetworkInterfaceId"] == card.native_id
    assert ("10.20.2.11", "203.0.113.30") in {
        pair for each in rig.truth().interfaces if each.ref == card for pair in each.public_ips
    }


@pytest.mark.parametrize(
    ("more", "error"),
    [
        ({"private_ip": "10.20.9.9"}, NotFoundError),
        ({"bound_to": "nothing"}, RefusedError),
        ({"bound_to": "tencent:100012345678:ap-guangzhou:instance:ins-0000"}, NotFoundError),
        ({"bound_to": "tencent:100012345678:ap-guangzhou:nat_gateway:nat-0000"}, RefusedError),
        ({}, RefusedError),
    ],
    ids=["an address that is gone", "no name", "no such machine", "a gateway", "an address in use"],
)
def test_where_an_address_cannot_go_it_is_not_sent(
    rig: TencentNetworkRig, session: Watched, more: dict[str, str], error: type[ProviderError]
) -> None:
    with pytest.raises(error):
        change(session, address(rig, K.ATTACH_ADDRESS, SPARE, **more))
    assert session.sent == []


def test_flow_logs_are_begun_for_cards_and_said_not_to_be_for_a_vpc(rig: TencentNetworkRig, session: Watched) -> None:
    to = dict(rig.flow_logs)
    for kind, name in (("vpc", TRAINING), ("subnet", DEFAULT)):
        with pytest.raises(RefusedError, match="CreateFlowLog takes no VPC and no subnet"):
            change(session, Remediation(K.ENABLE_FLOW_LOGS, rig.ref(kind, name), to))
    with pytest.raises(RefusedError, match="topic"):
        change(session, Remediation(K.ENABLE_FLOW_LOGS, rig.ref("interface", TRAINER)))
    assert session.sent == []


def test_a_card_without_a_machine_has_no_flow_log_and_says_so(rig: TencentNetworkRig, session: Watched) -> None:
    there, card = rig.truth(), rig.ref("interface", TRAINER)
    cards = tuple(replace(each, instance=None) if each.ref == card else each for each in there.interfaces)
    rig.world.networks.place(to_world(replace(there, interfaces=cards)))
    with pytest.raises(RefusedError, match="FlowLogsNotSupportNullInstanceEni"):
        change(session, Remediation(K.ENABLE_FLOW_LOGS, card, dict(rig.flow_logs)))


def test_a_flow_log_of_something_else_is_not_ended(rig: TencentNetworkRig, session: Watched) -> None:
    log = rig.ref("flow_log", "flows").native_id
    with pytest.raises(RefusedError, match="of something else"):
        change(session, Remediation(K.REMOVE_FLOW_LOGS, rig.ref("interface", TRAINER), {"flow_log": log}))
    assert session.sent == []


@pytest.mark.parametrize("kind", [K.REQUIRE_IMDSV2, K.ALLOW_IMDSV1])
def test_metadata_has_no_setting_to_change(rig: TencentNetworkRig, session: Watched, kind: RemediationKind) -> None:
    with pytest.raises(RefusedError, match="documents no setting"):
        change(session, Remediation(kind, rig.ref("instance", NOTEBOOK)))
    assert session.sent == []


def test_a_flow_log_whose_answer_was_lost_is_not_begun_twice(rig: TencentNetworkRig, session: Watched) -> None:
    rig.emulator.faults.add(Fault(FaultKind.LOST_ANSWER, "CreateFlowLog"))
    with pytest.raises(OutcomeUnknownError):
        change(session, Remediation(K.ENABLE_FLOW_LOGS, rig.ref("interface", TRAINER), dict(rig.flow_logs)))
    assert len(rig.truth().flow_logs) == 2
    assert [action for action, _ in session.sent] == ["CreateFlowLog"], "once"
