"""Builds bundles: everything is made aside, and moved to its place only when all of it is there."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from costguard.cli.operate.bundling.archive import sha256_of, sums_of, write_zip
from costguard.cli.operate.bundling.compiling import Interpreter, compile_tree
from costguard.cli.operate.bundling.faults import RefusedBundleError
from costguard.cli.operate.bundling.locks import Pin, needed
from costguard.cli.operate.bundling.material import Material
from costguard.cli.operate.bundling.reach import reached
from costguard.cli.operate.bundling.recipes import MEGABYTE, UNZIPPED_LIMIT, Recipe
from costguard.cli.operate.bundling.sbom import Part, Whole, bill_of
from costguard.cli.operate.bundling.trimming import WITH_SOURCES
from costguard.cli.operate.bundling.unpacking import Unpacked, unpack
from costguard.cli.operate.bundling.wheels import Wanted, fetch, in_folder
from costguard.cli.operate.distribution import own_version

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
    wanted = Wanted(one.python, one.host.glibc, one.arch)
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
