"""`costguard policy fmt`: one layout for the files of a policy."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from costguard.cli.exits import Exit
from costguard.cli.options import A_POLICY, Json, Lang, examples
from costguard.cli.output import CommandResult, emit
from costguard.cli.policy.diff import text_at
from costguard.cli.program import workplace
from costguard.domain.errors import InvalidInputError
from costguard.report.words.sentences import phrase

FMT_EXAMPLES = examples(
    "costguard policy fmt policies/",
    "costguard policy fmt policies/ --check",
)


def fmt(
    ctx: typer.Context,
    path: Annotated[str, typer.Argument(metavar="PATH", help=f"The policy: {A_POLICY}, with --check.")],
    *,
    check: Annotated[bool, typer.Option("--check", help="Write nothing; only say which files would change.")] = False,
    as_json: Json = False,
    lang: Lang = None,
) -> None:
    """Lay the files of a policy out alike: comments, order and quotes stay, and so does what the policy means.

    The policy must be valid. Before anything is written the new files are read again, and must give the same digest.

    Exit status: 0, or with --check 10 when a file would change.
    """
    from costguard.adapters.policy_sources.files import is_git
    from costguard.policy.documents.loader import load_policy
    from costguard.policy.syntax.formatting import formatted
    from costguard.ports import PolicyText

    if is_git(path) and not check:
        message = f"{path}: a commit is not written to; give the folder of a checkout, or --check"
        raise InvalidInputError(message)
    text = text_at(ctx, path)
    before = load_policy(text)
    laid_out = {name: formatted(name, content) for name, content in text.files.items()}
    stuck = sorted(name for name, content in laid_out.items() if content is None)
    after = {name: content for name, content in laid_out.items() if content is not None}
    whole = PolicyText({**text.files, **after}, text.revision, text.origin)
    if stuck or load_policy(whole).digest != before.digest:
        message = f"{path}: cannot be laid out without changing what it means; nothing was written: {', '.join(stuck)}"
        raise InvalidInputError(message)
    changed = sorted(name for name, content in after.items() if content != text.files[name])
    if not check:
        for name in changed:
            _write(Path(path) / name if Path(path).is_dir() else Path(path), after[name])
    with workplace(ctx, lang=lang) as here:
        language = here.language
    key = "policy_fmt_would" if check else "policy_fmt_done"
    emit(
        CommandResult(
            {"schema": 1, "changed": changed, "written": not check, "files": len(text.files), "digest": before.digest},
            lines=tuple(phrase(key, language, file=name) for name in changed),
            closing=(phrase("policy_fmt_total", language, changed=len(changed), files=len(text.files)),),
            exit=Exit.DUE if check and changed else Exit.OK,
        ),
        as_json=as_json,
    )


def _write(path: Path, text: str) -> None:
    try:
        path.write_text(text, encoding="utf-8", newline="\n")
    except OSError as err:
        message = f"{path}: cannot be written: {err.strerror}"
        raise InvalidInputError(message) from err
