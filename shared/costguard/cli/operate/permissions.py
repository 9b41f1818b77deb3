"""`costguard permissions`: the policy documents that roles need, generated from what the program can send."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from costguard.cli.options import Json, examples
from costguard.cli.output import CommandResult, emit
from costguard.domain.errors import InvalidInputError
from costguard.domain.refs import CLOUDS, provider_of

if TYPE_CHECKING:
    from costguard.providers.kit.iam.policy_documents import Document, Narrowing

PERMISSIONS_EXAMPLES = examples(
    "costguard permissions aws",
    "costguard permissions aws --guard idle_gpu --mode enforce > idle_gpu.json",
    "costguard permissions tencent --role rotate --region ap-guangzhou",
    "costguard permissions alibaba --guard idle_gpu --mode enforce --tag team=research",
    "costguard permissions aws --write infra/aws/policies",
)

_TAG = re.compile(r"[A-Za-z0-9][A-Za-z0-9 _.:/=+@-]{0,126}")
_REGION = re.compile(r"[a-z]{2,}(-[a-z0-9]+)+")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9+=,.@_-]{1,63}")
_ROLE = re.compile(r"arn:aws(-cn|-us-gov)?:iam::[0-9]{12}:role/[A-Za-z0-9+=,.@_/-]{1,512}")
_ACCOUNT = re.compile(r"[0-9]{6,20}")
_ORGANISATION = re.compile(r"o-[a-z0-9]{10,32}")  # Organizations API, Organization.Id
_POLICY = re.compile(r"p-[0-9a-z]{8,128}")  # those that people write, as in policy/budget/freeze_ids.py


class Reach(str, Enum):
    """How far the rules go: only looking, or acting as well."""

    OBSERVE = "observe"
    ENFORCE = "enforce"


def permissions(
    cloud: Annotated[str, typer.Argument(metavar="CLOUD", help="aws, aws-cn, alibaba, tencent and so on.")],
    *,
    guard: Annotated[
        list[str] | None, typer.Option("--guard", metavar="FUNCTION", help="What this function needs. Repeatable.")
    ] = None,
    mode: Annotated[Reach, typer.Option("--mode", help="With --guard: whether its rules enforce.")] = Reach.OBSERVE,
    role: Annotated[
        list[str] | None, typer.Option("--role", metavar="PURPOSE", help="This purpose alone, or as well. Repeatable.")
    ] = None,
    region: Annotated[
        list[str] | None, typer.Option("--region", metavar="REGION", help="Change things there only. Repeatable.")
    ] = None,
    tag: Annotated[
        list[str] | None,
        typer.Option("--tag", metavar="KEY=VALUE", help="Stop, start, terminate only machines with it. Repeatable."),
    ] = None,
    keep: Annotated[
        list[str] | None,
        typer.Option("--keep", metavar="TAG", help="Deny it for machines with this tag too, as policy protects them."),
    ] = None,
    spot: Annotated[bool, typer.Option("--spot", help="AWS: do not deny terminating Spot machines.")] = False,
    flow_log_role: Annotated[
        list[str] | None,
        typer.Option("--flow-log-role", metavar="ARN", help="AWS: hand this role to flow logs of a log group."),
    ] = None,
    organisation: Annotated[
        str, typer.Option("--organisation", metavar="ID", help="AWS: enter accounts of this organisation only.")
    ] = "",
    freeze_policy: Annotated[
        list[str] | None,
        typer.Option("--freeze-policy", metavar="ID", help="AWS: a service control policy that freezes attach."),
    ] = None,
    name: Annotated[
        str, typer.Option("--name", metavar="NAME", help="What tables, buckets and secrets are called first.")
    ] = "",
    member_role: Annotated[
        str, typer.Option("--member-role", metavar="NAME", help="The role in member accounts.")
    ] = "",
    account: Annotated[
        str,
        typer.Option("--account", metavar="ID", help="The account they are for, where they name one."),
    ] = "",
    write: Annotated[
        Path | None, typer.Option("--write", metavar="DIR", help="Write PURPOSE.json there for each, and print none.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Print the policies that roles need: exactly what is called, narrowed as far as the cloud's conditions go.

    Without --guard and --role it lists the purposes. With either it prints one document that joins theirs, to be
    redirected into a file; how long it is, and what the cloud has no condition for, is told on standard error.
    """
    from costguard.providers.kit.iam.policy_documents import file_text

    narrow = _narrowing(cloud, region, tag, keep, spot=spot, name=name, member_role=member_role, account=account)
    passed = tuple(_fitting("--flow-log-role", one, _ROLE, "arn:aws:iam::…:role/…") for one in flow_log_role or ())
    attached = tuple(_fitting("--freeze-policy", one, _POLICY, "p-a1b2c3d4") for one in freeze_policy or ())
    within = _fitting("--organisation", organisation, _ORGANISATION, "o-a1b2c3d4e5") if organisation else ""
    narrow = replace(narrow, flow_log_roles=passed, organisation=within, freezing_policies=attached)
    documents = _maker(cloud)(narrow)
    wanted = _wanted(documents, guard or (), mode, role or ())
    if write is not None:
        for purpose, document in wanted.items():
            write.mkdir(parents=True, exist_ok=True)
            (write / f"{purpose}.json").write_text(file_text(document), encoding="utf-8")
        emit(CommandResult(_data(cloud, wanted), lines=(f"{len(wanted)} documents in {write}",)), as_json=as_json)
    if not (guard or role):
        emit(CommandResult(_data(cloud, wanted), lines=tuple(_listed(wanted))), as_json=as_json)
    joined = _joined(wanted.values())
    _tell(cloud, joined, as_json=as_json)
    data = {**_data(cloud, wanted), "document": joined}
    lines = json.dumps(joined, indent=2, ensure_ascii=False).splitlines()
    emit(CommandResult(data, lines=tuple(lines)), as_json=as_json)


