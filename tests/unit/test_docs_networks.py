"""docs/networks.md shows the catalogue that findings, JSON and SARIF are made from."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from costguard.guards.network.rules import NetworkCheck
from costguard.report.network.catalogue import BENCHMARKS, CATALOGUE, catalogue_page, known_entry
from costguard.report.words.sentences import Language

PAGE = Path(__file__).parents[2] / "docs" / "networks.md"
BEGINS, ENDS = "<!-- catalogue -->\n", "<!-- end of catalogue -->\n"
PROVIDERS = {"aws", "alibaba", "tencent"}


@pytest.mark.release
def test_the_page_shows_the_catalogue_as_the_code_has_it() -> None:
    """Where this fails: put what it expects between the two marks of the page."""
    shown = PAGE.read_text(encoding="utf-8").partition(BEGINS)[2].partition(ENDS)[0]
    written = "\n" + "".join(f"{line}\n" for line in catalogue_page()) + "\n"
    assert shown == written, json.dumps(written)


def test_every_check_is_in_the_catalogue_once_with_an_id_of_its_own() -> None:
    assert {entry.check for entry in CATALOGUE} == set(NetworkCheck)
    ids = [entry.check_id for entry in CATALOGUE]
    assert ids == sorted(set(ids))
    assert all(re.fullmatch(r"CG-NET-[0-9]{3}", each) for each in ids)


def test_ids_are_lasting() -> None:
    """A number that people filter by is never given to another check."""
    assert {entry.check_id: entry.check.value for entry in CATALOGUE} == {
        "CG-NET-001": "public_ip",
        "CG-NET-002": "open_admin_port",
        "CG-NET-003": "wide_rule",
        "CG-NET-004": "unattached_public_address",
        "CG-NET-005": "idle_nat_gateway",
        "CG-NET-006": "default_vpc",
        "CG-NET-007": "flow_logs_off",
        "CG-NET-008": "private_subnet_exposed",
        "CG-NET-009": "imds_v1",
        "CG-NET-010": "wide_peering",
        "CG-NET-011": "region_not_allowed",
        "CG-NET-012": "unused_security_group",
        "CG-NET-013": "idle_public_address",
    }


def test_every_entry_says_what_is_wrong_why_and_what_to_do_in_every_language() -> None:
    for entry in CATALOGUE:
        for said in (entry.title, entry.why, entry.remedy):
            texts = [said(language) for language in Language]
            assert len(set(texts)) == len(texts), entry.check_id
            assert all(text.strip() and "|" not in text and "\n" not in text for text in texts), entry.check_id
        assert entry.remedy(Language.EN).endswith(".")
        assert entry.remedy(Language.ZH).endswith("。")


def test_other_catalogues_are_named_by_provider_and_in_their_own_form() -> None:
    for entry in CATALOGUE:
        assert set(entry.cis) <= set(BENCHMARKS), entry.check_id
        assert set(entry.prowler) <= PROVIDERS, entry.check_id
        assert all(re.fullmatch(r"[0-9](\.[0-9]+)+", number) for each in entry.cis.values() for number in each)
        assert all(re.fullmatch(r"[a-z0-9_]+", name) for each in entry.prowler.values() for name in each)
        assert all(list(each) == sorted(each) for each in entry.prowler.values()), entry.check_id


def test_a_check_of_no_catalogue_has_no_entry() -> None:
    assert known_entry("rotation") is None
