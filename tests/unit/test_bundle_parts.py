"""Parts of bundling on their own: locks, wheels by their names, what stays out, models and imports made smaller."""

from __future__ import annotations

import gzip
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from costguard.cli.operate.bundling.build import modules_of, reached
from costguard.cli.operate.bundling.locks import Pin, merged, needed, read_lock, requirements_text
from costguard.cli.operate.bundling.recipes import HOSTS, Arch, find_material
from costguard.cli.operate.bundling.trimming import DEFERRED, aws_services, deferred_file, keeps, newest_versions
from costguard.cli.operate.bundling.unpacking import narrow, narrowed_file
from costguard.cli.operate.bundling.wheels import WheelTarget
from costguard.domain.errors import InvalidInputError
from costguard.providers.aws.iam.permissions import KNOWN_OPERATIONS
from costguard.report.words.sentences import Language

HASH = "a" * 64
LOCK = f"""\
# a remark
alpha==1.0 \\
    --hash=sha256:{HASH} \\
    --hash=sha256:{HASH[:-1]}b
    # via -r infra/requirements/function.in
beta.two==2.0 \\
    --hash=sha256:{HASH}
    # via
    #   -c infra/requirements/lambda.txt
    #   alpha
    #   gamma
gamma==3.0 \\
    --hash=sha256:{HASH}
    # via beta-two
"""


def test_a_lock_tells_versions_hashes_and_who_asked() -> None:
    pins = read_lock(LOCK, "lock")
    assert pins["alpha"] == Pin("alpha", "1.0", frozenset({HASH, HASH[:-1] + "b"}), frozenset({""}))
    assert pins["beta-two"].asked_by == {"alpha", "gamma"}
    assert read_lock(requirements_text(pins.values()).replace("==3.0", "==3.0 ").replace("\n", "\n    # via x\n"), "x")


@pytest.mark.parametrize(
    "text", ["alpha\n", "alpha>=1\n", "alpha==1\n    # via x\n", f"alpha==1 --hash=sha256:{HASH}\n"]
)
def test_what_is_no_pin_is_refused(text: str) -> None:
    with pytest.raises(InvalidInputError, match="lock: not a pinned, hashed package"):
        read_lock(text, "lock")


def test_what_only_a_spared_package_asked_for_goes_with_it() -> None:
    """Two packages that ask for each other do not keep each other."""
    pins = read_lock(LOCK, "lock")
    assert list(needed(pins, ())) == ["alpha", "beta-two", "gamma"]
    assert list(needed(pins, {"alpha"})) == []
    assert list(needed(pins, {"beta-two"})) == ["alpha"]


def test_two_locks_must_agree() -> None:
    pins = read_lock(LOCK, "lock")
    assert merged(pins, pins, "lock") == pins
    with pytest.raises(InvalidInputError, match=r"alpha 1\.1, but 1\.0 elsewhere"):
        merged(pins, read_lock(LOCK.replace("alpha==1.0", "alpha==1.1"), "other"), "other")


@pytest.mark.parametrize("host", HOSTS)
def test_the_locks_of_every_host_can_be_read(host: str) -> None:
    """What only draws is in a lock of its own, which repeats what it shares."""
    material = find_material()
    plain, charts = (material.lock(HOSTS[host], charts=charts) for charts in (False, True))
    assert "matplotlib" in charts.keys() - plain.keys()
    assert {name: charts[name].version for name in plain} == {name: pin.version for name, pin in plain.items()}
    for name in ("greenlet", "cffi", "pycparser"):
        spared = {"sqlalchemy", "psycopg", "cryptography"}
        assert name not in needed(plain, spared)


def test_charts_are_asked_for_as_the_project_declares_them() -> None:
    root = Path(__file__).parents[2]
    asked = re.findall(r"^(\w\S*)$", (root / "infra/requirements/charts.in").read_text("utf-8"), re.MULTILINE)
    declared = re.search(r'^charts = \[\n  "([^"]+)"', (root / "pyproject.toml").read_text("utf-8"), re.MULTILINE)
    assert declared is not None
    assert asked == [declared[1]]


@pytest.mark.parametrize(
    ("file_name", "rank"),
    [
        ("a-1-cp313-cp313-manylinux_2_28_x86_64.whl", 0),
        ("a-1-cp313-cp313-manylinux2014_x86_64.manylinux_2_17_x86_64.whl", 0),
        ("a-1-cp37-abi3-manylinux2014_x86_64.whl", 1),
        ("a-1-py3-none-manylinux1_x86_64.whl", 2),
        ("a-1-py2.py3-none-any.whl", 3),
        ("a-1-py313-none-any.whl", 3),
        ("a-1-cp312-cp312-manylinux2014_x86_64.whl", None),
        ("a-1-cp313-cp313t-manylinux2014_x86_64.whl", None),
        ("a-1-cp314-abi3-manylinux2014_x86_64.whl", None),
        ("a-1-cp313-cp313-manylinux_2_34_x86_64.whl", None),
        ("a-1-cp313-cp313-manylinux2014_aarch64.whl", None),
        ("a-1-cp313-cp313-musllinux_1_2_x86_64.whl", None),
        ("a-1-cp313-cp313-macosx_11_0_arm64.whl", None),
        ("a-1-py2-none-any.whl", None),
    ],
)
def test_a_wheel_is_taken_only_where_it_suits(file_name: str, rank: int | None) -> None:
    assert WheelTarget("3.13", 28, Arch.X86_64).rank(file_name) == rank


