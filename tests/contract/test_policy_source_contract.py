"""What every policy source promises, on each adapter: all files, whole, in order, or an error that says why."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from pathlib import Path

import pytest
from tests.git_rig import ENVIRONMENT, Repository

from costguard.adapters.policy_sources.files import FilePolicySource, git_address
from costguard.adapters.policy_sources.git import GitPolicySource
from costguard.adapters.policy_sources.git_program import GitProgram
from costguard.domain.errors import InvalidInputError, UnavailableError
from costguard.policy.documents.loader import load_policy
from costguard.ports import PolicySource

MAIN = b"version: 1\nidle_gpu: [{name: research}]\n"
Stored = Mapping[str, bytes]
Adapter = Callable[[Path, Stored], PolicySource]


def folder(root: Path, stored: Stored) -> FilePolicySource:
    for name, raw in stored.items():
        path = root / "policy" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(raw)
    return FilePolicySource(root / "policy")


def commit(root: Path, stored: Stored) -> GitPolicySource:
    """In a folder of a repository without a work tree."""
    repository = Repository.made(root / "repository")
    repository.commit({f"policy/{name}": raw for name, raw in stored.items()})
    git = GitProgram(ENVIRONMENT, repository.folder)
    return GitPolicySource(git_address("git:main:policy"), lambda: nullcontext((git, "main")))


ADAPTERS: dict[str, Adapter] = {"folder": folder, "commit": commit}


@pytest.fixture(params=ADAPTERS)
def adapter(request: pytest.FixtureRequest) -> Adapter:
    return ADAPTERS[request.param]


def test_all_files_are_read_in_the_order_of_their_paths(adapter: Adapter, tmp_path: Path) -> None:
    stored = {
        "policies/team/b.yaml": b"idle_gpu: [{name: b}]\n",
        "owners.yaml": b"[]\n",
        "costguard.yaml": MAIN,
        "policies/a.yml": b"idle_gpu: [{name: a}]\n",
        "exceptions.yaml": b"[]\n",
    }

    text = adapter(tmp_path, stored).read()

    assert list(text.files) == sorted(stored)
    assert {name: content.encode() for name, content in text.files.items()} == stored
    assert [rule.name for rule in load_policy(text).idle_gpu] == ["a", "b", "research"]


def test_the_revision_follows_the_content(adapter: Adapter, tmp_path: Path) -> None:
    first = adapter(tmp_path / "1", {"costguard.yaml": MAIN}).read().revision
    same = adapter(tmp_path / "2", {"costguard.yaml": MAIN}).read().revision
    changed = adapter(tmp_path / "3", {"costguard.yaml": MAIN + b"\n"}).read().revision
    moved = adapter(tmp_path / "4", {"costguard.yaml": MAIN, "owners.yaml": b""}).read().revision

    assert first == same
    assert len({first, changed, moved}) == 3


def test_what_is_no_part_of_a_policy_is_left_alone(adapter: Adapter, tmp_path: Path) -> None:
    stored = {
        "costguard.yaml": MAIN,
        "README.md": b"\xff\xfe",
        ".hidden.yaml": b"\xff",
        ".github/workflows/check.yaml": b"on: push\n",
        "terraform/values.yaml": b"a: b\n",
        "policies/README": b"\xff",
    }

    assert list(adapter(tmp_path, stored).read().files) == ["costguard.yaml"]


def test_a_byte_order_mark_is_no_part_of_the_text(adapter: Adapter, tmp_path: Path) -> None:
    text = adapter(tmp_path, {"costguard.yaml": b"\xef\xbb\xbf" + MAIN}).read()

    assert text.files["costguard.yaml"] == MAIN.decode()


@pytest.mark.parametrize(
    ("raw", "says"),
    [
        (b"version: 1\nmode: \xff\n", "costguard.yaml:2:7: byte 0xFF is not UTF-8"),
        (
            b"\xef\xbb\xbfversion: 1\r\n# \xe4\xb8\xad\xe6\x96\x87 \xc3(\r\n",
            "costguard.yaml:2:6: byte 0xC3 is not UTF-8",
        ),
        ("version: 1".encode("utf-16"), "costguard.yaml:1:1: the file is UTF-16"),
        (b"# filler\n" * 8_000, "costguard.yaml:1:1: the file is longer than 64 KiB"),
    ],
    ids=["not utf-8", "not utf-8 behind a mark", "utf-16", "too long"],
)
def test_a_file_that_is_no_text_is_an_error(adapter: Adapter, tmp_path: Path, raw: bytes, says: str) -> None:
    with pytest.raises(InvalidInputError) as raised:
        adapter(tmp_path, {"costguard.yaml": raw}).read()

    assert says in str(raised.value)
    assert "fix: " in str(raised.value)


def test_nothing_there_is_an_error_never_an_empty_policy(adapter: Adapter, tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match="no policy here"):
        adapter(tmp_path, {"README.md": b"later"}).read()


@pytest.mark.parametrize("name", ["policy", "Policies", "polices"])
def test_a_folder_called_almost_policies_is_not_passed_over(adapter: Adapter, tmp_path: Path, name: str) -> None:
    source = adapter(tmp_path, {"costguard.yaml": MAIN, f"{name}/a.yaml": b"idle_gpu: [{name: a}]\n"})

    with pytest.raises(InvalidInputError, match="read from policies/ only"):
        source.read()


def test_one_file_is_a_policy(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_bytes(MAIN)

    text = FilePolicySource(path).read()

    assert dict(text.files) == {"mine.yaml": MAIN.decode()}
    assert text.origin == str(path)
    assert load_policy(text).rule("research") is not None


def test_an_error_names_the_file_so_that_it_can_be_opened(tmp_path: Path) -> None:
    source = folder(tmp_path, {"costguard.yaml": MAIN, "policies/a.yaml": b"idle_gpu: [{nam: a}]\n"})

    with pytest.raises(InvalidInputError) as raised:
        load_policy(source.read())

    assert f"{tmp_path}/policy/policies/a.yaml:1:13: idle_gpu[0].nam: unknown key" in str(raised.value)


def test_a_path_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match=r"nowhere: no such file or folder"):
        FilePolicySource(tmp_path / "nowhere").read()


def test_links_inside_the_folder_are_followed_as_a_mounted_config_map_needs(tmp_path: Path) -> None:
    folder(tmp_path, {"..2026_11_02/costguard.yaml": MAIN})
    (tmp_path / "policy" / "..data").symlink_to("..2026_11_02")
    (tmp_path / "policy" / "costguard.yaml").symlink_to("..data/costguard.yaml")

    assert list(FilePolicySource(tmp_path / "policy").read().files) == ["costguard.yaml"]


def test_a_link_out_of_the_folder_is_refused(tmp_path: Path) -> None:
    source = folder(tmp_path, {"costguard.yaml": MAIN})
    (tmp_path / "secret.yaml").write_text("password: x\n", encoding="utf-8")
    (tmp_path / "policy" / "owners.yaml").symlink_to(tmp_path / "secret.yaml")

    with pytest.raises(InvalidInputError, match="leads out of the policy"):
        source.read()


@pytest.mark.parametrize("target", ["nowhere.yaml", "owners.yaml"], ids=["broken", "loop"])
def test_a_link_to_nowhere_is_refused(tmp_path: Path, target: str) -> None:
    source = folder(tmp_path, {"costguard.yaml": MAIN})
    (tmp_path / "policy" / "owners.yaml").symlink_to(target)

    with pytest.raises(InvalidInputError, match="leads nowhere"):
        source.read()


def test_a_linked_folder_of_rules_is_refused(tmp_path: Path) -> None:
    source = folder(tmp_path, {"costguard.yaml": MAIN})
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "policy" / "policies").symlink_to(tmp_path / "elsewhere")

    with pytest.raises(InvalidInputError, match="may not be a link"):
        source.read()


def test_what_is_no_ordinary_file_is_never_waited_for(tmp_path: Path) -> None:
    source = folder(tmp_path, {"costguard.yaml": MAIN})
    os.mkfifo(tmp_path / "policy" / "owners.yaml")

    with pytest.raises(InvalidInputError, match="not an ordinary file"):
        source.read()


def test_a_file_system_that_refuses_is_unavailable_not_invalid(tmp_path: Path) -> None:
    """A path that runs through a file, and so cannot be listed, is no mistake in the policy."""
    (tmp_path / "file").write_bytes(MAIN)

    with pytest.raises(UnavailableError) as raised:
        FilePolicySource(tmp_path / "file" / "costguard.yaml").read()

    assert raised.value.code == "NotADirectoryError"


def test_the_revision_is_a_sha256() -> None:
    assert len(FilePolicySource(Path(__file__).parents[2] / "infra" / "config-repo").read().revision) == len(
        hashlib.sha256().hexdigest()
    )
