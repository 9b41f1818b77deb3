"""Builds bundles: everything is made aside, and moved to its place only when all of it is there.

https://cyclonedx.org/docs/1.6/json/
"""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import tempfile
import uuid
import zipfile
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from email.parser import HeaderParser
from pathlib import Path, PurePosixPath
from typing import Any

from costguard.cli.operate.bundling.compiling import Interpreter, compile_tree
from costguard.cli.operate.bundling.locks import Pin, RefusedBundleError, needed
from costguard.cli.operate.bundling.recipes import MEGABYTE, UNZIPPED_LIMIT, Material, Recipe
from costguard.cli.operate.bundling.trimming import WITH_SOURCES
from costguard.cli.operate.bundling.unpacking import Unpacked, unpack
from costguard.cli.operate.bundling.wheels import WheelTarget, fetch, in_folder
from costguard.cli.operate.distribution import own_version
from costguard.guards import IDLE_GPU

SUMS = "SHA256SUMS"
_HANDLER = "handler.py"


@dataclass(frozen=True, slots=True)
class Order:
    """Bundles for one host, Python and processor. `wheels` is a folder that packages are taken from."""

    material: Material
    recipes: Sequence[Recipe]
    interpreter: Interpreter | None
    wheels: Path | None = None


@dataclass(frozen=True, slots=True)
class Bundle:
    """One bundle that was written."""

    recipe: Recipe
    path: Path
    zipped: int
    unzipped: int
    packages: int
    sha256: str


@dataclass(frozen=True, slots=True)
class _Ingredients:
    """What the functions of one order share, made once: files by their path in the zip, and their compiled twins."""

    packages: Mapping[str, Unpacked]
    modules: Mapping[str, Mapping[str, Path]]
    compiled: Mapping[str, Path]


def build(order: Order, out: Path) -> Sequence[Bundle]:
    """Write every bundle with its bill of materials, and the sums of the folder.

    Raises:
        CostguardError: whatever was missing, refused or too large; nothing was written.
    """
    folder = out / order.recipes[0].host.name
    with tempfile.TemporaryDirectory(prefix="costguard-bundle-") as name:
        aside = Path(name)
        pins = {recipe.function: _pins(order, recipe) for recipe in order.recipes}
        shared = _ingredients(order, pins, aside)
        made = aside / "made"
        made.mkdir()
        bundles = [_bundle(order, recipe, pins[recipe.function], shared, made, folder) for recipe in order.recipes]
        folder.mkdir(parents=True, exist_ok=True)
        _move(made, folder)
    return bundles


def _pins(order: Order, recipe: Recipe) -> Mapping[str, Pin]:
    return needed(order.material.lock(recipe.host, charts=recipe.with_charts), recipe.without)


def _ingredients(order: Order, pins: Mapping[str, Mapping[str, Pin]], aside: Path) -> _Ingredients:
    one = order.recipes[0]
    union = {name: pin for wanted in pins.values() for name, pin in wanted.items()}
    modules = {recipe.function: _modules(order.material, recipe.function) for recipe in order.recipes}
    wanted = WheelTarget(one.python, one.host.glibc, one.arch)
    if order.wheels is None:
        downloads = aside / "wheels"
        downloads.mkdir()
        wheels = fetch(list(union.values()), wanted, downloads)
    else:
        wheels = in_folder(order.wheels, union.values(), wanted)
    tree = aside / "tree"
    plain = order.material.lock(one.host, charts=False).keys()  # what draws builds its docstrings when it is imported
    packages = {wheel.pin.name: unpack(wheel, tree) for wheel in wheels}
    for files in modules.values():
        for path, source in files.items():
            target = tree / path
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source, target)
    bare = {path for name, unpacked in packages.items() if name in plain for path in unpacked.files}
    everything = {path for unpacked in packages.values() for path in unpacked.files}.union(*modules.values())
    return _Ingredients(packages, modules, _compiled(order, tree, everything, bare))