def test_platforms_are_told_with_their_older_names() -> None:
    tags = WheelTarget("3.13", 28, Arch.ARM64).platforms
    assert tags[0] == "manylinux_2_28_aarch64"
    assert {"manylinux_2_17_aarch64", "manylinux2014_aarch64", "linux_aarch64"} <= set(tags)


def test_models_of_services_that_are_never_called_stay_out() -> None:
    newest = {"ec2": "2016-11-15", "iam": "2010-05-08", "rekognition": "2016-06-27"}
    data = "botocore/data"
    assert keeps("botocore", f"{data}/ec2/2016-11-15/service-2.json.gz", newest)
    assert keeps("botocore", f"{data}/endpoints.json", newest)
    assert not keeps("botocore", f"{data}/ec2/2014-09-01/service-2.json.gz", newest)
    assert not keeps("botocore", f"{data}/ec2/2016-11-15/examples-1.json", newest)
    assert not keeps("botocore", f"{data}/rekognition/2016-06-27/service-2.json.gz", newest)
    assert {"ec2", "cloudwatch", "sts", "kms", "dynamodb", "s3", "secretsmanager", "sesv2"} <= aws_services()


def test_the_newest_model_of_a_service_is_found() -> None:
    paths = tuple(f"botocore/data/ec2/{day}/service-2.json.gz" for day in ("2016-11-15", "2014-09-01"))
    assert newest_versions((*paths, "botocore/data/ec2/2099-01-01/paginators-1.json")) == {"ec2": "2016-11-15"}


def test_licences_stay_and_what_installers_write_goes() -> None:
    kept = ("METADATA", "licenses/LICENSE.txt", "LICENSE", "NOTICE", "entry_points.txt")
    assert all(keeps("a", f"a-1.dist-info/{name}", {}) for name in kept)
    gone = ("a-1.dist-info/RECORD", "a-1.dist-info/WHEEL", "a-1.data/scripts/a", "a/tests/x.py", "a/b.pyi", "a/c.pyx")
    assert not any(keeps("a", name, {}) for name in gone)


def test_a_model_is_narrowed_to_what_may_be_called_and_the_shapes_of_it() -> None:
    model = {
        "version": "2.0",
        "metadata": {"protocol": "ec2"},
        "operations": {
            "StopInstances": {"input": {"shape": "In"}, "errors": [{"shape": "Err"}]},
            "RunInstances": {"input": {"shape": "Other"}},
        },
        "shapes": {
            "In": {"type": "structure", "members": {"shape": {"shape": "List"}}},
            "List": {"type": "list", "member": {"shape": "In"}},
            "Err": {"type": "structure", "members": {}},
            "Other": {"type": "string"},
        },
    }
    found = narrow("ec2", model)
    assert list(found["operations"]) == ["StopInstances"]
    assert list(found["shapes"]) == ["In", "List", "Err"]
    assert narrow("sts", model) == narrow("rekognition", model) == model
    zipped = gzip.compress(json.dumps(model).encode())
    told = narrowed_file("botocore/data/ec2/2016-11-15/service-2.json.gz", zipped)
    assert told is not None
    assert (told[0], json.loads(told[1])) == ("botocore/data/ec2/2016-11-15/service-2.json", found)
    assert narrowed_file("botocore/data/ec2/2016-11-15/paginators-1.json", b"{}") is None


def test_real_models_keep_every_operation_that_is_named() -> None:
    import botocore

    folder = Path(botocore.__file__).parent / "data"
    for service in ("kms", "ce"):
        ours = {name.partition(":")[2] for name in KNOWN_OPERATIONS if name.startswith(f"{service}:")}
        path = max(folder.glob(f"{service}/*/service-2.json.gz"))
        told = narrowed_file(f"botocore/data/{service}/{path.parent.name}/{path.name}", path.read_bytes())
        assert told is not None
        assert set(json.loads(told[1])["operations"]) == ours


SIGNER = "import x\nfrom cryptography.a import b\n\n\ndef get_sign_string(source, access_secret):\n    return b\n"


