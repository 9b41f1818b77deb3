"""The stand-in for a Terraform provider, called as Terraform calls it, without the socket between them."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from tests.infra.stand_in.changes import same
from tests.infra.stand_in.messages import ANSWERS, REQUESTS
from tests.infra.stand_in.provider import Provider
from tests.infra.stand_in.schema import published
from tests.infra.stand_in.values import UNKNOWN, decoded, encoded, from_json
from tests.infra.stand_in.wire import Part, Shape, WireError, packed, unpacked

Answer = dict[str, Any]


def _ask(provider: str, call: str, *, answers: Path | None = None, **said: Any) -> Answer:
    """One call; values are sent as Terraform sends them."""
    request = {
        name: {"msgpack": encoded(value)} if name.endswith(("state", "config")) else value
        for name, value in said.items()
        if name != "raw_state"
    }
    if "raw_state" in said:
        request["raw_state"] = {"json": json.dumps(said["raw_state"]).encode()}
    handler = Provider(published(provider), answers).handlers()[f"/tfplugin5.Provider/{call}"]
    answer = unpacked(ANSWERS[call], handler(packed(REQUESTS[call], request)))
    return {
        name: decoded(value["msgpack"]) if isinstance(value, dict) and value.get("msgpack") else value
        for name, value in answer.items()
    }


def _config(provider: str, kind: str, **given: Any) -> Answer:
    """A whole configuration, as Terraform makes it of what is written."""
    fields = published(provider).resources[kind].fields
    return {name: given.get(name, [] if field.is_block else None) for name, field in fields.items()}


def _planned(provider: str, kind: str, prior: Answer | None, **given: Any) -> Answer:
    config = _config(provider, kind, **given)
    proposed = {
        name: prior[name] if prior is not None and value is None and name not in given else value
        for name, value in config.items()
    }
    return _ask(
        provider, "PlanResourceChange", type_name=kind, prior_state=prior, proposed_new_state=proposed, config=config
    )


def _made(provider: str, kind: str, *, answers: Path | None = None, **given: Any) -> Answer:
    plan = _planned(provider, kind, None, **given)
    applied = _ask(
        provider,
        "ApplyResourceChange",
        answers=answers,
        type_name=kind,
        prior_state=None,
        planned_state=plan["planned_state"],
        config=_config(provider, kind, **given),
    )
    assert applied["diagnostics"] == [], applied
    state: Answer = applied["new_state"]
    return state


def test_what_the_cloud_fills_in_is_unknown_until_it_is_made_and_then_stays() -> None:
    given: Answer = {"role_name": "guard", "assume_role_policy_document": "{}"}
    plan = _planned("alicloud", "alicloud_ram_role", None, **given)["planned_state"]
    assert (plan["arn"], plan["id"], plan["role_name"]) == (UNKNOWN, UNKNOWN, "guard")
    made = _made("alicloud", "alicloud_ram_role", **given)
    assert (made["arn"], made["id"]) == ("acs:ram::1234567890123456:role/guard", "guard")
    assert made == _made("alicloud", "alicloud_ram_role", **given)
    again = _planned("alicloud", "alicloud_ram_role", made, **given)
    assert same(again["planned_state"], made)
    assert again["requires_replace"] == []


def test_published_defaults_stand_in_the_plan() -> None:
    plan = _planned("tencentcloud", "tencentcloud_scf_function", None, name="guard")["planned_state"]
    assert (plan["mem_size"], plan["timeout"], plan["namespace"]) == (128, 3, "default")


def test_only_what_the_source_cannot_change_in_place_makes_a_resource_anew() -> None:
    kind = "tencentcloud_scf_function"
    made = _made("tencentcloud", kind, name="guard", description="one")
    assert _planned("tencentcloud", kind, made, name="guard", description="two")["requires_replace"] == []
    renamed = _planned("tencentcloud", kind, made, name="other", description="one")["requires_replace"]
    assert [path["steps"][0]["attribute_name"] for path in renamed] == ["name"]


def test_what_a_state_of_old_does_not_tell_is_no_change_by_itself() -> None:
    kind = "tencentcloud_security_group_rule_set"
    rule = {"action": "DROP", "policy_index": None, "port": "ALL"}
    made = {**_made("tencentcloud", kind, security_group_id="sg-1"), "ingress": [rule]}
    again = _planned("tencentcloud", kind, made, security_group_id="sg-1", ingress=[rule])["planned_state"]
    assert same(again["ingress"], [rule])
    opened = _planned("tencentcloud", kind, made, security_group_id="sg-1", ingress=[{**rule, "port": "22"}])
    assert opened["planned_state"]["ingress"][0]["policy_index"] is UNKNOWN


def test_what_protects_itself_is_not_deleted_and_anything_else_is() -> None:
    kind = "tencentcloud_postgresql_instance"
    for protected in (True, False):
        state = _config("tencentcloud", kind, name="ledger", delete_protection=protected)
        asked: Answer = {"type_name": kind, "prior_state": state, "planned_state": None, "config": None}
        answer = _ask("tencentcloud", "ApplyResourceChange", **asked)
        assert bool(answer["diagnostics"]) is protected
        assert (answer["new_state"] is not None) is protected


def test_answers_of_a_file_go_before_what_is_made_up(tmp_path: Path) -> None:
    file = tmp_path / "answers.json"
    file.write_text(json.dumps({"alicloud_db_instance": {"connection_string": "here", "port": 15432}}), "utf-8")
    made = _made("alicloud", "alicloud_db_instance", answers=file, instance_name="ledger", engine="PostgreSQL")
    assert (made["connection_string"], made["port"], made["id"][:7]) == ("here", "15432", "pgm-bp1")
    file.write_text(json.dumps({"alicloud_db_instance.other": {"port": "1"}}), "utf-8")
    named = _made("alicloud", "alicloud_db_instance", answers=file, instance_name="other", engine="PostgreSQL")
    unnamed = _made("alicloud", "alicloud_db_instance", answers=file, instance_name="ledger", engine="PostgreSQL")
    assert (named["port"], unnamed["port"]) == ("1", "5432")


@pytest.mark.parametrize("text", ['{"alicloud_vpc": {"cidr": "x"}}', '{"alicloud_vpc": {"description": "x"}}', "["])
def test_answers_that_no_resource_tells_are_refused_aloud(tmp_path: Path, text: str) -> None:
    file = tmp_path / "answers.json"
    file.write_text(text, "utf-8")
    state = _config("alicloud", "alicloud_vpc", vpc_name="here")
    asked: Answer = {"type_name": "alicloud_vpc", "prior_state": None, "planned_state": state, "config": state}
    answer = _ask("alicloud", "ApplyResourceChange", answers=file, **asked)
    assert "STAND_IN_ANSWERS" in answer["diagnostics"][0]["summary"]


def test_a_state_of_another_edition_is_read_as_todays() -> None:
    raw = {"id": "vpc-1", "vpc_name": "here", "gone": "by now"}
    state = _ask("alicloud", "UpgradeResourceState", type_name="alicloud_vpc", raw_state=raw)["upgraded_state"]
    assert (state["vpc_name"], state["description"], "gone" in state) == ("here", None, False)


def test_values_not_known_yet_are_not_judged() -> None:
    config = _config("alicloud", "alicloud_ram_policy", policy_name="one", policy_document=UNKNOWN)
    asked: Answer = {"type_name": "alicloud_ram_policy", "config": config}
    assert _ask("alicloud", "ValidateResourceTypeConfig", **asked)["diagnostics"] == []


@pytest.mark.parametrize(
    "value",
    [
        None,
        True,
        0,
        127,
        128,
        -1,
        -33,
        65536,
        2**40,
        1.5,
        "",
        "ü" * 300,
        [1] * 20,
        {str(n): n for n in range(20)},
        UNKNOWN,
    ],
)
def test_values_come_back_as_they_went(value: Any) -> None:
    assert decoded(encoded(value)) == value


def test_a_fraction_keeps_its_digits_from_state_to_plan() -> None:
    stored = from_json(b'{"cpu": 0.35}')
    assert decoded(encoded(stored)) == {"cpu": "0.35"}
    assert same("0.35", Decimal("0.35"))
    assert not same("0.35", 0.36)


@pytest.mark.parametrize("data", [b"\xc1", b"\xd9\x05ab", b"\x01\x01", b""])
def test_what_is_no_value_is_refused(data: bytes) -> None:
    with pytest.raises(WireError):
        decoded(data)


def test_fields_of_other_numbers_are_passed_over_and_a_cut_message_is_refused() -> None:
    small: Shape = {"name": Part(1, "text")}
    large: Shape = {**small, "size": Part(2, "count"), "more": Part(7, small, many=True), "on": Part(8, "flag")}
    data = packed(large, {"name": "here", "size": 300, "more": [{"name": ""}, {"name": "x"}], "on": True})
    assert unpacked(small, data) == {"name": "here"}
    assert unpacked(large, data)["more"] == [{"name": ""}, {"name": "x"}]
    with pytest.raises(WireError):
        unpacked(large, data[:-3])
