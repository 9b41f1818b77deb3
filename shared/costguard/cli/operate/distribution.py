"""What this program is called where packages are installed from, and which release of it this is."""

from __future__ import annotations

import re
from hashlib import sha256
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from costguard.domain.errors import InvalidInputError

DISTRIBUTION = "gpu-costguard"
"""`costguard` on the package index is another program, with a command of the same name: docs/decisions/the-name.md."""

_LOCK = "cli.txt"
_HEAD = """\
# What CI installs, for Python 3.10 and newer: every package with its version and the hashes of its wheels.
--require-hashes
--only-binary :all:
"""
_UNHASHED = """\
# The hash of {name} itself is not here yet, so that pip refuses this file and CI installs nothing. It is known
# once the release is built: put its file ci-requirements.txt in the place of this one. Or take the wheel of release
# v{version}, make sure of it (gh attestation verify FILE --repo OWNER/REPO), and copy what this writes elsewhere:
#   costguard policy init FOLDER --wheel FILE
"""


def own_version() -> str:
    """The version that is installed.

    Raises:
        InvalidInputError: it was installed under another name.
    """
    try:
        return version(DISTRIBUTION)
    except PackageNotFoundError as err:
        message = f"{DISTRIBUTION} is not installed under that name; in a checkout: pip install --editable ."
        raise InvalidInputError(message) from err


def ci_requirements(locks: Path, wheel: str = "") -> str:
    """The lock of this release with all that it needs, for `pip install --require-hashes`.

    Without `wheel`, the file of this release, its own line has no hash: pip refuses all of it then.

    Raises:
        InvalidInputError: no such wheel, or not of this release; or this installation has no lock.
    """
    ours, number = DISTRIBUTION, own_version()
    try:
        rest = (locks / _LOCK).read_text("utf-8")
    except OSError as err:
        message = f"{locks / _LOCK}: cannot be read: {err.strerror}"
        raise InvalidInputError(message) from err
    if not wheel:
        return f"{_HEAD}{_UNHASHED.format(name=ours, version=number)}{ours}=={number}\n{rest}"
    return f"{_HEAD}{ours}=={number} --hash=sha256:{_hash_of(Path(wheel), number)}\n{rest}"


def _hash_of(wheel: Path, number: str) -> str:
    expected = f"{re.sub('[-_.]+', '_', DISTRIBUTION)}-{number}-py3-none-any.whl"
    if wheel.name != expected:
        message = f"{wheel}: not the wheel of this release; expected {expected}"
        raise InvalidInputError(message)
    try:
        return sha256(wheel.read_bytes()).hexdigest()
    except OSError as err:
        message = f"{wheel}: cannot be read: {err.strerror}"
        raise InvalidInputError(message) from err