def test_an_import_is_made_where_it_is_used() -> None:
    name = "aliyun-python-sdk-core"
    found = deferred_file(name, DEFERRED[name].path, SIGNER.encode())
    assert found is not None
    assert found.decode() == (
        "import x\n\n\ndef get_sign_string(source, access_secret):\n    from cryptography.a import b\n    return b\n"
    )
    assert deferred_file(name, "aliyunsdkcore/client.py", SIGNER.encode()) is None
    assert deferred_file("other", DEFERRED[name].path, SIGNER.encode()) is None


@pytest.mark.parametrize(
    "changed",
    [
        SIGNER.replace("def get_sign_string", "def other"),
        SIGNER.replace("import x", "import cryptography"),
        SIGNER.replace("from cryptography.a import b\n", ""),
    ],
)
def test_an_import_in_another_form_is_not_guessed(changed: str) -> None:
    name = "aliyun-python-sdk-core"
    assert deferred_file(name, DEFERRED[name].path, changed.encode()) is None


def test_the_real_signer_has_the_form_that_is_known() -> None:
    import aliyunsdkcore

    path = Path(aliyunsdkcore.__file__).parents[1] / DEFERRED["aliyun-python-sdk-core"].path
    assert deferred_file("aliyun-python-sdk-core", DEFERRED["aliyun-python-sdk-core"].path, path.read_bytes())


def test_nothing_of_the_command_line_or_the_sandbox_is_ever_reached() -> None:
    material = find_material()
    found = reached(material.package, (material.functions / "idle_gpu/handler.py").read_text("utf-8"))
    folders = {path.split("/")[1] for path in found}
    assert {"faas", "engine", "providers", "policy", "adapters"} <= folders
    assert not {"cli", "sandbox", "backtest"} & folders
    assert "costguard/faas/container.py" in found
    assert len(found) < len(modules_of(material.package))


_LOADS_ALL = """
from importlib import import_module
import costguard
from costguard.connections.clouds import PARTS
from costguard.engine.guards.registry import GUARDS

assert all(GUARDS[name].name == name for name in GUARDS)
others = [("iam.preflight", "Preflight"), ("iam.freeze", "Freeze"), ("compute.executor", "Executor")]
for provider in ("aws", "alibaba", "tencent"):
    for part in PARTS.values():
        if provider not in part.lacking:
            getattr(import_module(f"costguard.providers.{provider}.{part.module}"), provider.title() + part.name)
    for module, name in others:
        getattr(import_module(f"costguard.providers.{provider}.{module}"), provider.title() + name)
print(costguard.__file__)
"""


def test_a_bundle_brings_every_guard_and_every_part_of_a_cloud_that_is_loaded_by_name(tmp_path: Path) -> None:
    """In a process that has the files of the bundle alone: no import tells of these."""
    material = find_material()
    sets = {
        tuple(reached(material.package, (material.functions / name / "handler.py").read_text("utf-8")).items())
        for name in material.names()
    }
    for number, files in enumerate(sorted(sets)):
        folder = tmp_path / str(number)
        for path, source in files:
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_bytes(source.read_bytes())
        done = subprocess.run(  # noqa: S603 - this interpreter, and words of this file
            [sys.executable, "-c", _LOADS_ALL],
            cwd=folder,
            env={**os.environ, "PYTHONPATH": str(folder)},
            capture_output=True,
            check=False,
            encoding="utf-8",
        )
        assert (done.returncode, done.stderr) == (0, "")
        assert Path(done.stdout.strip()).is_relative_to(folder)


def test_modules_are_loaded_by_name_only_where_bundles_know_of_it() -> None:
    package = find_material().package
    found = {
        path.relative_to(package).as_posix() for path in package.rglob("*.py") if "import_module" in path.read_text()
    }
    assert {path for path in found if not path.startswith("cli/")} == {
        "connections/clouds.py",  # parts of clouds: `_BY_NAME` in `build.py`
        "engine/guards/registry.py",  # guards: there too
        "engine/history/history.py",  # a library that is not in bundles, and may be absent
    }


def test_a_bundle_brings_the_messages_of_every_language_compiled() -> None:
    material = find_material()
    for function in material.names():
        found = reached(material.package, (material.functions / function / "handler.py").read_text("utf-8"))
        assert [path for path in found if "/locale/" in path] == [
            f"costguard/report/words/locale/{language.value}/LC_MESSAGES/costguard.mo" for language in Language
        ]


@pytest.mark.parametrize("host", HOSTS)
def test_no_bundle_of_any_host_carries_the_emulators(host: str) -> None:
    """Neither a module that a function reaches imports them, nor does a lock name them or what AWS is emulated with."""
    material = find_material()
    for function in material.names():
        found = reached(material.package, (material.functions / function / "handler.py").read_text("utf-8"))
        assert {path.split("/")[0] for path in found} == {"costguard"}
        assert [path for path, module in found.items() if b"cloudstand" in module.read_bytes()] == []
    shipped = material.lock(HOSTS[host], charts=True)
    assert [name for name in shipped if "moto" in name or "cloudstand" in name] == []
