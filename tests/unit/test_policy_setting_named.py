"""Functions know their policy from the environment alone, so what is wrong with it names the setting."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.builders import NOW

from cloudstand.clock import MovedClock
from costguard.bootstrap import run_function
from costguard.domain.errors import CostguardError, InvalidInputError, UnavailableError
from costguard.settings import load_settings


@pytest.mark.parametrize(
    ("named", "kind", "says"),
    [
        ("nowhere", InvalidInputError, "no such file or folder; give the path of a policy"),
        ("empty", InvalidInputError, "a policy folder holds costguard.yaml"),
        ("wrong.yaml", InvalidInputError, "did you mean mode?"),
        ("wrong.yaml/below", UnavailableError, "cannot be read: Not a directory"),
    ],
)
def test_a_function_says_which_setting_named_no_policy(
    tmp_path: Path, named: str, kind: type[CostguardError], says: str
) -> None:
    """`costguard invoke` has no --policy that its error could speak of."""
    (tmp_path / "empty").mkdir()
    (tmp_path / "wrong.yaml").write_text("version: 1\nmod: observe\nidle_gpu: [{name: a}]\n", encoding="utf-8")
    settings = load_settings({"COSTGUARD_POLICY": str(tmp_path / named), "COSTGUARD_LEDGER": "memory:"})

    with pytest.raises(kind) as caught:
        run_function("idle_gpu", "run-1", None, settings, MovedClock(NOW))

    assert str(caught.value).startswith("COSTGUARD_POLICY: ")
    assert says in str(caught.value)