def _modules(material: Material, function: str) -> Mapping[str, Path]:
    return reached(material.package, material.files_of(function)[_HANDLER].read_text("utf-8"))


def _compiled(order: Order, tree: Path, files: Collection[str], bare: Collection[str] = ()) -> Mapping[str, Path]:
    """Source → compiled file, by the source's path in the zip."""
    if order.interpreter is None:
        return {}
    sources = [path for path in files if path.endswith(".py")]
    made = compile_tree(order.interpreter, tree, sources, bare, order.recipes[0].host.folder)
    return {source: tree / target for source, target in made.items()}


def _bundle(
    order: Order, recipe: Recipe, pins: Mapping[str, Pin], shared: _Ingredients, made: Path, folder: Path
) -> Bundle:
    parts = [shared.packages[name] for name in pins]
    files = {name: file for part in parts for name, file in _as_it_ships(part, shared.compiled).items()}
    files |= _with_compiled(shared.modules[recipe.function], shared.compiled)
    own = made.parent / "own" / recipe.function
    own.mkdir(parents=True)
    given = order.material.files_of(recipe.function)
    ours = {name: Path(shutil.copyfile(source, own / name)) for name, source in given.items()}
    files |= _with_compiled(ours, _compiled(order, own, [_HANDLER]))
    target = made / f"{recipe.function}.zip"
    unzipped = write_zip(target, files)
    bundle = Bundle(recipe, folder / target.name, target.stat().st_size, unzipped, len(parts), sha256_of(target))
    _check_size(bundle)
    whole = Whole(
        recipe.function,
        recipe.host.name,
        recipe.python,
        recipe.arch.value,
        recipe.ledger.value,
        own_version(),
        bundle.sha256,
        f"CPython {order.interpreter.version}" if order.interpreter is not None else "",
    )
    bill = bill_of(whole, [Part(one.wheel.pin, one.wheel.sha256, one.metadata, one.narrowed) for one in parts])
    (made / f"{recipe.function}.cdx.json").write_bytes(bill.encode())
    return bundle


def _as_it_ships(part: Unpacked, compiled: Mapping[str, Path]) -> Mapping[str, Path]:
    """Other people's modules ship compiled alone, which saves a fifth of a zip, where their licence leaves it open."""
    if part.wheel.pin.name in WITH_SOURCES:
        return _with_compiled(part.files, compiled)
    return {(f"{path}c" if path in compiled else path): compiled.get(path, file) for path, file in part.files.items()}


def _with_compiled(files: Mapping[str, Path], compiled: Mapping[str, Path]) -> Mapping[str, Path]:
    """Sources, and beside each its compiled file where Python looks for it."""
    beside = {
        str(PurePosixPath(path).parent / "__pycache__" / compiled[path].name): compiled[path]
        for path in files
        if path in compiled
    }
    return {**files, **beside}


def _check_size(bundle: Bundle) -> None:
    """Raises: RefusedBundleError."""
    limits = ((bundle.zipped, bundle.recipe.zipped_limit, "zipped"), (bundle.unzipped, UNZIPPED_LIMIT, "unpacked"))
    for size, limit, how in limits:
        if size > limit:
            message = (
                f"{bundle.recipe.function} for {bundle.recipe.host.name}: {size / MEGABYTE:.1f} MB {how}, "
                f"and at most {limit / MEGABYTE:.0f} MB are allowed; nothing was written"
            )
            raise RefusedBundleError(message)


def _move(made: Path, folder: Path) -> None:
    """Copy beside each file's place, then rename over it: nobody meets half a file."""
    with tempfile.TemporaryDirectory(prefix=".new-", dir=folder) as name:
        beside = Path(name)
        names = [path.name for path in sorted(made.iterdir())]
        for file in names:
            shutil.copyfile(made / file, beside / file)
        for file in names:
            (beside / file).replace(folder / file)
        sums = beside / SUMS
        sums.write_bytes(sums_of(folder).encode())
        sums.replace(folder / SUMS)


