"""Notices by Alibaba Cloud's DirectMail, from a session that can do nothing else."""

from __future__ import annotations

import json
from email.message import EmailMessage
from typing import Any

from costguard.providers.alibaba.core import errors
from costguard.providers.alibaba.core.session import AlibabaSession
from costguard.providers.kit.core.changes import after_sending
from costguard.providers.kit.core.fields import named
from costguard.providers.kit.core.mail import MailService, own_account
from costguard.providers.kit.iam.purposes import Purpose, require_purpose

_SEND = "dm:SingleSendMail"
_SENDER = "create and verify the address of COSTGUARD_MAIL_FROM in the DirectMail console"
_RECIPIENT = "check the address in the policy"
_OUR_MESSAGE = "DirectMail refuses the form of this mail; please report it with the finding it was about"

_DIRECTMAIL = MailService(
    name="DirectMail",
    operation=_SEND,
    rejected={
        "InvalidMailAddress.NotFound": _SENDER,
        "InvalidMailAddress.Malformed": _SENDER,
        "InvalidMailAddressStatus.Malformed": _SENDER,
        "InvalidMailAddressSendType.Malformed": "make the sender one for triggered mails in the DirectMail console",
        "InvalidMailAddressDomain.Malformed": "finish the DNS records of the sender's domain in the DirectMail console",
        "InvalidToAddress": _RECIPIENT,
        "InvalidToAddress.Spam": f"{_RECIPIENT}: it is on DirectMail's list of invalid ones",
        "InvalidUser.NotFound": "activate DirectMail for this account",
        "InvalidBody": _OUR_MESSAGE,
        "InvalidSubject.Malformed": _OUR_MESSAGE,
        "InvalidFromAlias.Malformed": _OUR_MESSAGE,
    },
    fix_for=errors.fix_for,
)
"""InvalidSendMail.Spam is not among them: it also stands for a rate or a quota that is used up.

API: SingleSendMail and DirectMail's public error codes.
"""


class DirectMailCarrier:
    """A `MailCarrier` over DirectMail, in the session's own account; each site sends from its own region."""

    def __init__(self, session: AlibabaSession) -> None:
        """Take a session made for mail.

        Raises:
            InvalidInputError: it can do more than that.
        """
        require_purpose(session, Purpose.MAIL)
        self._session = session

    def carry(self, mail: EmailMessage) -> tuple[str, str]:
        """Send it, once; the answer means that DirectMail has taken charge of it, not that a mailbox has.

        Raises:
            NoticeError: of one of its kinds.

        API: SingleSendMail, with the sender's own name (AddressType 1); Date and MIME are DirectMail's own.
        """
        session = self._session
        message_id = str(mail["Message-ID"] or "")
        parameters: dict[str, Any] = {"Headers": json.dumps({"Message-ID": message_id})} if message_id else {}
        try:
            with _DIRECTMAIL.answering():
                answer = session.call(
                    own_account(session.cloud),
                    "dm",
                    "SingleSendMail",
                    AccountName=_address(mail, "From"),
                    AddressType=1,
                    FromAlias=mail["From"].addresses[0].display_name,
                    ReplyToAddress=False,
                    ToAddress=_address(mail, "To"),
                    Subject=str(mail["Subject"]),
                    TextBody=_body(mail, "plain"),
                    HtmlBody=_body(mail, "html"),
                    **parameters,
                )
                with after_sending(_SEND):
                    sent = named(answer, "EnvId")
        finally:
            session.close()  # mails are hours apart: a kept connection would be dead by the next
        return message_id, f"DirectMail {sent}"


def _body(mail: EmailMessage, kind: str) -> str:
    part = mail.get_body((kind,))
    return "" if part is None else str(part.get_content())


def _address(mail: EmailMessage, name: str) -> str:
    (found,) = mail[name].addresses
    return str(found.addr_spec)
