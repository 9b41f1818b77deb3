"""What of a wheel stays out of a bundle: files nothing here can reach, each with its reason. Pure.

`aliyun-python-sdk-core` imports `cryptography` (with `cffi` and `pycparser` 5.4 MB of every zip, and 0.1 s of a start)
when it is loaded, for its signer of RSA key pairs. Costguard signs with access keys and tokens of roles, by HMAC-SHA1.
In a bundle the four imports stand in the function that uses them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from costguard.providers.aws.iam.permissions import KNOWN_OPERATIONS

_EVERYWHERE = re.compile(
    r"""(?x) .*\.(pyi|pyx|pxd|c|h|pyc|exe)                # for editors, compilers and other systems
    | .*/__pycache__/.*
    | .*\.dist-info/(?!METADATA$|entry_points\.txt$|licen[cs]es/|LICEN[CS]E|COPYING|NOTICE|AUTHORS).*  # an installer's
    | .*\.data/.*                                          # scripts and manual pages
    | (.*/)?tests?/.*"""
)

LEFT_OUT: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "aws-lambda-powertools": (  # the logger and metrics are used
            "event_handler/",
            "utilities/(batch|data_classes|data_masking|feature_flags|idempotency|kafka|parameters)/",
            "utilities/(parser|serialization|streaming|validation)/",
        ),
        "python-dateutil": ("zoneinfo/.*[.]tar[.]gz",),  # a copy of the zones; tzdata ships
        "boto3": ("data/", "examples/"),  # resources, and examples for printed documentation
        "sqlalchemy": (
            "testing/|ext/|orm/|dialects/(mssql|mysql|oracle)/",  # Core on SQLite and PostgreSQL is used
            "cyextension/|.*_cy[.][^/]*so",  # 2.7 MB to make many rows quicker; plain Python does it else
        ),
        "slack-sdk": (  # messages and windows are all that is sent
            "(oauth|socket_mode|rtm|rtm_v2|audit_logs|scim)/",
            "web/(async|legacy)_[^/]*",
        ),
        "matplotlib": (  # PNG and SVG are drawn, in its own sans serif
            "mpl-data/(sample_data|images)/|mpl-data/fonts/(afm|pdfcorefonts)/|mpl-data/fonts/ttf/(?!DejaVuSans|Last|LIC)",
            "backends/(web_backend|qt_editor)/",
        ),
        "fonttools": ("(?!misc/)[a-zA-Z_]+/|.*[.]so",),  # names of glyphs alone: the rest is for PDF and PostScript
        "numpy": ("(f2py|distutils|testing|_pyinstaller)/",),
        "pillow": (  # PNG files alone are written; nothing is set in its own type
            "_(avif|webp|imagingft|imagingtk|imagingcms)[.].*[.]so",
            "lib(avif|harfbuzz|freetype|lcms2|brotli[a-z]*)-[^/]*",
        ),
    }
)
"""By package: regular expressions over paths below its own folder."""

_WHOLE_TOPS: Mapping[str, tuple[str, ...]] = MappingProxyType({"slack-sdk": ("slack/",)})  # a former name of it

WITH_SOURCES = frozenset({"psycopg", "psycopg-binary"})
"""Packages under the LGPL, which ship as they can be changed and put back."""

_SERVICES_BESIDE = frozenset({"dynamodb", "s3", "secretsmanager"})  # the ledger, files in a bucket, settings `secret:…`
_BOTOCORE_DATA = re.compile(r"botocore/data/(?P<service>[^/]+)/(?P<version>[^/]+)/(?P<file>[^/]+)")
_KEPT_MODELS = ("service-2.", "endpoint-rule-set-1.", "service-2.sdk-extras.")
_LISTS = ("paginators-1.", "waiters-2.")


def aws_services() -> frozenset[str]:
    """The services that are ever called, by the names of the SDK's data folders."""
    return frozenset(name.partition(":")[0] for name in KNOWN_OPERATIONS) | _SERVICES_BESIDE


def keeps(package: str, path: str, newest: Mapping[str, str]) -> bool:
    """Whether a file of `package` ships; `newest` is each AWS service's last API version."""
    if _EVERYWHERE.fullmatch(path):
        return False
    if package == "botocore" and (match := _BOTOCORE_DATA.fullmatch(path)):
        service, name = match["service"], match["file"]
        return (
            service in aws_services()
            and newest.get(service) == match["version"]
            and name.startswith((*_KEPT_MODELS, *_LISTS))
        )
    if path.startswith(_WHOLE_TOPS.get(package, ("\0",))):
        return False
    below = path.partition("/")[2]
    return not any(re.match(pattern, below) for pattern in LEFT_OUT.get(package, ()))


def newest_versions(paths: tuple[str, ...]) -> Mapping[str, str]:
    """The last API version of every AWS service whose model is among `paths`."""
    newest: dict[str, str] = {}
    for path in paths:
        if (match := _BOTOCORE_DATA.fullmatch(path)) and match["file"].startswith("service-2.json"):
            newest[match["service"]] = max(newest.get(match["service"], ""), match["version"])
    return newest


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
