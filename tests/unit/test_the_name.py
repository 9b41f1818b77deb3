"""`costguard` on the package index is somebody else's: all that says how to install ours names `gpu-costguard`."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path

import pytest
from ruamel.yaml import YAML

from costguard.cli.exits import Exit
from costguard.cli.main import run
from costguard.cli.operate.distribution import DISTRIBUTION, ci_requirements, own_version
from costguard.domain.errors import InvalidInputError

ROOT = Path(__file__).parents[2]
LOCKS = ROOT / "infra" / "requirements"
STARTER = ROOT / "infra" / "config-repo"
MADE = {"__pycache__", ".git", ".venv", ".terraform", ".mypy_cache", ".ruff_cache", ".hypothesis", ".pytest_cache"}
NOT_TEXT = {".png", ".pyc", ".zip", ".db", ".sqlite3"}
ABOUT_IT = (Path(__file__), ROOT / "docs/decisions/the-name.md")  # they show what is wrong
INSTALLS = re.compile(
    r"(?:\bpip[0-9.]* (?:install|download|wheel)|\bpipx (?:install|run)|\buvx"
    r"|\buv (?:pip install|tool (?:install|run)|add)|\bpoetry add|\bpdm add)\b(?P<rest>[^\n|;&`]*)"
)
BARE = re.compile(r"(?:^|[\s'\"=])costguard(?=$|[\s'\",;)]|\[|[=<>~!@]=?)", re.IGNORECASE)
ELSEWHERE = (
    re.compile(r"(?<![\w.-])costguard\[[a-z][a-z,]*\]"),  # an extra
    re.compile(r"^[\s\"'-]*costguard\s*(?:==|>=|<=|~=|!=|@ )", re.MULTILINE),  # a line of requirements
    re.compile(r"pkg:pypi/costguard\b|/(?:project|simple)/costguard\b"),
    re.compile(r"\b(?:version|distribution|metadata|requires|files)\((?P<q>['\"])costguard(?P=q)\)"),
    re.compile(r"^name = \"costguard\"", re.MULTILINE),
)


def texts() -> Iterator[tuple[str, str]]:
    """Every file of the project by its path, but those that are about it and what tools made."""
    for folder, within, names in os.walk(ROOT):
        within[:] = [name for name in within if name not in MADE and not name.startswith((".venv", ".git/"))]
        for name in names:
            path = Path(folder, name)
            if path.suffix not in NOT_TEXT and path not in ABOUT_IT and not path.is_symlink():
                yield path.relative_to(ROOT).as_posix(), path.read_text("utf-8", errors="replace")


def hints_wrong(text: str) -> list[str]:
    """What in a text would install, or name, the other program."""
    joined = re.sub(r"\\\n\s*", " ", text)
    wrong = [found[0].strip() for found in INSTALLS.finditer(joined) if BARE.search(found["rest"])]
    return wrong + [found[0].strip() for pattern in ELSEWHERE for found in pattern.finditer(text)]


def test_every_install_hint_names_our_distribution() -> None:
    """Pages, code, workflows, the starter, Terraform, images, requirements: all of the project is read."""
    read = dict(texts())
    assert {"README.md", "pyproject.toml", ".github/workflows/release.yml", "docs/ledger.md"} <= read.keys()
    assert {f"infra/config-repo/{name}" for name in (".gitlab-ci.yml", ".github/workflows/policy.yml")} <= read.keys()
    assert [(name, wrong) for name, text in read.items() if (wrong := hints_wrong(text))] == []


@pytest.mark.parametrize(
    "hint",
    [
        "pip install costguard",
        "- run: pip install costguard\n",
        "pip3 install --quiet 'costguard[postgres]'",
        "python -m pip install --upgrade \\\n    costguard==0.1.0",
        "pipx install costguard",
        "uvx costguard demo",
        "uvx --from costguard costguard demo",
        "uv tool install costguard",
        'dependencies = [\n  "costguard>=0.1",\n]',
        "costguard==0.1.0 \\\n    --hash=sha256:00\n",
        "Install `costguard[charts]`.",
        "pkg:pypi/costguard@0.1.0",
        'version("costguard")',
    ],
)
def test_a_hint_that_names_the_other_program_is_seen(hint: str) -> None:
    assert hints_wrong(hint)


@pytest.mark.parametrize(
    "hint",
    [
        "pip install gpu-costguard==0.1.0",
        "pip install 'gpu-costguard[postgres]'",
        "pip install -e '.[sandbox]' && .venv/bin/costguard demo",
        "pip install -e .\ncostguard bundle lambda --out build",
        'gpu-costguard==0.1.0\n  "gpu-costguard[sandbox]",',
        "import costguard; costguard.version('gpu-costguard')",
        "uvx --from gpu-costguard==0.1.0",
    ],
)
def test_other_words_are_not(hint: str) -> None:
    assert hints_wrong(hint) == []


def test_where_credentials_are_only_what_is_pinned_and_hashed_is_installed() -> None:
    """Each step of the starter's CI that installs anything: it stands in one job with a cloud's identity."""
    seen = 0
    for path in (
        STARTER / ".github/workflows/policy.yml",
        STARTER / ".github/workflows/publish.yml",
        STARTER / ".gitlab-ci.yml",
    ):
        for line in path.read_text("utf-8").splitlines():
            if re.search(r"\bpip|\buv|\bpipx|\bcurl|\bwget|\bapt|\bnpm", line):
                assert line.strip().removeprefix("- ").removeprefix("run: ") == INSTALL, path
                seen += 1
    assert seen == 4
    assert not [
        path for path in (STARTER / "ci").glob("*.sh") if re.search(r"\bpip|\buvx?\b|\bcurl", path.read_text("utf-8"))
    ]


INSTALL = "pip install --require-hashes -r ci/requirements.txt"


def entries(text: str) -> dict[str, list[str]]:
    """Name and version → hashes."""
    lines = re.sub(r"#.*|\\\n", "", text).splitlines()
    return {line.split(" ")[0]: re.findall(r"--hash=sha256:([0-9a-f]{64})", line) for line in lines if line.strip()}


def test_the_lock_of_ci_pins_and_hashes_all_that_the_project_declares() -> None:
    found = entries((LOCKS / "cli.txt").read_text("utf-8"))
    assert [name for name, hashes in found.items() if not hashes] == []
    project = (ROOT / "pyproject.toml").read_text("utf-8")
    lists = re.findall(r"^(?:dependencies|postgres) = \[\n(.*?)^\]", project, re.MULTILINE | re.DOTALL)
    declared = {
        re.split(r"[\[>=]", item)[0] for part in lists for item in re.findall(r'^  "([^"]+)"', part, re.MULTILINE)
    }
    pinned = {name.partition("==")[0].replace(".", "-") for name in found}
    assert {name.replace(".", "-") for name in declared} - pinned == set()


# the starter's own line, played by pip without a network


def wheel_in(folder: Path, name: str = DISTRIBUTION, version: str = "") -> Path:
    """A wheel that stands for ours: it needs nothing, since the wheels of others are not here."""
    folder.mkdir(parents=True, exist_ok=True)
    stem = f"{name.replace('-', '_')}-{version or own_version()}"
    path, info = folder / f"{stem}-py3-none-any.whl", f"{stem}.dist-info"
    said = {
        "METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version or own_version()}\n",
        "WHEEL": "Wheel-Version: 1.0\nGenerator: x\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        "RECORD": "",
    }
    with zipfile.ZipFile(path, "w") as archive:
        for file, text in said.items():
            archive.writestr(f"{info}/{file}", text)
    return path


def installed(folder: Path, wheels: Path) -> subprocess.CompletedProcess[str]:
    """The step of the starter's workflow, in a repository whose lock holds our own line alone."""
    steps = YAML(typ="safe").load((STARTER / ".github/workflows/publish.yml").read_text("utf-8"))["jobs"]["publish"][
        "steps"
    ]
    (command,) = [step["run"] for step in steps if str(step.get("run", "")).startswith("pip ")]
    lock = folder / "ci" / "requirements.txt"
    lock.write_text(up_to_our_line(lock.read_text("utf-8")), encoding="utf-8")
    offline = {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(wheels), "PIP_TARGET": str(folder / "installed")}
    return subprocess.run(  # noqa: S603 - the starter's own
        [sys.executable, "-m", *command.split()],
        cwd=folder,
        env={"PATH": os.defpath, "PIP_CONFIG_FILE": os.devnull, "PIP_DISABLE_PIP_VERSION_CHECK": "1", **offline},
        capture_output=True,
        text=True,
        check=False,
    )


