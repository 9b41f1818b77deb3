"""Who may answer, as the policy writes it."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.builders import NOW, instance, usd

from costguard.domain.errors import InvalidInputError
from costguard.domain.resources import Launch
from costguard.policy.diff.idle import loosens
from costguard.policy.documents.loader import load_policy
from costguard.policy.model.ownership import owner_name
from costguard.policy.model.policy import AnswerTerms, Policy
from costguard.policy.remarks import remarks
from costguard.ports import PolicyText

HEAD = "version: 1\nidle_gpu: [{name: research}]\n"
ANSWERS = "{slack_team: T0123ABCD, approvers: [U0123ABCD, W0456EFGH], two_approvers_above: [20 USD]}"


def load(main: str = "", owners: str = "") -> Policy:
    files = {"costguard.yaml": HEAD + main, **({"owners.yaml": owners} if owners else {})}
    return load_policy(PolicyText(files, "r"))


def notify(answers: str) -> str:
    return f'notify: {{default: "slack:#a", answers: {answers}}}\n'


def test_the_terms_are_read_whole() -> None:
    assert load(notify(ANSWERS)).answers == AnswerTerms("T0123ABCD", ("U0123ABCD", "W0456EFGH"), (usd("20"),))
    assert load(notify("{slack_team: T0123ABCD}")).answers == AnswerTerms("T0123ABCD")
    assert load().answers == AnswerTerms()


def test_who_may_answer_is_part_of_the_policys_digest_and_of_no_rules() -> None:
    """A loosening restarts no wait, and is another policy all the same."""
    one, other = load(notify(ANSWERS)), load(notify("{slack_team: T0123ABCD, approvers: [U0123ABCD]}"))
    people = [
        load(owners=f"- {{name: nlp, owns: {{tags: {{team: nlp}}}}, people: [{who}]}}\n")
        for who in ("U0AB1234", "U0CD1234")
    ]

    assert len({one.digest, other.digest, load().digest}) == 3
    assert people[0].digest != people[1].digest
    assert one.idle_gpu == other.idle_gpu
    assert not loosens(one.idle_gpu[0], other.idle_gpu[0])


def test_an_owner_has_people_and_what_its_users_launched() -> None:
    (owner,) = load(owners="- {name: speech, people: [U0AB1234], cloud_users: [role/speech-*/*, alice]}\n").owners
    policy = replace(load(), owners=(owner,))

    assert (owner.people, owner.cloud_users) == (("U0AB1234",), ("role/speech-*/*", "alice"))
    assert owner_name(instance(tags={}), policy) == ""  # without owns it has nothing by itself
    assert owner_name(instance(tags={}), policy, launch=Launch("user/alice", NOW, "e")) == "speech"


@pytest.mark.parametrize(
    ("text", "where", "says"),
    [
        (notify("{}"), "3:40", "add slack_team: T0123ABCD"),
        (notify("{slack_team: acme}"), "3:53", "'acme' is not the id of a Slack workspace"),
        (notify("{slack_team: T0123ABCD, approvers: []}"), "3:75", "an empty list matches nothing"),
        (notify('{slack_team: T0123ABCD, approvers: ["@vision"]}'), "3:76", "is no id of a person in Slack"),
        (notify("{slack_team: T0123ABCD, approvers: [S0123ABCD]}"), "3:76", "the id of a group or channel"),
        (notify("{slack_team: T0123ABCD, approvers: [U0123ABCD, U0123ABCD]}"), "3:87", "is there twice"),
        (notify("{slack_team: T0123ABCD, aprovers: [U0123ABCD]}"), "3:64", "did you mean approvers?"),
        (
            notify("{slack_team: T0123ABCD, approvers: [U0123ABCD], two_approvers_above: [20 USD]}"),
            "3:88",
            "fewer than two approvers",
        ),
        (
            notify("{slack_team: T0123ABCD, approvers: [U0123ABCD, U0456EFGH], two_approvers_above: [20]}"),
            "3:",
            "fix: write 20 USD",
        ),
        ("owners: [{name: nlp}]\n", "3:10", "neither owns nor cloud_users"),
        ("owners: [{name: nlp, cloud_users: ['']}]\n", "3:36", "is not who launched something"),
        ("owners: [{name: nlp, owns: {tags: {a: b}}, people: [nlp]}]\n", "3:53", "is no id of a person"),
    ],
)
def test_a_mistake_is_told_with_its_place(text: str, where: str, says: str) -> None:
    with pytest.raises(InvalidInputError) as told:
        load(text)
    assert f"costguard.yaml:{where}" in str(told.value)
    assert says in str(told.value)


def test_people_whose_clicks_nobody_takes_are_remarked() -> None:
    owners = "- {name: nlp, owns: {tags: {team: nlp}}, people: [U0AB1234]}\n"
    said = [remark.message for remark in remarks(load(owners=owners), NOW)]
    assert any("nobody's clicks count" in message for message in said)
    assert not any("clicks" in remark.message for remark in remarks(load(notify(ANSWERS), owners), NOW))