_BEGINNING = (1980, 1, 1, 0, 0, 0)  # the first time that a zip can tell
_UNIX = 3
_FILE_MODE = 0o100644 << 16
_LEVEL = 9


def write_zip(target: Path, files: Mapping[str, Path]) -> int:
    """Write `files`, by their names in the zip; the bytes they take unpacked."""
    unpacked = 0
    with zipfile.ZipFile(target, "w") as archive:
        for name in sorted(files):
            entry = zipfile.ZipInfo(name, _BEGINNING)
            entry.create_system, entry.external_attr = _UNIX, _FILE_MODE
            body = files[name].read_bytes()
            unpacked += len(body)
            archive.writestr(entry, body, zipfile.ZIP_DEFLATED, _LEVEL)
    return unpacked


def sha256_of(path: Path) -> str:
    """The file's hash in hexadecimal."""
    digest = hashlib.sha256()
    with path.open("rb") as source:
        while block := source.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


def sums_of(folder: Path) -> str:
    """The hashes of every bundle and its bill of materials in the folder, as `sha256sum --check` reads them."""
    names = sorted(path.name for pattern in ("*.zip", "*.cdx.json") for path in folder.glob(pattern))
    return "".join(f"{sha256_of(folder / name)}  {name}\n" for name in names)


_PACKAGE = "costguard"
_FROM = re.compile(r"^[ \t]*from[ \t]+(?P<module>[\w.]+)[ \t]+import[ \t]+(?P<names>\([^)]*\)|[^\n]*)", re.MULTILINE)
_IMPORT = re.compile(r"^[ \t]*import[ \t]+(?P<names>[^\n#]*)", re.MULTILINE)
_WORDS = re.compile(r"[\w.]+")
_MESSAGES = "locale/*/LC_MESSAGES/*.mo"
_REMARK = re.compile(r"#[^\n]*")
_ALWAYS = ("costguard.faas.container",)  # what an image starts in place of a host's own runtime
_BY_NAME = ("costguard.engine.guards.", "costguard.providers.")
"""Of these every module: some are loaded by name, which no import tells (`registry.py`, `connections/clouds.py`)."""

_BESIDE = {f'build_handler("{IDLE_GPU}")': "costguard.faas.phases"}
"""What else the bundle of a function is deployed as: the phases of a run, each with a handler setting of its own."""


def modules_of(package: Path) -> Mapping[str, Path]:
    """Every module of the package by its name."""
    found = {}
    for path in sorted(package.rglob("*.py")):
        parts = (_PACKAGE, *path.relative_to(package).with_suffix("").parts)
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def reached(package: Path, handler: str) -> Mapping[str, Path]:
    """What `handler`, the text of a function's file, leads to, by path inside the zip.

    Imports are read, not run, and none are relative. What is imported for types alone comes along, and does no harm.
    What is loaded by name comes along whole. A package brings its compiled messages.
    """
    modules = modules_of(package)
    waiting = [*_imported(handler), *_ALWAYS, *(name for mark, name in _BESIDE.items() if mark in handler)]
    waiting += [name for name in modules if name.startswith(_BY_NAME)]
    seen: set[str] = set()
    while waiting:
        name = waiting.pop()
        if name in seen or name not in modules:
            continue
        seen.add(name)
        waiting.append(name.rpartition(".")[0])
        waiting.extend(_imported(modules[name].read_text("utf-8")))
    found = [modules[name] for name in sorted(seen)]
    found += [file for path in found if path.name == "__init__.py" for file in sorted(path.parent.glob(_MESSAGES))]
    return {f"{_PACKAGE}/{path.relative_to(package).as_posix()}": path for path in found}