def _maker(cloud: str) -> Callable[[Narrowing], dict[str, Document]]:
    provider = provider_of(cloud)
    if provider == "aws":
        from costguard.providers.aws.iam.policy_documents import documents as aws

        return aws
    if provider == "alibaba":
        from costguard.providers.alibaba.iam.policy_documents import documents as alibaba

        return alibaba
    if provider == "tencent":
        from costguard.providers.tencent.iam.policy_documents import documents as tencent

        return tencent
    message = f"{cloud!r} is no cloud; expected one of {', '.join(CLOUDS)}"
    raise InvalidInputError(message)


def _narrowing(
    cloud: str,
    regions: Sequence[str] | None,
    tags: Sequence[str] | None,
    kept: Sequence[str] | None,
    *,
    spot: bool,
    name: str,
    member_role: str,
    account: str,
) -> Narrowing:
    from costguard.providers.kit.iam.policy_documents import EVERYWHERE, Narrowing

    wanted: dict[str, tuple[str, ...]] = {}
    for pair in tags or ():
        key, given, value = pair.partition("=")
        _fitting("--tag", key, _TAG, "KEY=VALUE")
        if not given or "*" in value or "?" in value or "$" in value or not value.isprintable():
            message = f"--tag {pair!r}: expected KEY=VALUE, the value as it is written, without * ? $"
            raise InvalidInputError(message)
        wanted[key] = (*wanted.get(key, ()), value)
    return Narrowing(
        regions=tuple(_fitting("--region", one, _REGION, "us-east-1") for one in regions or ()),
        tags=wanted,
        kept_tags=(*EVERYWHERE.kept_tags, *(_fitting("--keep", one, _TAG, "the name of a tag") for one in kept or ())),
        spot_may_end=spot,
        name=_fitting("--name", name, _NAME, "a name") if name else EVERYWHERE.name,
        member_role=_fitting("--member-role", member_role, _NAME, "a name") if member_role else EVERYWHERE.member_role,
        account=_fitting("--account", account, _ACCOUNT, "digits") if account else "",
        partition=cloud,
    )


def _fitting(option: str, given: str, pattern: re.Pattern[str], expected: str) -> str:
    if pattern.fullmatch(given):
        return given
    message = f"{option} {given!r}: expected {expected}"
    raise InvalidInputError(message)


def _wanted(
    documents: Mapping[str, Document], guards: Sequence[str], mode: Reach, roles: Sequence[str]
) -> dict[str, Document]:
    """The documents asked for, all without a word; of a function's, what the cloud does without is left out."""
    from costguard.providers.kit.iam.policy_documents import FUNCTIONS, purpose_named

    names: list[str] = []
    for guard in guards:
        needs = FUNCTIONS.get(guard)
        if needs is None:
            message = f"--guard {guard!r}: expected one of {', '.join(FUNCTIONS)}"
            raise InvalidInputError(message)
        names += [*needs.always, *(needs.enforcing if mode is Reach.ENFORCE else ())]
    names += [purpose_named(role).name for role in roles]
    missing = [role for role in roles if role not in documents]
    if missing:
        message = f"--role {missing[0]}: this cloud asks for no permission there, or has nothing of the kind"
        raise InvalidInputError(message)
    return {name: document for name, document in documents.items() if name in names or not names}


def _joined(documents: Iterable[Document]) -> Document:
    """One document with the statements of all; those that are the same stand once."""
    whole: Document = {}
    for document in documents:
        for key, value in document.items():
            if not isinstance(value, list):
                whole[key] = value
                continue
            kept: list[Any] = whole.setdefault(key, [])
            kept += [statement for statement in value if statement not in kept]
    return _told_apart(whole)


def _told_apart(document: Document) -> Document:
    """IAM wants every `Sid` once: those of further statements are numbered."""
    seen: dict[str, int] = {}
    for key, statements in document.items():
        if not isinstance(statements, list):
            continue
        for index, statement in enumerate(statements):
            sid = statement.get("Sid")
            if sid is None:
                continue
            seen[sid] = seen.get(sid, 0) + 1
            if seen[sid] > 1:
                document[key][index] = {**statement, "Sid": f"{sid}{seen[sid]}"}
    return document


def _listed(documents: Mapping[str, Document]) -> Iterable[str]:
    from costguard.providers.kit.iam.policy_documents import PURPOSES

    width = max(map(len, documents))
    for name in documents:
        yield f"{name:{width}}  {PURPOSES[name].why}"


def _data(cloud: str, documents: Mapping[str, Document]) -> dict[str, Any]:
    from costguard.providers.kit.iam.policy_documents import PURPOSES, characters

    return {
        "schema": 1,
        "cloud": cloud,
        "purposes": [
            {
                "name": name,
                "why": PURPOSES[name].why,
                "characters": characters(document),
                "policy": document,
            }
            for name, document in documents.items()
        ],
    }


def _tell(cloud: str, document: Document, *, as_json: bool) -> None:
    from costguard.providers.kit.iam.policy_documents import MOST_CHARACTERS, characters

    length = characters(document)
    if not as_json and length > MOST_CHARACTERS:
        message = (
            f"{length} characters; one policy of {cloud} holds {MOST_CHARACTERS}: "
            "write a file for each purpose with --write, and attach them all"
        )
        typer.echo(message, err=True)
