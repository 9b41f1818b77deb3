"""The shape of the project, held: what DESIGN calls for exists, and nothing reaches where it may not."""

from __future__ import annotations

import ast
import json
import re
import stat
import sys
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from importlib import import_module
from importlib.metadata import packages_distributions
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from packaging.requirements import Requirement
from packaging.version import Version
from ruamel.yaml import YAML

from costguard.domain.refs import CLOUDS, provider_of
from costguard.engine.guards.registry import GUARDS
from costguard.engine.guards.runner import Port
from costguard.faas.http import is_http, read_request
from costguard.faas.invocation import Host
from costguard.guards import OF_MACHINES
from costguard.policy.sections import SECTIONS
from costguard.providers.kit.iam.permissions import Feature
from costguard.providers.kit.iam.policy_documents import FUNCTIONS
from costguard.report.guard_views import VIEWS
from costguard.settings import VARIABLES

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "shared/costguard"
EMULATORS = ROOT / "shared/cloudstand"
HOSTS = ("lambda", "fc", "scf")

TOP_LEVEL = {"pyproject.toml", "README.md", "functions", "shared", "infra", "events", "tests"}
TOP_LEVEL |= {"docs", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md"}  # may stand beside it; so may dot files
MADE = {"build", "dist", "__pycache__"}  # by tools, not in the repository
MOST_LINES = 400
MOST_ENTRIES = 20
HANDLER_LINES = 10

PURE = ("domain", "guards", "policy", "cases", "planning", "report", "estimates", "backtest")
NOT_IN_PURE = {"os", "time", "socket", "logging", "subprocess", "random", "urllib.request", "http.client"}

SDKS: dict[str, tuple[str, ...]] = {
    "boto3": ("providers/aws",),
    "botocore": ("providers/aws",),
    "moto": (),  # the emulators' alone
    "slack_sdk": ("adapters/notifiers/slack/notifier.py",),
    "matplotlib": ("adapters/charts",),
    "sqlalchemy": ("adapters/ledgers",),
    "psycopg": ("adapters/ledgers",),
    "aws_lambda_powertools": ("faas",),
    "aliyunsdkcore": ("providers/alibaba",),
    "tencentcloud": ("providers/tencent",),
    "typer": ("cli",),
    "rich": ("cli",),
    "ruamel": ("policy",),
}
"""Where an SDK may be imported: folders and files below `shared/costguard`."""

PROVIDER_FILES: dict[str, tuple[str, ...]] = {
    "core": (*("session", "transport", "errors", "services"),),
    "compute": (*("source", "instances", "instance_types", "audit_log", "metrics", "metric_answers", "executor"),),
    "billing": ("source", "answers", "lines", "prices", "vendor_budgets"),
    "kms": ("source", "answers", "rotation"),
    "network": ("source", "answers", "rules", "prices", "remediator", "rule_remediator"),
    "iam": ("permissions", "policy_documents", "preflight", "freeze"),
}
"""The same names in every provider's folder, for all that there is."""

NOT_IN_EVERY_PROVIDER = {
    "core/products": "versions, hosts, and ways to write lists, times and nulls: the SDK of AWS knows them",
    "core/store": "records are kept in DynamoDB; elsewhere in PostgreSQL",
    "compute/commitments": "Spot requests and Reserved Instances stand in lists of their own",
    "compute/metric_calls": "how much one call may ask depends on what the cloud shows to hold",
    "billing/requests": "a bill is read page by page, or by series where it is too large, by rules of their own",
    "network/groups": "the rules of a group are a request of their own, and lists of interfaces have to agree",
}
"""What one or two providers have beside, and why."""

CARRIED = {"botocore": "boto3", "pydantic-core": "pydantic", "werkzeug": "moto"}
"""Imported, but brought along by what is declared, which pins it."""

WALL_CLOCKS = {
    *(("datetime", name) for name in ("now", "utcnow", "today")),
    ("date", "today"),
    *(("time", name) for name in ("time", "time_ns", "gmtime", "localtime")),
}


def modules(*parts: str) -> list[Path]:
    """The package's modules, or those below the given folders and files that exist."""
    if not parts:
        return sorted(PACKAGE.rglob("*.py"))
    found = {PACKAGE / part for part in parts} | {PACKAGE / f"{part}.py" for part in parts}
    return sorted(module for path in found for module in ([path] if path.is_file() else path.rglob("*.py")))


@cache
def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text("utf-8"), str(path))


