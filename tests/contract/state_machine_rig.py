"""The shipped state machine in moto's interpreter, whose Lambda tasks are our own handlers in this process."""

from __future__ import annotations

import io
import json
import threading
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import boto3
from moto import mock_aws
from moto.stepfunctions.parser.asl.component.state.exec.state_task import lambda_eval_utils

DEFINITION = Path(__file__).parents[2] / "infra/aws/organisation.asl.json"
REMOVED = ("ToleratedFailurePercentage", "IntervalSeconds")
"""What moto's interpreter refuses, and what would make a test wait; the rest of the definition is run as it is."""

PHASES = ("targets", "scan", "plan", "act", "report")
Handler = Callable[[Any, Any], Mapping[str, object]]


def definition(**figures: int) -> dict[str, Any]:
    """The shipped file with its places filled in as Terraform's `templatefile` does."""
    text = DEFINITION.read_text("utf-8")
    filled: dict[str, object] = {"partition": "aws", "scan_concurrency": 4, "act_concurrency": 2, **figures}
    for phase in PHASES:
        filled[phase] = f"arn:aws:lambda:us-east-1:123456789012:function:costguard-idle-gpu-{phase}"
    for name, value in filled.items():
        text = text.replace(f"${{{name}}}", str(value))
    read: dict[str, Any] = json.loads(text)
    return read


def without(value: Any, names: tuple[str, ...] = REMOVED) -> Any:
    """The same less the named fields, at any depth."""
    if isinstance(value, dict):
        return {name: without(each, names) for name, each in value.items() if name not in names}
    return [without(each, names) for each in value] if isinstance(value, list) else value


class Functions:
    """Stands for Lambda in the interpreter: `invoke` calls the handler of the function's last word."""

    def __init__(self, handlers: Mapping[str, Handler], context: Callable[[], Any]) -> None:
        self._handlers = handlers
        self._context = context
        self._one_at_a_time = threading.Lock()  # settings, logging and the sandbox belong to the process
        self.calls: list[tuple[str, Mapping[str, Any]]] = []
        self.failing: Callable[[str, Mapping[str, Any]], bool] = lambda _phase, _event: False

    def invoke(self, *, FunctionName: str, Payload: Any, **_: Any) -> dict[str, Any]:  # noqa: N803 - boto's names
        """What Lambda answers: the handler's result, or its error."""
        event = json.loads(Payload)
        phase = FunctionName.rpartition("-")[2]
        with self._one_at_a_time:
            self.calls.append((phase, event))
            if self.failing(phase, event):
                return _answer({"errorType": "Runtime.ExitError", "errorMessage": "killed"}, "Unhandled")
            try:
                return _answer(self._handlers[phase](event, self._context()))
            except Exception as err:  # noqa: BLE001 - what Lambda makes of it
                return _answer({"errorType": type(err).__name__, "errorMessage": str(err)}, "Unhandled")


def _answer(payload: Mapping[str, object], error: str = "") -> dict[str, Any]:
    answer: dict[str, Any] = {"StatusCode": 200, "Payload": io.BytesIO(json.dumps(payload).encode())}
    return {**answer, "FunctionError": error} if error else answer


@contextmanager
def interpreter() -> Iterator[Any]:
    """Moto with a client of Step Functions that really interprets."""
    with mock_aws(config={"stepfunctions": {"execute_state_machine": True}}):
        yield boto3.client("stepfunctions", region_name="us-east-1")


@contextmanager
def tasks_by(functions: Functions) -> Iterator[None]:
    """The interpreter's Lambda client is `functions`."""
    names = vars(lambda_eval_utils)
    before = names["boto_client_for"]
    names["boto_client_for"] = lambda **_: functions
    try:
        yield
    finally:
        names["boto_client_for"] = before


def state_machine(client: Any, machine: Mapping[str, Any]) -> str:
    """Its ARN, once it was read and accepted."""
    role = "arn:aws:iam::123456789012:role/costguard-organisation"
    made = client.create_state_machine(name="organisation", definition=json.dumps(machine), roleArn=role)
    return str(made["stateMachineArn"])


def executed(client: Any, machine: str, event: Mapping[str, object]) -> tuple[str, Any]:
    """Status and output of one execution."""
    started = client.start_execution(stateMachineArn=machine, name=uuid.uuid4().hex, input=json.dumps(event))
    waiting = threading.Event()
    for _ in range(600):
        told = client.describe_execution(executionArn=started["executionArn"])
        if told["status"] != "RUNNING":
            return told["status"], json.loads(told.get("output") or "null") if told["status"] == "SUCCEEDED" else told
        waiting.wait(0.05)
    raise AssertionError("the execution never ended")
