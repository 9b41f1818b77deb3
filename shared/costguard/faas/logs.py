"""One shape of log line on every host: JSON with a constant message and facts as fields, secrets blanked.

On Lambda the lines and metrics are made by Powertools; elsewhere the same keys are made by the standard library.
Only the logger `costguard` is set up; the host keeps its own for everything else. On FC and SCF that is made to
write less: their runtimes leave the root logger at INFO and DEBUG, where SDKs write whole requests with their tokens.
"""

from __future__ import annotations

import json
import logging
import re
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import IO, TYPE_CHECKING, Any
from urllib.parse import quote, unquote

from costguard.faas.invocation import Host

BLANK = "***"

_SHORTEST = 6  # a shorter "secret" would blank ordinary words; real tokens have 20 characters and more

_SIGNED = re.compile(
    r"""(?ix) (?<![a-z0-9])
    ( x-amz-(?:signature|credential|security-token) | awsaccesskeyid      # S3
    | ossaccesskeyid | security-?token | signature | accesskeyid          # Alibaba Cloud
    | q-ak | q-signature | x-cos-security-token                           # Tencent COS
    | sig | access_token | token | secret | password )
    = [^&\s"'<>\\]+"""
)
_USER_INFO = re.compile(r"(?<=://)[^/\s@\"']*:[^/\s@\"']*(?=@)")
_WEB = re.compile(r"https?://[^\s\"'<>\\]+")
_TOKEN_IN_PATH = re.compile(r"(?<=/)(?=[A-Za-z_-]*[0-9])[A-Za-z0-9_-]{20,}(?![A-Za-z0-9_.-])")  # hooks of any vendor
_TOKENS = re.compile(
    r"""(?x) xox[a-z]-[A-Za-z0-9-]+ | xapp-[A-Za-z0-9-]+ | hooks\.slack\.com/[A-Za-z0-9/_-]+   # Slack
    | \bck1-[A-Za-z0-9_-]{20,} | (?<=/bot/v2/hook/)[A-Za-z0-9_-]+    # Keep links, hooks of chat robots
    | (?<=/webhook/send\?key=)[A-Za-z0-9_-]+ | \bSEC[0-9a-f]{64}\b
    | \b(?:AKIA|ASIA)[A-Z0-9]{16}\b | \bLTAI[A-Za-z0-9]{12,26}\b   # access key ids
    | \bSTS\.[A-Za-z0-9]{12,} | \bAKID[A-Za-z0-9_-]{13,}           # those of roles, 68 characters at Tencent Cloud
    | (?<=Bearer\ )[A-Za-z0-9._~+/=-]+"""
)


@dataclass(frozen=True, slots=True)
class Redactor:
    """Blanks `values`, in every form they take inside JSON and addresses, and whatever looks like a credential."""

    values: tuple[str, ...] = ()

    @classmethod
    def of(cls, secrets: Iterable[str]) -> Redactor:
        """A redactor for these secrets as they are, JSON-escaped, and percent-encoded or decoded."""
        forms = {form for secret in secrets for form in _forms(secret) if len(form) >= _SHORTEST}
        return cls(tuple(sorted(forms, key=len, reverse=True)))  # the longest first: one may contain another

    def clean(self, text: str) -> str:
        """`text` without secrets."""
        for value in self.values:
            text = text.replace(value, BLANK)
        text = _USER_INFO.sub(BLANK, text)
        text = _SIGNED.sub(rf"\1={BLANK}", text)
        text = _WEB.sub(lambda address: _TOKEN_IN_PATH.sub(BLANK, address[0]), text)
        return _TOKENS.sub(BLANK, text)

    def clean_error(self, error: BaseException) -> str | None:
        """The words of `error` without secrets; None where neither it nor what caused it holds any."""
        words = f"{type(error).__name__}: {error}"
        link: BaseException | None = error
        seen: list[BaseException] = []
        while link is not None and not any(link is earlier for earlier in seen):
            if self.clean(str(link)) != str(link):
                return self.clean(words)
            seen.append(link)
            link = link.__cause__ or link.__context__
        return None


def _forms(secret: str) -> tuple[str, ...]:
    plain = {secret, unquote(secret)}
    return (
        *plain,
        *(quote(form, safe="") for form in plain),
        *(json.dumps(form, ensure_ascii=ascii_only)[1:-1] for form in plain for ascii_only in (True, False)),
    )


SERVICE = "costguard"  # the logger's name; in lines and figures, until a call knows what its deployment is called
NAMESPACE = "Costguard"

_STANDARD = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}