@cache
def nodes(path: Path) -> tuple[ast.Attribute | ast.ExceptHandler | ast.Import | ast.ImportFrom, ...]:
    """Those of a file that any rule here asks about: walking 700 modules anew for each rule takes seconds."""
    kinds = (ast.Attribute, ast.ExceptHandler, ast.Import, ast.ImportFrom)
    return tuple(node for node in ast.walk(tree(path)) if isinstance(node, kinds))


@cache
def imports(path: Path) -> tuple[tuple[str, int], ...]:
    """Every module imported anywhere in the file, inside functions and for types alone as well."""
    found: list[tuple[str, int]] = []
    for node in nodes(path):
        if isinstance(node, ast.Import):
            found += ((alias.name, node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            found += ((f"{node.module}.{alias.name}", node.lineno) for alias in node.names)
    return tuple(found)


def within(path: Path, places: Iterable[str]) -> bool:
    name = path.relative_to(PACKAGE).as_posix()
    return any(name == place or name.startswith(f"{place}/") for place in places)


def named(name: str, root: str) -> bool:
    return name == root or name.startswith(f"{root}.")


def offences(paths: Iterable[Path], found: Callable[[Path], Iterable[tuple[str, int]]]) -> list[str]:
    return [f"{path.relative_to(ROOT)}:{line} {what}" for path in paths for what, line in found(path)]


def test_the_top_level_is_fixed() -> None:
    names = {path.name for path in ROOT.iterdir()}
    extra = {name for name in names - TOP_LEVEL - MADE if not name.startswith(".") and not _ignored(name)}
    assert extra == set()
    assert {"pyproject.toml", "README.md", "functions", "shared", "infra", "events", "tests"} - names == set()


def _ignored(name: str) -> bool:
    return name.endswith(".egg-info") or ".sqlite3" in name


def test_no_module_is_longer_than_a_reader_can_hold() -> None:
    written = (*modules(), *EMULATORS.rglob("*.py"))
    lengths = {str(path.relative_to(ROOT)): len(path.read_text("utf-8").splitlines()) for path in written}
    assert {name: lines for name, lines in lengths.items() if lines > MOST_LINES} == {}


@pytest.mark.parametrize("guard", GUARDS)
def test_every_guard_is_deployed_and_tested(guard: str) -> None:
    wanted = [
        ROOT / "functions" / guard / "handler.py",
        ROOT / "functions" / guard / "function.yaml",
        *(ROOT / "events" / host / f"{guard}.json" for host in HOSTS),
        ROOT / "tests/unit" / f"test_{guard}.py",
    ]
    assert [str(path.relative_to(ROOT)) for path in wanted if not path.is_file()] == []


def test_every_guard_package_is_in_the_registry() -> None:
    """A guard is a package with a judge, which has a NAME; what nobody registered would never run."""
    judges = (PACKAGE / "guards").glob("*/judge.py")
    written = [import_module(f"costguard.guards.{path.parent.name}.judge").NAME for path in judges]
    assert sorted(written) == sorted(GUARDS)


def function_folders() -> list[Path]:
    return sorted(path for path in (ROOT / "functions").iterdir() if path.is_dir() and path.name != "__pycache__")


@pytest.mark.parametrize("folder", function_folders(), ids=lambda folder: folder.name)
def test_a_handler_is_a_docstring_an_import_and_an_assignment(folder: Path) -> None:
    text = (folder / "handler.py").read_text("utf-8")
    body = ast.parse(text).body
    assert len(text.splitlines()) < HANDLER_LINES
    assert [type(node) for node in body] == [ast.Expr, ast.ImportFrom, ast.Assign]
    build = "build_http_handler" if _answers_requests(folder) else "build_handler"
    assert f'handler = {build}("{folder.name}")' in text


def _answers_requests(folder: Path) -> bool:
    needs: Any = YAML(typ="safe").load((folder / "function.yaml").read_text("utf-8"))
    return "http" in needs


@pytest.mark.parametrize("folder", function_folders(), ids=lambda folder: folder.name)
@pytest.mark.parametrize("host", HOSTS)
def test_a_functions_sample_event_is_a_timers_or_a_request_as_its_yaml_says(folder: Path, host: str) -> None:
    """What has no schedule is asked over HTTP; no sample holds a signature that was ever good."""
    event = json.loads((ROOT / "events" / host / f"{folder.name}.json").read_text("utf-8"))
    assert is_http(event) is _answers_requests(folder)
    if is_http(event):
        request = read_request(event, Host(host))
        assert (request.method, request.path) == ("POST", "/slack")
        assert len(request.headers["x-slack-signature"]) != len("v0=") + 64


@pytest.mark.parametrize("folder", function_folders(), ids=lambda folder: folder.name)
def test_what_a_function_needs_is_said_and_exists(folder: Path) -> None:
    schema = json.loads((ROOT / "functions/function.schema.json").read_text("utf-8"))
    needs: Any = YAML(typ="safe").load((folder / "function.yaml").read_text("utf-8"))
    jsonschema.validate(needs, schema)

    features = {feature for names in needs["needs"]["permissions"].values() for feature in names}
    assert features - {feature.value for feature in Feature} == set()
    settings = {name for names in needs["needs"]["settings"].values() for name in names}
    assert settings - {variable.name for variable in VARIABLES} == set()


def test_every_event_belongs_to_a_function() -> None:
    functions = {folder.name for folder in function_folders()}
    events = {path.relative_to(ROOT / "events").as_posix() for path in (ROOT / "events").rglob("*") if path.is_file()}
    assert events == {f"{host}/{name}.json" for host in HOSTS for name in functions}


def provider_files() -> dict[str, set[str]]:
    """Of every provider the modules it has, as `core/session`."""
    root = PACKAGE / "providers"
    folders = [path for path in root.iterdir() if path.is_dir() and path.name not in {"kit", "__pycache__"}]
    return {
        folder.name: {
            path.relative_to(folder).with_suffix("").as_posix()
            for path in folder.rglob("*.py")
            if path.name != "__init__.py"
        }
        for folder in folders
    }


def test_every_provider_has_the_same_files() -> None:
    wanted = {f"{folder}/{name}" for folder, names in PROVIDER_FILES.items() for name in names}
    lacking = sorted(f"{provider}/{name}" for provider, has in provider_files().items() for name in wanted - has)
    assert not lacking, f"docs/add-a-provider.md, step 1: {', '.join(lacking)}"


def test_what_not_every_provider_has_is_named_with_a_reason() -> None:
    found = list(provider_files().values())
    wanted = {f"{folder}/{name}" for folder, names in PROVIDER_FILES.items() for name in names}
    assert set[str]().union(*found) - wanted == set(NOT_IN_EVERY_PROVIDER)
    assert found[0].intersection(*found) == wanted


def test_every_emulator_has_the_folders_of_its_provider() -> None:
    wanted = (f"{provider}/{name}" for provider in provider_files() for name in PROVIDER_FILES)
    lacking = [name for name in wanted if not (EMULATORS / name).is_dir()]
    assert not lacking, f"docs/add-a-provider.md, step 11: {', '.join(lacking)}"


NOT_OF_EVERY_PROVIDER = {
    "report/network/catalogue.py": "numbers of benchmarks: CIS and Prowler have none for some clouds",
    "settings/reading.py": "keys that AWS's SDK finds by itself",
}
"""Modules with a table that some providers alone are in, and why."""


def test_a_table_by_provider_has_every_provider() -> None:
    """Of the product, and of the rigs that the contract suites run on; a provider is a part of `CLOUDS`."""
    providers = set(provider_files())
    assert {provider_of(cloud) for cloud in CLOUDS} == providers

    def lacking(path: Path) -> Iterator[tuple[str, int]]:
        for node in ast.walk(tree(path)):
            if isinstance(node, ast.Dict) and len(_keys(node) & providers) > 1 and providers - _keys(node):
                yield ", ".join(sorted(providers - _keys(node))), node.lineno

    rigs = [*(ROOT / "tests/contract").glob("*_worlds.py"), ROOT / "tests/contract/test_signal_source.py"]
    found = offences([*(path for path in modules() if not within(path, NOT_OF_EVERY_PROVIDER)), *rigs], lacking)
    assert not found, "\n".join(["tables without these providers:", *found])
    assert [place for place in NOT_OF_EVERY_PROVIDER if not offences([PACKAGE / place], lacking)] == []


def _keys(node: ast.Dict) -> set[str]:
    """Those that are text, and the text that those which are tuples begin with."""
    first = (key.elts[0] if isinstance(key, ast.Tuple) and key.elts else key for key in node.keys)
    return {str(key.value) for key in first if isinstance(key, ast.Constant)}


def test_only_settings_reads_the_environment() -> None:
    def reads(path: Path) -> Iterator[tuple[str, int]]:
        for node in nodes(path):
            if isinstance(node, ast.Attribute) and node.attr in {"environ", "environb", "getenv", "putenv"}:
                yield node.attr, node.lineno
        yield from ((name, line) for name, line in imports(path) if name in {"os.environ", "os.getenv"})

    assert offences((path for path in modules() if not within(path, ["settings"])), reads) == []


@pytest.mark.parametrize("sdk", SDKS)
def test_an_sdk_stays_in_its_place(sdk: str) -> None:
    def uses(path: Path) -> Iterator[tuple[str, int]]:
        return ((name, line) for name, line in imports(path) if named(name, sdk))

    assert offences((path for path in modules() if not within(path, SDKS[sdk])), uses) == []


def test_only_bootstrap_reads_the_clock() -> None:
    def reads(path: Path) -> Iterator[tuple[str, int]]:
        for node in nodes(path):
            if (
                isinstance(node, ast.Attribute)
                and isinstance(node.value, (ast.Name, ast.Attribute))
                and (_last(node.value), node.attr) in WALL_CLOCKS
            ):
                yield f"{_last(node.value)}.{node.attr}", node.lineno
        yield from ((name, line) for name, line in imports(path) if name in {"time.time", "time.time_ns"})

    assert offences((path for path in modules() if not within(path, ["bootstrap.py"])), reads) == []


def _last(node: ast.Name | ast.Attribute) -> str:
    return node.id if isinstance(node, ast.Name) else node.attr


def test_the_pure_core_touches_nothing() -> None:
    def touches(path: Path) -> Iterator[tuple[str, int]]:
        return ((name, line) for name, line in imports(path) if any(named(name, root) for root in NOT_IN_PURE))

    assert offences(modules(*PURE), touches) == []


def test_everything_is_caught_only_at_the_function_edge() -> None:
    def catches(path: Path) -> Iterator[tuple[str, int]]:
        for node in nodes(path):
            if isinstance(node, ast.ExceptHandler) and (
                node.type is None or (isinstance(node.type, ast.Name) and node.type.id == "Exception")
            ):
                yield "except Exception", node.lineno

    assert offences((path for path in modules() if not within(path, ["faas/handler.py"])), catches) == []


def pages() -> list[Path]:
    return [path for path in (*ROOT.glob("*.md"), *sorted((ROOT / "docs").rglob("*.md"))) if path.is_file()]


def test_links_between_pages_lead_somewhere() -> None:
    broken = []
    for page in pages():
        for target in re.findall(r"\]\(([^)\s]+)\)", page.read_text("utf-8")):
            file = target.partition("#")[0]
            if file and not re.match(r"[a-z]+:", file) and not (page.parent / file).exists():
                broken.append(f"{page.relative_to(ROOT)}: {target}")
    assert broken == []


def test_no_folder_shows_more_than_a_reader_can_hold() -> None:
    folders = {path.parent for path in (*modules(), *EMULATORS.rglob("*.py"))}
    entries = {str(folder.relative_to(ROOT)): len([*_shown(folder)]) for folder in folders}
    assert {name: count for name, count in entries.items() if count > MOST_ENTRIES} == {}


def _shown(folder: Path) -> Iterator[Path]:
    """What git would show: a folder of which only compiled files are left is none."""
    there = (path for path in folder.iterdir() if path.name not in MADE)
    return (path for path in there if path.is_file() or any(MADE.isdisjoint(each.parts) for each in path.rglob("*.*")))


def test_the_page_on_architecture_names_what_exists() -> None:
    text = (ROOT / "docs/architecture.md").read_text("utf-8")
    named = re.findall(r"`((?:shared|functions)/[^`\s<>]*\.py)(?:::(\w+))?`", text)
    assert len(named) > 20
    for file, name in named:
        assert (ROOT / file).is_file(), file
        assert not name or name in {getattr(node, "name", "") for node in tree(ROOT / file).body}, f"{file}::{name}"
    drawn = set(re.findall(r"(?<![\w/])([a-z]+(?:\.py|/))(?= )", text.partition("```text")[2].partition("```")[0]))
    layers = {f"{path.name}/" for path in _shown(PACKAGE) if path.is_dir()}
    assert layers - drawn == set()


@pytest.mark.parametrize("name", ["add-a-guard.md", "add-a-provider.md"])
def test_a_recipe_names_only_what_exists(name: str) -> None:
    """Paths in backticks; `<…>` stands for what the reader adds."""
    text = (ROOT / "docs" / name).read_text("utf-8")
    paths = re.findall(r"`((?:shared|functions|events|tests|infra|docs|\.ci)/[^`\s<>*{}]*)`", text)
    assert len(paths) > 5
    assert [path for path in paths if not (ROOT / path.partition("::")[0]).exists()] == []
    tests = re.findall(r"`(test_[a-z_]+)`", text)
    known = "".join(path.read_text("utf-8") for path in (ROOT / "tests").rglob("*.py"))
    assert [test for test in tests if f"def {test}(" not in known] == []


LOCKS = {"lambda": "lambda.in", "fc": "function.in", "scf": "function.in"}
NOT_SHIPPED = {"typer", "rich", "holidays"}  # the command line, which writes holidays as dates into what is published
ONLY_ON_LAMBDA = {"aws-lambda-powertools"}


def requirements(name: str) -> dict[str, Requirement]:
    """The requirements of one `.in` file and those it includes, by name."""
    found: dict[str, Requirement] = {}
    for line in (ROOT / "infra/requirements" / name).read_text("utf-8").splitlines():
        text = line.partition("#")[0].strip()
        if text.startswith("-r "):
            found |= requirements(text.removeprefix("-r "))
        elif text:
            requirement = Requirement(text)
            found[requirement.name.lower()] = requirement
    return found


def declared() -> dict[str, Requirement]:
    """`dependencies` and the extra `postgres` of pyproject.toml, read without tomllib, which 3.10 lacks."""
    text = (ROOT / "pyproject.toml").read_text("utf-8")
    lists = re.findall(r"^(?:dependencies|postgres) = \[\n(.*?)^\]", text, re.MULTILINE | re.DOTALL)
    assert len(lists) == 2
    found = [Requirement(item) for part in lists for item in re.findall(r'^  "([^"]+)"', part, re.MULTILINE)]
    return {requirement.name.lower(): requirement for requirement in found}


def pins(path: Path) -> dict[str, tuple[str, int]]:
    """Name → version and number of hashes."""
    found: dict[str, tuple[str, int]] = {}
    for entry in path.read_text("utf-8").replace("\\\n", " ").splitlines():
        if entry and not entry.lstrip().startswith("#"):
            match = re.match(r"([a-z0-9-]+)==(\S+)", entry)
            assert match, entry
            found[match[1]] = (match[2], entry.count("--hash=sha256:"))
    return found


def test_every_import_is_declared() -> None:
    """Else it works here by luck and fails where only what is declared is installed."""
    assert offences(modules(), undeclared_by(ROOT)) == []


def test_the_emulators_declare_every_import_of_theirs_and_the_product_the_same_of_them() -> None:
    """They can be built alone; the product carries them in its own wheel, and asks no index for them by name."""
    assert offences(sorted(EMULATORS.rglob("*.py")), undeclared_by(EMULATORS)) == []
    theirs, ours = ((folder / "pyproject.toml").read_text("utf-8") for folder in (EMULATORS, ROOT))
    assert {item for item in re.findall(r'^  "([^"]+)"', theirs, re.MULTILINE) if f'"{item}"' not in ours} == set()
    assert not re.search(r'^  "[^"]*cloudstand', ours, re.MULTILINE)
    assert '"shared/cloudstand"]' in ours


def undeclared_by(project: Path) -> Callable[[Path], Iterator[tuple[str, int]]]:
    """What a module imports and neither this project declares nor one of ours is."""
    text = (project / "pyproject.toml").read_text("utf-8")
    known = {_canonical(name) for name in re.findall(r'^  "([A-Za-z0-9._-]+)[^"]*",', text, re.MULTILINE)}
    providers, own = packages_distributions(), {"costguard", "cloudstand"}

    def undeclared(path: Path) -> Iterator[tuple[str, int]]:
        for name, line in imports(path):
            top = name.partition(".")[0]
            if top in own or top in sys.stdlib_module_names or top.startswith("mypy_boto3_"):
                continue
            names = {_canonical(name) for name in providers.get(top, [top])}
            if not {CARRIED.get(name, name) for name in names} & known:
                yield name, line

    return undeclared


def _canonical(name: str) -> str:
    return name.lower().replace("_", "-")


@pytest.mark.parametrize("host", LOCKS)
def test_what_ships_is_what_the_project_declares(host: str) -> None:
    asked = requirements(LOCKS[host])
    wanted = {name: item for name, item in declared().items() if name not in NOT_SHIPPED}
    if host != "lambda":
        wanted = {name: item for name, item in wanted.items() if name not in ONLY_ON_LAMBDA}
    assert {name: str(item) for name, item in asked.items()} == {name: str(item) for name, item in wanted.items()}


@pytest.mark.parametrize("host", LOCKS)
def test_what_ships_is_pinned_and_hashed(host: str) -> None:
    locked = pins(ROOT / "infra/requirements" / f"{host}.txt")
    assert [name for name, (_, hashes) in locked.items() if not hashes] == []
    for name, requirement in requirements(LOCKS[host]).items():
        version, _ = locked[name.replace(".", "-").replace("_", "-")]
        assert Version(version) in requirement.specifier, f"{name}: run infra/requirements/lock"
    assert not {"typer", "rich", "moto", "pytest"} & set(locked)


def test_constraints_cover_what_the_project_declares() -> None:
    text = (ROOT / ".ci/constraints.txt").read_text("utf-8")
    pinned = dict(re.findall(r"^([a-z0-9-]+)==([^\s;]+)", text, re.MULTILINE))
    for name, requirement in declared().items():
        assert Version(pinned[name.replace(".", "-")]) in requirement.specifier, f"{name}: run infra/requirements/lock"


def test_locks_name_no_index() -> None:
    for path in (*(ROOT / "infra/requirements").iterdir(), ROOT / ".ci/constraints.txt"):
        text = path.read_text("utf-8")
        assert not re.search(r"https?://|--(extra-)?index-url|--find-links|--trusted-host", text), path


def test_scripts_can_be_run() -> None:
    for path in (ROOT / ".ci/run", ROOT / "infra/requirements/lock"):
        assert path.stat().st_mode & stat.S_IXUSR, path


def test_every_layer_has_its_word_for_every_guard() -> None:
    """One table a layer, with the names of the registry, in its order."""
    assert tuple(SECTIONS) == tuple(VIEWS) == tuple(GUARDS)
    assert set(GUARDS) <= set(FUNCTIONS)
    assert {name for name, runner in GUARDS.items() if Port.EXECUTORS in runner.ports} == set(OF_MACHINES)


GUARD_TABLES = {
    "guards/__init__.py": "where they are named",
    "policy": "keys of the documents that people write: policy/sections.py is the table",
    "providers/kit/iam/policy_documents.py": "the table of what each function's role may do",
    "cli/policy/check.py": "keys of --json",
    "engine/guards/budgets/notifying.py": "a field of logs that is called budget",
    "engine/guards/budgets/freeze.py": "a fact of a reason that is called budget",
    "guards/budget/judge.py": "a fact of a reason that is called budget",
    "guards/idle/judge.py": "a fact of a reason that is called budget",
    "report/budget/rules.py": "a column that is called budget",
    "report/budget/freeze_notices.py": "a fact of a notice that is called budget",
    "report/budget/freeze_views.py": "a column and a key of --json that are called budget",
    "report/guard_views.py": "the table of reports: what the words about budgets begin with",
}
"""Where the name of a guard may stand as text, and why."""


def test_a_guards_name_stands_in_tables_alone() -> None:
    def named_there(path: Path) -> Iterator[tuple[str, int]]:
        for node in ast.walk(tree(path)):
            if isinstance(node, ast.Constant) and node.value in set(GUARDS):
                yield str(node.value), node.lineno

    outside = (path for path in modules() if not within(path, GUARD_TABLES))
    assert offences(outside, named_there) == []
    assert [place for place in GUARD_TABLES if not offences(modules(place.removesuffix(".py")), named_there)] == []


def test_nothing_compares_the_name_of_a_guard() -> None:
    """What fell through such a comparison was once run by the engine of idle machines."""
    names = {"IDLE_GPU", "BUDGET", "KMS_ROTATION", "NETWORK_AUDIT"}

    def compares(path: Path) -> Iterator[tuple[str, int]]:
        for node in ast.walk(tree(path)):
            sides = (node.left, *node.comparators) if isinstance(node, ast.Compare) else ()
            for side in sides:
                if isinstance(side, (ast.Name, ast.Attribute)) and _last(side) in names:
                    yield _last(side), side.lineno
            if isinstance(node, ast.MatchValue) and isinstance(node.value, ast.Attribute) and node.value.attr in names:
                yield node.value.attr, node.lineno

    assert offences(modules(), compares) == []
