"""From the text of a policy to the policy: every file read, every mistake told at once. Pure.

pydantic and ruamel.yaml are imported here and below only, so what never loads a policy never pays for them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta
from pathlib import PurePosixPath
from typing import Any, Protocol

from pydantic import TypeAdapter, ValidationError

from costguard.domain.errors import InvalidInputError
from costguard.domain.money import Discount, ExchangeRate
from costguard.guards.budget.rules import PriorityClass
from costguard.guards.rules.common import Protection, Selector
from costguard.policy.budget.checks import budgets_checked
from costguard.policy.documents import policy as d
from costguard.policy.documents.crosschecks import (
    Accepted,
    FileKind,
    PolicyFile,
    cross_checked,
    discounts_checked,
    entries,
)
from costguard.policy.documents.fields import Whole, made
from costguard.policy.documents.policy import (
    ExceptionDocument,
    HolidaysDocument,
    MainDocument,
    OwnerDocument,
    RulesDocument,
)
from costguard.policy.model.holidays import FILE as HOLIDAYS_FILE
from costguard.policy.model.holidays import HolidayDates, dates_of, file_text
from costguard.policy.model.policy import (
    MESSAGES_PER_DAY,
    Account,
    AnswerTerms,
    Exemption,
    Owner,
    Policy,
    PriceOverride,
    Prometheus,
    RolloutEntry,
    RolloutStep,
    Shadows,
    SignalSettings,
    with_policy_digest,
)
from costguard.policy.model.terms import with_digest
from costguard.policy.sections import SECTIONS
from costguard.policy.syntax.explain import explained
from costguard.policy.syntax.problems import (
    MAX_TOTAL_BYTES,
    Mark,
    Problem,
    did_you_mean,
    field_path,
    in_order,
    invalid,
    printable,
)
from costguard.policy.syntax.yaml12 import read_yaml
from costguard.policy.syntax.yaml_nodes import plain

MAX_FILES = 1000
_SUFFIXES = {".yaml", ".yml"}
_NAMED = {
    "costguard": FileKind.MAIN,
    "owners": FileKind.OWNERS,
    "exceptions": FileKind.EXCEPTIONS,
    "holidays": FileKind.HOLIDAYS,
}


class PolicyFiles(Protocol):
    """What a policy source hands over (`ports.PolicyText`): path → text, and where the files are from."""

    @property
    def files(self) -> Mapping[str, str]:
        """Every file by its path relative to the origin."""

    @property
    def origin(self) -> str:
        """The folder, file or bucket they were read from; only for messages."""


def load_policy(text: PolicyFiles) -> Policy:
    """The compiled policy.

    Raises:
        InvalidInputError: tells every mistake with file, line and column; there is no partial policy.
    """
    policy, problems = check_policy(text)
    if policy is None:
        raise invalid(problems)
    return policy


def check_policy(text: PolicyFiles) -> tuple[Policy | None, tuple[Problem, ...]]:
    """The policy, or None and every mistake, sorted by place."""
    files, found = _sorted_out(text)
    problems = list(found)
    models: list[tuple[PolicyFile, Any]] = []
    for file in files:
        problems += file.document.problems
        if file.document.root is None:
            continue
        adapter = _adapter(file.kind)
        try:
            models.append((file, adapter.validate_python(plain(file.document.root), strict=True)))
        except ValidationError as err:
            damaged = file.document.damaged
            problems += [each for each in explained(file.document, err, _MODELS[file.kind]) if each.mark not in damaged]
    problems += cross_checked(files)
    problems += budgets_checked(models)
    problems += discounts_checked(models)
    if problems:
        return None, in_order(problems)
    slow = tuple(slow_waits(models))
    if slow:
        return None, in_order(slow)
    return build_policy(models), ()


_MODELS: Mapping[FileKind, Any] = {
    FileKind.MAIN: MainDocument,
    FileKind.RULES: RulesDocument,
    FileKind.OWNERS: tuple[OwnerDocument, ...],
    FileKind.EXCEPTIONS: tuple[ExceptionDocument, ...],
    FileKind.HOLIDAYS: HolidaysDocument,
}


def _adapter(kind: FileKind) -> TypeAdapter[Any]:
    return TypeAdapter(_MODELS[kind])


def _sorted_out(text: PolicyFiles) -> tuple[Sequence[PolicyFile], Sequence[Problem]]:
    """Which file is what; a file nobody would read is a mistake, for it may hold an exception."""
    if len(text.files) > MAX_FILES:
        message = f"{len(text.files)} files are more than a policy has; at most {MAX_FILES}"
        return (), (Problem(text.origin, Mark(), "", message, "point at the folder of the policy itself"),)
    size = sum(len(each.encode("utf-8", "surrogatepass")) for each in text.files.values())
    if size > MAX_TOTAL_BYTES:
        message = f"the files of the policy are longer than {MAX_TOTAL_BYTES // 1024} KiB together"
        return (), (Problem(text.origin, Mark(), "", message, "point at the folder of the policy itself"),)
    files: list[PolicyFile] = []
    problems: list[Problem] = []
    seen: dict[FileKind, str] = {}
    alone = len(text.files.keys() - {HOLIDAYS_FILE}) == 1
    for path in sorted(text.files):
        shown = _shown(path, text.origin)
        kind = _kind(path, alone=alone)
        if kind is None:
            fix = did_you_mean(path, [f"{name}.yaml" for name in _NAMED])
            problems.append(
                Problem(shown, Mark(), "", "no file of a policy is called so", f"{fix}; rules go under policies/")
            )
            continue
        if kind is not FileKind.RULES and kind in seen:
            problems.append(Problem(shown, Mark(), "", f"{seen[kind]} holds the same", "keep one of the two files"))
            continue
        seen[kind] = path
        files.append(PolicyFile(kind, read_yaml(shown, text.files[path])))
    if FileKind.MAIN not in seen:
        fix = "add costguard.yaml with at least version: 1 and mode: observe"
        problems.append(Problem(text.origin or "costguard.yaml", Mark(), "", "there is no costguard.yaml", fix))
    return files, problems


def _kind(path: str, *, alone: bool) -> FileKind | None:
    name = PurePosixPath(path)
    if name.suffix not in _SUFFIXES and not alone:
        return None
    if name.parts[:1] == ("policies",) and len(name.parts) > 1:
        return FileKind.RULES
    known = _NAMED.get(name.stem) if len(name.parts) == 1 or alone else None
    return FileKind.MAIN if known is None and alone else known


def _shown(path: str, origin: str) -> str:
    """The path a reader can open: below the origin, or the origin itself when it is the file."""
    if not origin or origin == path or origin.endswith(f"/{path}"):
        return printable(origin or path)
    return printable(f"{origin.rstrip('/')}/{path}")


def holidays_file(text: PolicyFiles) -> str:
    """What `holidays.yaml` of a valid policy says today, for those who read it without the package; "" without need.

    Raises:
        InvalidInputError: not valid, or the package is not installed here.
    """
    files, _ = _sorted_out(text)
    main = next((each.document.root for each in files if each.kind is FileKind.MAIN), None)
    if main is None or check_policy(text)[0] is None:
        load_policy(text)
        return ""
    calendar = _adapter(FileKind.MAIN).validate_python(plain(main), strict=True).calendar
    named = () if calendar is None else calendar.holidays.countries
    found = [dates_of(name) for name in named]
    if None in found:
        raise InvalidInputError("the dates of holidays come from the package holidays; pip install holidays")
    return file_text(each for each in found if each is not None) if named else ""


_LONGEST_GRACE = timedelta(weeks=104)  # in real time; a wait nobody lives to see is a mistake in the hours
_WEEK = timedelta(weeks=1)


def build_policy(accepted: Accepted) -> Policy:
    """The policy of documents that passed every check."""
    main = _main(accepted)
    zone = None if main.calendar is None else main.calendar.zone
    whole = Whole(main.mode, zone, main.protect.termination_protection_bars)

    def rules(key: str, *, shadow: bool = False) -> tuple[Any, ...]:
        """Those of a section that decide, or those in the shadow, by name."""
        written = (entry for _, _, entry in entries(accepted, key) if getattr(entry, "shadow", False) is shadow)
        return tuple(sorted((with_digest(entry.rule(whole)) for entry in written), key=lambda rule: rule.name))

    owners = [*main.owners, *_listed(accepted, FileKind.OWNERS)]
    rates = (ExchangeRate(each.base, each.quote, each.rate, each.since) for each in main.exchange_rates)
    policy = Policy(
        mode=main.mode,
        idle_gpu=rules("idle_gpu"),
        accounts=tuple(sorted((_account(each) for each in main.accounts), key=lambda each: (each.cloud, each.id))),
        owners=tuple(_owner(each) for each in owners),
        exemptions=tuple(_exemptions(accepted, main)),
        protection=_protection(main.protect),
        calendar=None if main.calendar is None else main.calendar.compiled(holidays_in(accepted)),
        every_hour_counts=main.calendar is None and "calendar" in main.model_fields_set,
        signals=SignalSettings(
            main.signals.cloudwatch_namespace,
            tuple(_prometheus(accepted, main)),
        ),
        prices=tuple(
            PriceOverride(each.cloud, each.instance_types or (), each.hourly)
            for each in main.prices
            if each.hourly is not None
        ),
        discounts=tuple(
            Discount(each.cloud, each.discount, each.account or "", each.instance_types or (), each.since)
            for each in main.prices
            if each.discount is not None
        ),
        default_channel="" if main.notify is None else main.notify.default,
        digest="",
        budgets=rules("budgets"),
        exchange_rates=tuple(sorted(rates, key=lambda rate: (rate.base, rate.quote, rate.since))),
        priority_classes=tuple(
            PriorityClass(each.name, made(Selector, each.applies_when_all)) for each in main.priority_classes
        ),
        launch_freezes=tuple(sorted((each.freeze() for each in main.launch_freezes), key=lambda each: each.name)),
        kms_rotation=rules("kms_rotation"),
        network_audit=rules("network_audit"),
        answers=_answers(main.notify),
        shadows=Shadows(
            idle_gpu=rules("idle_gpu", shadow=True),
            kms_rotation=rules("kms_rotation", shadow=True),
            network_audit=rules("network_audit", shadow=True),
        ),
        observe_new_accounts_for=timedelta(0) if main.new_accounts is None else main.new_accounts.observe_for,
        leading_deployment=main.leading_deployment,
        keep_as_tag=main.keep_as_tag,
        rollout=tuple(sorted(map(_rollout, main.rollout), key=lambda each: (each.team, each.account))),
        messages_per_day=MESSAGES_PER_DAY if main.notify is None else main.notify.messages_per_day,
        start_again=main.start_again,
        longest_exception=main.longest_exception,
    )
    return with_policy_digest(policy)


def _rollout(entry: d.RolloutDocument) -> RolloutEntry:
    return RolloutEntry(entry.team or "", entry.account or "", tuple(map(_rollout_step, entry.steps)))


def _rollout_step(step: d.RolloutStepDocument) -> RolloutStep:
    if step.when is None:
        return RolloutStep(step.mode, step.since)
    return RolloutStep(step.mode, step.since, step.when.regret_below, step.when.in_shadow, step.when.of_at_least)


def slow_waits(accepted: Accepted) -> Iterator[Problem]:
    """Waits that working hours stretch beyond sense."""
    calendar = _main(accepted).calendar
    if calendar is None:
        return
    weekly = calendar.compiled({}).weekly()
    for section in SECTIONS.values():
        for file, place, entry in entries(accepted, section.key):
            for at, wait in entry.waits(file.document, place):
                if wait / weekly * _WEEK > _LONGEST_GRACE:
                    mark, _ = file.document.locate(at)
                    message = f"a wait of {wait / timedelta(hours=1):.0f} working hours takes over two years here"
                    fix = "shorten the wait, or widen calendar.hours"
                    yield file.document.problem(mark, field_path(at), message, fix)


def _main(accepted: Accepted) -> d.MainDocument:
    return next(model for _, model in accepted if isinstance(model, d.MainDocument))


def _listed(accepted: Accepted, kind: FileKind) -> Iterator[Any]:
    for file, model in accepted:
        if file.kind is kind:
            yield from model


_NOTHING = Selector(resources=())


def _owner(owner: d.OwnerDocument) -> Owner:
    owns = _NOTHING if owner.owns is None else made(Selector, owner.owns)  # then only what they launched is theirs
    return Owner(owner.name, owns, owner.channel or "", owner.people, owner.cloud_users)


def _answers(notify: d.NotifyDocument | None) -> AnswerTerms:
    said = None if notify is None else notify.answers
    return AnswerTerms() if said is None else AnswerTerms(said.slack_team, said.approvers, said.two_approvers_above)


def _account(account: d.AccountDocument) -> Account:
    return Account(
        cloud=account.cloud,
        id=account.id,
        regions=account.regions,
        owner=account.owner or "",
        role=account.role or "",
        external_id=account.external_id or "",
        organisation=account.organisation,
        protected=account.protected,
    )


def _exemptions(accepted: Accepted, main: d.MainDocument) -> Iterator[Exemption]:
    main_file = next(file for file, model in accepted if model is main)
    entries: list[tuple[PolicyFile, tuple[str | int, ...], d.ExceptionDocument]] = [
        (main_file, ("exceptions", index), each) for index, each in enumerate(main.exceptions)
    ]
    for file, model in accepted:
        if file.kind is FileKind.EXCEPTIONS:
            entries += [(file, (index,), each) for index, each in enumerate(model)]
    for file, loc, entry in entries:
        mark, _ = file.document.locate((*loc, "expires"))
        yield Exemption(
            owns=made(Selector, entry.applies_when_all)
            if entry.applies_when_all
            else Selector(resources=(entry.resource or "",)),
            owner=entry.owner,
            reason=entry.reason,
            approver=entry.approver,
            expires_at=entry.expires,
            where=f"{file.document.path}:{mark.line}:{mark.column}",
        )


def _prometheus(accepted: Accepted, main: d.MainDocument) -> Iterator[Prometheus]:
    file = next(file for file, model in accepted if model is main)
    for index, each in enumerate(main.signals.prometheus):
        mark, _ = file.document.locate(("signals", "prometheus", index, "url"))
        where = f"{file.document.path}:{mark.line}:{mark.column}"
        yield Prometheus(each.url, each.instance_label, each.extra_matchers, where)


def _protection(protect: d.ProtectDocument) -> Protection:
    """What the policy adds to what protects anyway; it can take nothing away."""
    shipped = Protection()
    return Protection(
        tag_names=tuple(dict.fromkeys((*shipped.tag_names, *sorted(protect.tags)))),
        expiry_tag_names=tuple(dict.fromkeys((*shipped.expiry_tag_names, *sorted(protect.expiry_tags)))),
        controller_tags=tuple(sorted({*shipped.controller_tags, *protect.controller_tags})),
        accounts=tuple(sorted((*shipped.accounts, *protect.accounts))),
        termination_protection_bars=protect.termination_protection_bars,
    )


def holidays_in(accepted: Accepted) -> dict[str, HolidayDates]:
    """The dates that came with the policy, by the name of their country."""
    found = (model for _, model in accepted if isinstance(model, HolidaysDocument))
    return {each.name: each.dates() for model in found for each in model.calendars}
