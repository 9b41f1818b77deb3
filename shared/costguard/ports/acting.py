"""What changes clouds or reaches people: one small port for each kind, so that no client can do more than it is for."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Protocol, TypeVar

from costguard.domain.actions import Action, LaunchFreeze, Receipt
from costguard.domain.answers import AnswerKind, AnswerRef
from costguard.domain.keys import EncryptionKey
from costguard.domain.refs import ResourceRef
from costguard.domain.remediations import Remediation


class KeyRotator(Protocol):
    """Gives keys new material, and can do nothing else to them: there is no way to disable, delete or import.

    Each call once per intent, never retried after an unknown outcome; what came of it is read back by `KeySource`.
    Errors as `ActionExecutor.execute`.
    """

    def set_period(self, key: EncryptionKey, days: int) -> Receipt:
        """Turn automatic rotation on with this period, or change the period."""

    def rotate(self, key: EncryptionKey) -> Receipt:
        """Rotate now, on demand."""


class KeySuccessor(Protocol):
    """Makes a new key in a key's place and moves an alias to it; nothing is disabled, deleted or imported.

    Each call once per intent, never retried after an unknown outcome. Errors as `ActionExecutor.execute`.
    """

    def create(self, key: EncryptionKey, decision: str) -> Receipt:
        """Make a key of the same spec, usage, policy and tags, with tags that say whose successor it is, and by what.

        Nothing else changes: nobody uses it before an alias is moved to it. `Receipt.native_id` is its id.
        """

    def move_alias(self, alias: str, holder: EncryptionKey, heir: EncryptionKey) -> Receipt:
        """Move an alias from the key that has it to another, proved by canaries before and after.

        What was done through the alias before is undone by `holder`, and what is done through it after by the key that
        did it; where either fails, the alias is moved back.

        Raises:
            RefusedError: nothing changed, or the alias was moved back (code `CanaryFailed`); its words say which.
            OutcomeUnknownError: the alias may be with either key; read before anything else.
        """


class NetworkRemediator(Protocol):
    """Changes one setting of a network at a time.

    It can release, detach and attach an address, revoke, replace and restore one rule of a group, begin and end flow
    logs, and set the metadata service of an instance; there is no way to delete a group, route, subnet or network.
    """

    def change(self, mend: Remediation, before: Mapping[str, str]) -> Receipt:
        """Make the change; `before` is the image it was decided on. Called once per intent, never retried.

        A cloud that can refuse a change to what has moved meanwhile is asked to. `Receipt.native_id` is the id of what
        was made, where something was (a flow log; the rules that replace one, with commas between).

        Raises:
            OutcomeUnknownError: the call may have taken effect; read before anything else.
            AccessDeniedError: the role lacks a permission listed in permissions.py.
            RefusedError: the cloud refused, or what is there is not what `before` says; nothing changed.
            ThrottledError: rejected before execution; nothing changed.
        """


class FreezeControl(Protocol):
    """Attaches and detaches the one denying policy of a launch freeze, and nothing else."""

    def attached(self, freeze: LaunchFreeze) -> tuple[str, ...]:
        """The ids of every policy attached to the freeze's target now, all pages.

        Raises:
            ProviderError: not read in full.
        """

    def attach(self, freeze: LaunchFreeze) -> Receipt:
        """Attach `freeze.policy` to its target. Called once per intent, never retried after an unknown outcome.

        Raises:
            OutcomeUnknownError: it may be attached; read `attached` before anything else.
            AccessDeniedError: the role lacks the permission, or this is not the policy it may attach.
            RefusedError: the cloud refused; nothing changed.
        """

    def detach(self, freeze: LaunchFreeze) -> Receipt:
        """Detach `freeze.policy` from its target; errors as `attach`."""


class KeepTagger(Protocol):
    """Writes the one tag of a Keep on a machine, and can neither write another nor remove any."""

    def write(self, machine: ResourceRef, value: str) -> Receipt:
        """Set `KEEP_TAG` to this; the same however often it is called.

        Raises:
            OutcomeUnknownError: it may be set; read the machine before anything else.
            AccessDeniedError: the role lacks the permission.
            RefusedError: the cloud refused; nothing changed.
            ThrottledError: rejected before execution; nothing changed.
        """


class ActionExecutor(Protocol):
    """Changes the cloud. Built only when a rule enforces; in observe there is none."""

    def execute(self, action: Action) -> Receipt:
        """Start `action`; return once the provider has accepted it. Accepted is not done.

        Called once per intent and never retried after an unknown outcome. One resource a call.

        Raises:
            OutcomeUnknownError: the call may have taken effect; describe before anything else.
            AccessDeniedError: the role lacks a permission listed in permissions.py.
            RefusedError: the cloud refused; nothing changed.
            ThrottledError: rejected before execution; nothing changed.
        """


@dataclass(frozen=True, slots=True)
class Choice:
    """One answer on offer below a part: a button where the channel has them, else a signed link for a `KEEP`, or words.

    `length` is how long a `KEEP` keeps; `asks` is the question to confirm what interrupts work.
    """

    kind: AnswerKind
    label: str
    of: AnswerRef
    length: timedelta | None = None
    asks: str = ""


@dataclass(frozen=True, slots=True)
class MessagePart:
    """What one message says of one decision, of several in it.

    `picture` is a line of block characters, the utilisation over the window. `status` is what became of it since
    (kept, stopped …): a part that has one offers no choices.
    """

    decision_id: str
    title: str
    fields: tuple[tuple[str, str], ...] = ()
    lines: tuple[str, ...] = ()
    picture: str = ""
    choices: tuple[Choice, ...] = ()
    status: str = ""


@dataclass(frozen=True, slots=True)
class Message:
    """A notice ready for a channel, neutral: each notifier lays it out in its channel's own form.

    `channel` is an address (`slack:#gpu-costs`), `fields` are label and value, `lines` closing sentences,
    `text` the whole as plain lines for channels and screens without layout. `parts` come between `fields` and `lines`,
    one for each decision it is about. Everything in it may come from outside (tags, names): notifiers escape.
    `thread` is the receipt of a message to reply under. `notice_id` is the same for every attempt to deliver one
    notice, so that a channel can tell a repetition; empty for what is sent only once.
    """

    channel: str
    title: str
    text: str
    fields: tuple[tuple[str, str], ...] = ()
    lines: tuple[str, ...] = ()
    thread: str = ""
    notice_id: str = ""
    parts: tuple[MessagePart, ...] = ()


@dataclass(frozen=True, slots=True)
class Delivery:
    """Proof that a channel took a message: Slack's `ts`, an SMTP 250, a webhook's 2xx, a robot's code 0."""

    receipt: str
    proves_delivery: bool = True