def up_to_our_line(text: str) -> str:
    """Without the packages of others, which come below it."""
    found = re.search(rf"^{DISTRIBUTION}==.*\n", text, re.MULTILINE)
    assert found
    return text[: found.end()]


def test_the_starters_ci_installs_the_wheel_that_was_hashed_and_no_other(tmp_path: Path) -> None:
    wheels, folder = tmp_path / "wheels", tmp_path / "policy"
    wheel = wheel_in(wheels)
    assert run(["policy", "init", str(folder), "--wheel", str(wheel)]) == Exit.OK
    assert sha256(wheel.read_bytes()).hexdigest() in (folder / "ci/requirements.txt").read_text("utf-8")
    done = installed(folder, wheels)
    assert done.returncode == 0, done.stderr
    assert list((folder / "installed").glob("gpu_costguard-*.dist-info"))

    with zipfile.ZipFile(wheel, "a") as archive:
        archive.writestr("costguard/__init__.py", "raise SystemExit('another')")
    again = installed(folder, wheels)
    assert again.returncode != 0
    assert "DO NOT MATCH THE HASHES" in again.stderr


def test_without_a_hash_ci_installs_nothing_and_the_file_says_what_to_do(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    wheels, folder = tmp_path / "wheels", tmp_path / "policy"
    wheel_in(wheels)
    assert run(["policy", "init", str(folder)]) == Exit.OK
    assert "CI installs nothing until" in capfd.readouterr().out
    said = (folder / "ci/requirements.txt").read_text("utf-8")
    assert f"v{own_version()}" in said
    assert "put its file ci-requirements.txt in the place of this one" in said
    assert "costguard policy init FOLDER --wheel FILE" in said
    done = installed(folder, wheels)
    assert done.returncode != 0
    assert "Hashes are required in --require-hashes mode" in done.stderr
    assert not (folder / "installed").exists()


def test_the_other_program_is_never_what_ci_installs(tmp_path: Path) -> None:
    wheels, folder = tmp_path / "wheels", tmp_path / "policy"
    ours = wheel_in(tmp_path / "ours")
    wheel_in(wheels, "costguard")
    assert run(["policy", "init", str(folder), "--wheel", str(ours)]) == Exit.OK
    done = installed(folder, wheels)
    assert done.returncode != 0
    assert "No matching distribution found for gpu-costguard" in done.stderr


@pytest.mark.parametrize("name", ["costguard-0.1.0-py3-none-any.whl", "gpu_costguard-9.9.9-py3-none-any.whl", "x"])
def test_a_wheel_of_another_name_or_release_is_refused(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(b"")
    with pytest.raises(InvalidInputError, match="not the wheel of this release; expected gpu_costguard-"):
        ci_requirements(LOCKS, str(tmp_path / name))


def test_a_release_puts_out_the_lock_with_the_hash_of_its_wheel() -> None:
    told = YAML(typ="safe").load((ROOT / ".github/workflows/release.yml").read_text("utf-8"))["jobs"]
    build = "\n".join(str(step.get("run", "")) for step in told["build"]["steps"])
    assert "policy init starter --wheel dist/python/gpu_costguard-*.whl" in build
    assert "cp starter/ci/requirements.txt dist/ci-requirements.txt" in build
    assert build.index("-m build") < build.index("policy init starter") < build.index("SHA256SUMS")
    assert "dist/ci-requirements.txt" in "\n".join(str(step.get("run", "")) for step in told["release"]["steps"])


def test_the_installed_program_has_the_version_of_the_project(capfd: pytest.CaptureFixture[str]) -> None:
    assert f'name = "{DISTRIBUTION}"\nversion = "{own_version()}"' in (ROOT / "pyproject.toml").read_text("utf-8")
    assert run(["--version"]) == Exit.OK
    assert capfd.readouterr().out == f"costguard {own_version()}\n"