def _imported(text: str) -> Iterable[str]:
    """By lines rather than by syntax, which takes twenty times as long; a line of a docstring does no harm."""
    for match in _FROM.finditer(text):
        yield match["module"]
        yield from (f"{match['module']}.{name}" for name in _WORDS.findall(_REMARK.sub("", match["names"])))
    for match in _IMPORT.finditer(text):
        yield from _WORDS.findall(match["names"])


_SPACE = uuid.uuid5(uuid.NAMESPACE_URL, "https://cyclonedx.org/")
_LONGEST_NAME = 80  # a longer "License" is the licence's own text


@dataclass(frozen=True, slots=True)
class Part:
    """One package as it ships: the wheel's hash, and what its metadata tell of licences."""

    pin: Pin
    sha256: str
    metadata: str
    narrowed: bool = False


@dataclass(frozen=True, slots=True)
class Whole:
    """The bundle. `built_with` tells what compiled it, empty where nothing did."""

    function: str
    host: str
    python: str
    arch: str
    ledger: str
    version: str
    zip_sha256: str
    built_with: str


def bill_of(whole: Whole, parts: Sequence[Part]) -> str:
    """The document's text."""
    root = f"costguard-{whole.function}@{whole.version}"
    refs = {part.pin.name: _purl(part.pin) for part in parts}
    wants: dict[str, list[str]] = {root: [], **{ref: [] for ref in refs.values()}}
    for part in parts:
        for asker in part.pin.asked_by:
            if asker in refs or not asker:
                wants[refs.get(asker, root)].append(refs[part.pin.name])
    about = {
        "host": whole.host,
        "python": whole.python,
        "architecture": whole.arch,
        "ledger": whole.ledger,
        "compiled-with": whole.built_with or "nothing",
    }
    document = {
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": f"urn:uuid:{uuid.uuid5(_SPACE, whole.zip_sha256)}",
        "version": 1,
        "metadata": {
            "component": {
                "type": "application",
                "bom-ref": root,
                "name": f"costguard-{whole.function}",
                "version": whole.version,
                "hashes": [_sha256(whole.zip_sha256)],
                "licenses": [{"license": {"id": "Apache-2.0"}}],
                "properties": [{"name": f"costguard:{name}", "value": value} for name, value in about.items()],
            }
        },
        "components": [_component(part) for part in parts],
        "dependencies": [{"ref": ref, "dependsOn": sorted(wanted)} for ref, wanted in sorted(wants.items())],
    }
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


def _component(part: Part) -> Mapping[str, Any]:
    """The hash is that of the wheel as published; files that cannot be reached are left out of the bundle."""
    told = HeaderParser().parsestr(part.metadata)
    component: dict[str, Any] = {
        "type": "library",
        "bom-ref": _purl(part.pin),
        "name": part.pin.name,
        "version": part.pin.version,
        "hashes": [_sha256(part.sha256)],
        "purl": _purl(part.pin),
    }
    summary = str(told.get("Summary") or "").strip()
    licences = _licences(told)
    component |= {"description": summary} if summary else {}
    component |= {"licenses": licences} if licences else {}
    if part.narrowed:
        component["properties"] = [{"name": "costguard:left-out", "value": "files that no function can reach"}]
    return component


def _licences(told: Any) -> list[Mapping[str, Any]]:
    """An SPDX expression where the package has one, else what it wrote, else its classifiers."""
    expression = str(told.get("License-Expression") or "").strip()
    if expression:
        return [{"expression": expression}]
    named = str(told.get("License") or "").strip()
    if named and len(named) <= _LONGEST_NAME and "\n" not in named:
        return [{"license": {"name": named}}]
    prefix = "License :: "
    found = [value.rpartition(" :: ")[2] for value in told.get_all("Classifier", []) if value.startswith(prefix)]
    return [{"license": {"name": name}} for name in sorted(set(found))]


def _purl(pin: Pin) -> str:
    return f"pkg:pypi/{pin.name}@{pin.version}"


def _sha256(digest: str) -> Mapping[str, str]:
    return {"alg": "SHA-256", "content": digest}
