"""The function edge: `build_handler` makes what Lambda, Function Compute and SCF call."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import IO, TYPE_CHECKING, Any

from costguard.domain.errors import CostguardError, InvalidInputError
from costguard.faas.invocation import (
    Host,
    Invocation,
    parse_invocation,
    recognise_host,
    request_id_of,
    settings_of_call,
)
from costguard.faas.logs import Redactor, start_logging, write_metrics
from costguard.policy.syntax.problems import printable
from costguard.ports import Clock
from costguard.settings import Settings, process_settings, references_in

if TYPE_CHECKING:
    from costguard.connections.secrets import SecretKeeper
    from costguard.faas.http import HttpReply, HttpRequest

log = logging.getLogger(__name__)
_LONGEST_PATH = 100

Handler = Callable[[Any, Any], dict[str, object]]
AnswerRequest = Callable[["HttpRequest", Settings, Clock], "HttpReply"]
"""A request from outside, settings, clock → what is answered, as `slack_actions.answer_request` does."""
Run = Callable[[str, str, "datetime | None", Settings, Clock], Mapping[str, object]]
"""Function, run id, deadline, settings, clock → a summary (`engine.run.summary`), as `bootstrap.run_function` does."""
ReadSecrets = Callable[[Settings, Clock], Settings]
"""The settings with the secrets that they refer to, as `KeptSecrets` does."""


def build_handler(
    function: str,
    *,
    run: Run | None = None,
    settings: Callable[[], Settings] = process_settings,
    clock: Clock | None = None,
    stream: IO[str] | None = None,
    secrets: ReadSecrets | None = None,
    measured: bool = True,
) -> Handler:
    """What a host calls with `(event, context)`; one handler serves Lambda, FC and SCF.

    It answers the run's summary as plain JSON, and raises what went wrong, so that the host retries, counts and
    alarms. `run`, `clock`, `stream` and `secrets` are this program's own unless given; they are loaded at the first
    call, so that the host's import of the function stays small and an import that fails is logged like any other.
    `measured` False writes no metrics: what is called is only a part of a run.
    """
    secrets = secrets or KeptSecrets()

    def handle(event: Any, context: Any) -> dict[str, object]:
        """Run the function once."""
        call = _Call(function, recognise_host(event, context), request_id_of(context), stream)
        try:
            said = settings()
            watch = clock or _own_clock(said)
            call.read_settings(said, context, secrets, watch)
            invocation = parse_invocation(event, context, function=function, now=watch.now(), host=call.host)
            return call.answer(invocation, run or _own_run(), watch, measured=measured)
        except Exception as err:
            call.start_logging()  # again: nothing may be set up yet, or another has set it up since
            log.exception("run failed")
            clean = call.redactor.clean_error(err)
            if clean is None:
                raise
            raise RunFailedError(clean) from None

    return handle


def build_http_handler(
    function: str,
    *,
    answer: AnswerRequest | None = None,
    settings: Callable[[], Settings] = process_settings,
    clock: Clock | None = None,
    stream: IO[str] | None = None,
    secrets: ReadSecrets | None = None,
) -> Handler:
    """What a host calls with `(event, context)` for each request that came over HTTP.

    It never raises: hosts show whoever sent the request what a function raised. What went wrong is in the log.
    """
    from costguard.faas.http import HttpReply, write_reply

    secrets = secrets or KeptSecrets()

    def handle(event: Any, context: Any) -> dict[str, object]:
        """Answer one request."""
        call = _Call(function, _host_of_request(event, context), request_id_of(context), stream)
        try:
            said = settings()
            watch = clock or _own_clock(said)
            call.read_settings(said, context, secrets, watch)
            reply = call.reply(event, answer or _own_answer(function), watch)
        except Exception:
            call.start_logging()
            log.exception("request failed")
            reply = HttpReply(500, "Costguard could not answer this just now.\nCostguard 暂时无法处理。\n")
        return write_reply(reply, call.host)

    return handle


class RunFailedError(CostguardError):
    """Stands for an error whose own words hold a secret: hosts write what reaches them to their logs."""


class KeptSecrets:
    """Reads the secrets that settings refer to, and keeps them for the further calls of one process for a while."""

    def __init__(self) -> None:
        self._keeper: SecretKeeper | None = None
        self._told = False

    def __call__(self, settings: Settings, clock: Clock) -> Settings:
        """The settings with those secrets; where they refer to none, nothing is loaded for it.

        What stands in the environment in plain text works as well, and is told to the log once.
        """
        if settings.plaintext and settings.host != Host.LOCAL.value and not self._told:
            self._told = True
            log.warning("secrets in plain text", extra={"settings": list(settings.plaintext)})
        if not references_in(settings):
            return settings
        if self._keeper is None:
            from costguard.connections.secrets import SecretKeeper

            self._keeper = SecretKeeper()
        return self._keeper.settled(settings, clock.now())


class _Call:
    """One call of a function, while it is being answered."""

    def __init__(self, function: str, host: Host, request_id: str, stream: IO[str] | None) -> None:
        self.host = host
        self.redactor = Redactor()
        self._settings = Settings()
        self._fields: dict[str, object] = {"function": function, "host": host.value, "request_id": request_id}
        self._stream = stream

    def read_settings(self, settings: Settings, context: object, secrets: ReadSecrets, clock: Clock) -> None:
        """Know the secrets and the host, and log accordingly; the host's own mark goes before the event's shape.

        Secrets kept elsewhere are read with the keys of this call.
        """
        named = Host(settings.host)
        self.host = self.host if named is Host.LOCAL else named
        self._settings = settings_of_call(settings, context, self.host)
        self._fields |= {"host": self.host.value, "service": settings.deployment}
        self._keep_quiet_of(settings)
        self._settings = secrets(self._settings, clock)
        self._keep_quiet_of(settings)

    def _keep_quiet_of(self, settings: Settings) -> None:
        self.redactor = Redactor.of((*settings.secrets(), *self._settings.secrets()))
        self.start_logging()

    def start_logging(self) -> None:
        """Every line from now on carries what is known of this call."""
        start_logging(self.host, self._fields, self.redactor, level=self._settings.log_level, stream=self._stream)

    def answer(self, invocation: Invocation, run: Run, clock: Clock, *, measured: bool) -> dict[str, object]:
        """Run, and tell logs, metrics and the caller what came of it."""
        started = clock.now()
        self._fields["run_id"] = invocation.run_id
        self.start_logging()
        about = _about(invocation)
        log.info("run started", extra=about)
        summary = run(invocation.function, invocation.run_id, invocation.deadline, self._settings, clock)
        figures = _figures(summary) | {"duration_seconds": (clock.now() - started).total_seconds()}
        duplicate = bool(summary.get("duplicate"))
        log.info("run finished", extra={"duplicate": duplicate, **figures})
        if measured and not duplicate:
            service = self._settings.deployment
            write_metrics(self.host, invocation.function, figures, service=service, stream=self._stream)
        return {**summary, **about, "run_id": invocation.run_id}

    def reply(self, event: object, answer: AnswerRequest, clock: Clock) -> HttpReply:
        """Answer a request, and tell the log how: what was said in it stays out."""
        from costguard.faas.http import HttpReply, TooLargeError, read_request

        started = clock.now()
        try:
            request = read_request(event, self.host)
        except InvalidInputError as err:
            log.warning("request refused", extra={"cause": str(err)})
            return HttpReply(413 if isinstance(err, TooLargeError) else 400, "Costguard does not understand this.\n")
        reply = answer(request, self._settings, clock)
        took = round((clock.now() - started).total_seconds() * 1000)
        path = printable(request.path[:_LONGEST_PATH])
        facts = {"method": request.method, "path": path, "status": reply.status, "duration_ms": took}
        log.info("request answered", extra=facts)
        return reply


def _about(invocation: Invocation) -> dict[str, object]:
    return {
        "scheduled_at": invocation.scheduled_at.isoformat(),
        "scheduled_at_assumed": invocation.scheduled_at_assumed,
    }


def _figures(summary: Mapping[str, object]) -> dict[str, float]:
    """Counts of a run; the share unmeasured only where anything was judged."""
    verdicts = summary.get("findings")
    counts = {str(key): _number(value) for key, value in verdicts.items()} if isinstance(verdicts, Mapping) else {}
    total = sum(counts.values())
    figures = {"findings": total, **{name: _number(summary.get(name)) for name in ("due", "done", "held", "gaps")}}
    if total:
        figures["unmeasured_percent"] = round(100 * counts.get("unmeasured", 0) / total, 2)
    return figures


def _number(value: object) -> float:
    return value if isinstance(value, (int, float)) else 0


def _host_of_request(event: object, context: object) -> Host:
    """By the context, as of every event; without one, by the form of the request."""
    from costguard.faas.http import host_of_request

    host = recognise_host(event, context)
    return host_of_request(event) if host is Host.LOCAL else host


def _own_clock(settings: Settings) -> Clock:
    from costguard.bootstrap import own_clock

    return own_clock(settings)


def _own_run() -> Run:
    from costguard.bootstrap import run_function

    return run_function


def _own_answer(function: str) -> AnswerRequest:
    from costguard.faas import slack_actions

    known = {"slack_actions": slack_actions.answer_request}
    if function not in known:
        message = f"no function {function!r} answers requests; there is {', '.join(known)}"
        raise InvalidInputError(message)
    return known[function]