class Notifier(Protocol):
    """Brings one message to people."""

    def send(self, message: Message) -> Delivery:
        """Deliver now, once.

        Raises:
            RateLimitedError: try again after its `retry_after`.
            RejectedNoticeError: never deliverable as it is.
            NoticeError: not delivered for a passing reason.
        """

    def edit(self, receipt: str, message: Message) -> bool:
        """Show `message` in the place of the one with this receipt; False where the channel cannot change what it sent.

        Safe to repeat. No notice and no grace depends on it: what it would show is also replied in the thread.

        Raises:
            NoticeError: of one of its kinds, as `send`.
        """

    def capacity(self, message: Message) -> int:
        """How many of the first parts of `message`, with the rest of it, one message can hold; at least 1.

        Pure, asks nobody. Fewer than there are means: send the others in messages of their own.
        """


@dataclass(frozen=True, slots=True)
class PolicyText:
    """The files of a policy as read: path → text, in path order, and a revision (commit, ETag, or hash)."""

    files: Mapping[str, str]
    revision: str
    origin: str = ""


class PolicySource(Protocol):
    """Where policies are kept: a file, a folder, or an object store."""

    def read(self) -> PolicyText:
        """All policy files, whole.

        Raises:
            InvalidInputError: nothing there, or not text.
            ProviderError: the store could not be read.
        """


Result = TypeVar("Result")


class Clock(Protocol):
    """Time, given from outside."""

    def now(self) -> datetime:
        """The present moment, aware, UTC."""

    def sleep(self, seconds: float) -> None:
        """Wait: the outbox for its channel's Retry-After, a run for a step that is due within minutes; nothing else."""


class Workers(Protocol):
    """Independent reads side by side; what ends first is given first."""

    def each(self, tasks: Sequence[Callable[[], Result]]) -> Iterator[tuple[int, Result]]:
        """Begin every task; yield the place and the result of each as it ends. What a task raises is raised here."""
