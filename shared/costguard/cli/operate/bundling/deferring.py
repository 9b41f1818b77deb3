"""Imports of other people's code that are made late, so that what nothing here calls need not ship.

`aliyun-python-sdk-core` imports `cryptography` (with `cffi` and `pycparser` 5.4 MB of every zip, and 0.1 s of a start)
when it is loaded, for its signer of RSA key pairs. Costguard signs with access keys and tokens of roles, by HMAC-SHA1.
In a bundle the four imports stand in the function that uses them. Pure.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType


@dataclass(frozen=True, slots=True)
class Deferred:
    """One file in which imports of `spares` move from the top to the first lines of `function`."""

    path: str
    spares: str
    function: str


DEFERRED: Mapping[str, Deferred] = MappingProxyType(
    {
        "aliyun-python-sdk-core": Deferred(
            "aliyunsdkcore/auth/algorithm/sha_hmac256.py", "cryptography", "def get_sign_string(source, access_secret):"
        )
    }
)
"""By package."""

SPARED = frozenset(deferred.spares for deferred in DEFERRED.values())
"""Packages that do not ship for it."""


def deferred_file(package: str, path: str, body: bytes) -> bytes | None:
    """The file with its imports made late; None where it is another one, or no longer has their form."""
    about = DEFERRED.get(package)
    if about is None or about.path != path:
        return None
    lines = body.decode("utf-8").splitlines(keepends=True)
    late = [line for line in lines if line.startswith(f"from {about.spares}")]
    rest = [line for line in lines if line not in late]
    heads = [number for number, line in enumerate(rest) if line.strip() == about.function]
    if not late or len(heads) != 1 or any(about.spares in line for line in rest):
        return None
    after = heads[0] + 1
    return "".join((*rest[:after], *(f"    {line}" for line in late), *rest[after:])).encode()
