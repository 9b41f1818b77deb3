"""Changes of the policy's repository that runs open for what people asked for: by the forge's API, with a token."""

from __future__ import annotations

import logging
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from costguard.adapters.policy_sources.forges import Forge, forge_of, open_request
from costguard.domain.errors import InvalidInputError
from costguard.policy.exceptions import FILE, ExceptionRequest, with_exception
from costguard.ports import Clock
from costguard.report.words.sentences import Language
from costguard.settings import Settings

if TYPE_CHECKING:
    from costguard.engine.ledger.memory import Memory
    from costguard.policy.model.policy import Policy

_LOG = logging.getLogger(__name__)
LEAST_TIME = timedelta(minutes=2)  # a dozen requests of 20 seconds at most, of which most take one


def open_changes_asked(
    settings: Settings, memory: Memory, policy: Policy, clock: Clock, deadline: datetime | None
) -> int:
    """Open what was asked for in chats and waits, if there is time; how many were opened.

    A setting that is wrong costs a line in the log and no run: the questions stay open for approvers.
    """
    from costguard.engine.answers.excepting import open_changes

    now = clock.now()
    if deadline is not None and deadline - now < LEAST_TIME:
        return 0
    try:
        forge, folder = repository_of(settings)
    except InvalidInputError as err:
        _LOG.warning("no change is opened for exceptions", extra={"cause": str(err)})
        return 0
    opens = opener(forge, settings.forge_token.reveal(), folder)
    return open_changes(memory, policy, opens, now, Language(settings.language))


def repository_of(settings: Settings) -> tuple[Forge, str]:
    """The forge's project, and the policy's folder in it.

    Raises:
        InvalidInputError: COSTGUARD_FORGE_REPOSITORY names none on GitHub or GitLab, or there is no token.
    """
    scheme, _, rest = settings.forge_repository.partition("://")
    place, _, folder = rest.partition("//")
    forge = forge_of(f"{scheme}://{place}") if scheme == "https" else None
    if forge is None:
        message = "COSTGUARD_FORGE_REPOSITORY: expected https://github.com/OWNER/REPO or https://gitlab.HOST/GROUP/REPO"
        raise InvalidInputError(message)
    if not settings.forge_token:
        message = "COSTGUARD_FORGE_REPOSITORY is set and COSTGUARD_FORGE_TOKEN is not"
        raise InvalidInputError(message)
    return forge, folder.strip("/")


def opener(forge: Forge, token: str, folder: str = "") -> Callable[[ExceptionRequest], str]:
    """What opens the change of one exception and says where it is; the same twice is one branch and one request."""
    from costguard.adapters.policy_sources.forge_files import propose_file

    path = "/".join(filter(None, (folder, FILE)))

    def opened(asked: ExceptionRequest) -> str:
        said = f"{asked.title}\n\n{asked.reason}\n\nAsked for by {asked.by}; {asked.approver} is to agree.\n"
        branch, base = propose_file(forge, token, path, lambda text: with_exception(text, asked), asked.branch, said)
        body = f"`{asked.resource}` of {asked.owner} is to be left alone until {asked.entry['expires']}.\n\n"
        body += f"{asked.reason}\n"
        body += f"\nAsked for by {asked.by}. {asked.approver} is to agree; whoever asks does not."
        return open_request(forge, token, branch, base, asked.title, body)

    return opened