class JsonFormatter(logging.Formatter):
    """The keys that Powertools writes on Lambda, in their order, made without it."""

    def __init__(self, fields: Mapping[str, object]) -> None:
        super().__init__()
        self._fields = fields

    def format(self, record: logging.LogRecord) -> str:
        """One line of JSON."""
        at = datetime.fromtimestamp(record.created, tz=timezone.utc)
        line: dict[str, Any] = {
            "level": record.levelname,
            "location": f"{record.funcName}:{record.lineno}",
            "message": record.getMessage(),
            "timestamp": at.isoformat(timespec="milliseconds"),
            "service": SERVICE,
            **self._fields,
            **{key: value for key, value in vars(record).items() if key not in _STANDARD},
        }
        if record.exc_info and record.exc_info[0] is not None:
            line["exception"] = self.formatException(record.exc_info)
            line["exception_name"] = record.exc_info[0].__name__
        return json.dumps(
            {key: value for key, value in line.items() if value is not None},
            default=str,
            separators=(",", ":"),
            ensure_ascii=False,
        )


if TYPE_CHECKING:
    _StreamHandler = logging.StreamHandler[IO[str]]
else:
    _StreamHandler = logging.StreamHandler  # takes no type parameter on Python 3.10


class CleanHandler(_StreamHandler):
    """Writes lines with secrets blanked at the very end, so that no field and no traceback escapes."""

    redactor = Redactor()

    def format(self, record: logging.LogRecord) -> str:
        """The formatted line, blanked."""
        return self.redactor.clean(super().format(record))


class _CleanFormatter(logging.Formatter):
    """Blanks what another formatter has made."""

    def __init__(self, inner: logging.Formatter) -> None:
        super().__init__()
        self.inner = inner
        self.redactor = Redactor()

    def format(self, record: logging.LogRecord) -> str:
        return self.redactor.clean(self.inner.format(record))


def start_logging(
    host: Host, fields: Mapping[str, object], redactor: Redactor, *, level: str = "INFO", stream: IO[str] | None = None
) -> None:
    """From now on write the lines of the logger `costguard`, each with `fields`; replaces what an earlier call set.

    Hosts collect standard output; `local` keeps it free for results and writes to standard error.
    """
    logger = logging.getLogger(SERVICE)
    logger.propagate = False  # the host's own handler would write every line again, as text
    handler = next((old for old in logger.handlers if isinstance(old, CleanHandler)), None) or CleanHandler()
    handler.redactor = redactor
    handler.setStream(stream or _output_of(host))
    logger.addHandler(handler)
    handler.setFormatter(_powertools(handler, fields, level) if host is Host.LAMBDA else JsonFormatter(fields))
    logger.setLevel(level)
    if host in {Host.FC, Host.SCF}:
        _quieten_the_others(redactor)


def _quieten_the_others(redactor: Redactor) -> None:
    """Libraries, and the host itself, write through the root's handlers: warnings and worse, blanked."""
    root = logging.getLogger()
    root.setLevel(max(root.level, logging.WARNING))
    for handler in root.handlers:
        made_by = handler.formatter or logging.Formatter()
        clean = made_by if isinstance(made_by, _CleanFormatter) else _CleanFormatter(made_by)
        clean.redactor = redactor
        handler.setFormatter(clean)


def write_metrics(
    host: Host, function: str, figures: Mapping[str, float], *, service: str, stream: IO[str] | None = None
) -> None:
    """The figures of a finished run as CloudWatch metrics, on Lambda only (a line in its log, in EMF).

    `service` is the deployment's name, so that two in one region do not write the same figures: each one's alarms on
    missed runs would see the other's runs.
    Units are told by the names: `…_percent`, `…_seconds`, and counts.
    """
    if host is not Host.LAMBDA:
        return
    from aws_lambda_powertools.metrics import EphemeralMetrics, MetricUnit

    metrics = EphemeralMetrics(namespace=NAMESPACE, service=service)
    metrics.add_dimension(name="function", value=function)
    units = {"percent": MetricUnit.Percent, "seconds": MetricUnit.Seconds}
    for name, value in figures.items():
        metrics.add_metric(name=_camel(name), unit=units.get(name.rpartition("_")[2], MetricUnit.Count), value=value)
    print(json.dumps(metrics.serialize_metric_set(), separators=(",", ":")), file=stream or _output_of(host))


def _output_of(host: Host) -> IO[str]:
    return sys.stderr if host is Host.LOCAL else sys.stdout


def _powertools(handler: logging.Handler, fields: Mapping[str, object], level: str) -> logging.Formatter:
    """The formatter of a Powertools logger; Powertools keeps one a process, whose keys are ours to replace."""
    from aws_lambda_powertools import Logger
    from aws_lambda_powertools.logging.formatter import LambdaPowertoolsFormatter

    formatter = LambdaPowertoolsFormatter(
        use_rfc3339=True,
        utc=True,
        serialize_stacktrace=False,  # `exception` has it as text already
        service=SERVICE,
        xray_trace_id=None,  # one shape on every host; `request_id` finds the trace
    )
    formatter.append_keys(**fields)
    Logger(service=SERVICE, level=level, logger_handler=handler, logger_formatter=formatter)
    return formatter


def _camel(name: str) -> str:
    """`unmeasured_percent` → `UnmeasuredPercent`, as CloudWatch names metrics."""
    return "".join(part.capitalize() for part in name.split("_"))
