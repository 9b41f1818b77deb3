"""Notices by Amazon SES, from a session that can do nothing else."""

from __future__ import annotations

from email.message import EmailMessage

from costguard.domain.errors import InvalidInputError
from costguard.providers.aws.core import errors
from costguard.providers.aws.core.session import AwsSession
from costguard.providers.kit.core.changes import after_sending
from costguard.providers.kit.core.fields import named
from costguard.providers.kit.core.mail import MailService, own_account
from costguard.providers.kit.iam.purposes import Purpose, require_purpose

_SEND = "sesv2:SendEmail"
_WITHOUT_SES = ("aws-cn",)
_VERIFY = "verify the sender or its domain in SES in this region; in SES's sandbox the recipient too"
_SUPPORT = "ask AWS support to lift it, or send by SMTP"

_SES = MailService(
    name="SES",
    operation=_SEND,
    rejected={
        "MessageRejected": _VERIFY,
        "MailFromDomainNotVerifiedException": "set the MX record of the MAIL FROM domain in SES",
        "MailFromDomainNotVerified": "set the MX record of the MAIL FROM domain in SES",
        "AccountSuspendedException": f"this account may send no mail any more: {_SUPPORT}",
        "AccountSuspended": f"this account may send no mail any more: {_SUPPORT}",
        "BadRequestException": "check COSTGUARD_MAIL_FROM and the address in the policy",
        "NotFoundException": "the identity's default configuration set is gone: name another in SES",
    },
    fix_for=errors.fix_for,
)
"""SendingPausedException is not among them: what is paused goes on again.

API: SES v2 SendEmail, "Errors"; the codes without Exception are those of its first version.
"""


class SesCarrier:
    """A `MailCarrier` over SES, in the session's own account and home region."""

    def __init__(self, session: AwsSession) -> None:
        """Take a session made for mail.

        Raises:
            InvalidInputError: it can do more than that, or its partition has no SES.
        """
        require_purpose(session, Purpose.MAIL)
        if session.cloud in _WITHOUT_SES:
            message = f"SES is not offered in {session.cloud}; set COSTGUARD_MAIL_VIA to smtp or directmail"
            raise InvalidInputError(message)
        self._session = session

    def carry(self, mail: EmailMessage) -> tuple[str, str]:
        """Send it, once. SES gives it a Message-ID of its own, so that a repetition is another mail to mailboxes.

        The answer means that SES has taken charge of it: a mailbox may still refuse it, which SES reports elsewhere.

        Raises:
            NoticeError: of one of its kinds.

        API: SES v2 SendEmail with raw content.
        """
        session = self._session
        try:
            with _SES.answering():
                answer = session.call(
                    own_account(session.cloud),
                    "sesv2",
                    "SendEmail",
                    FromEmailAddress=_address(mail, "From"),
                    Destination={"ToAddresses": [_address(mail, "To")]},
                    Content={"Raw": {"Data": mail.as_bytes()}},
                )
                with after_sending(_SEND):
                    message_id = named(answer, "MessageId")
        finally:
            session.close()  # mails are hours apart: a kept connection would be dead by the next
        # API: "Amazon SES overrides the Message-ID"; in the first region its domain has no region
        domain = "email" if session.home_region == "us-east-1" else session.home_region
        return f"<{message_id}@{domain}.amazonses.com>", f"SES {message_id}"


def _address(mail: EmailMessage, name: str) -> str:
    (found,) = mail[name].addresses
    return str(found.addr_spec)
