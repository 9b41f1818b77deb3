"""Mail through a cloud: from sessions that can do nothing else, and what each refusal of SES and DirectMail means."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

import pytest
from tests.contract.notifier_worlds import NOW, RECIPIENT, SENDER, DirectMailChannel, SesChannel, swift
from tests.world_ports.translate import to_product

from cloudstand.wire.faults import Fault, FaultKind
from costguard.adapters.notifiers.email import EmailNotifier
from costguard.domain.errors import (
    AccessDeniedError,
    InvalidInputError,
    NoticeError,
    RateLimitedError,
    RejectedNoticeError,
)
from costguard.domain.refs import Shard
from costguard.ports import Message
from costguard.providers.alibaba.core.services import DirectMailCarrier
from costguard.providers.alibaba.core.session import AlibabaSession
from costguard.providers.alibaba.iam import permissions as alibaba
from costguard.providers.alibaba.iam import policy_documents as alibaba_documents
from costguard.providers.aws.core.services import SesCarrier
from costguard.providers.aws.core.session import AwsSession
from costguard.providers.aws.iam import permissions as aws
from costguard.providers.aws.iam import policy_documents as aws_documents
from costguard.providers.kit.iam.permissions import READING, Feature, Purpose

NOTICE = Message(f"mailto:{RECIPIENT}", "i-0a stops", "i-0a stops", notice_id="n-1")
MINUTE, HOUR = timedelta(minutes=1), timedelta(hours=1)


@pytest.fixture(scope="module")
def opened_ses() -> Iterator[SesChannel]:
    channel = SesChannel()
    yield channel
    channel.close()


@pytest.fixture(scope="module")
def opened_directmail() -> Iterator[DirectMailChannel]:
    channel = DirectMailChannel()
    yield channel
    channel.close()


@pytest.fixture
def ses(opened_ses: SesChannel) -> SesChannel:
    opened_ses.reset()
    return opened_ses


@pytest.fixture
def directmail(opened_directmail: DirectMailChannel) -> DirectMailChannel:
    opened_directmail.reset()
    return opened_directmail


# what a session for mail can do


@pytest.mark.parametrize("operation", sorted(name for name, one in aws.OPERATIONS.items() if one.changes_something))
def test_a_session_for_mail_can_change_no_machine_on_aws(ses: SesChannel, operation: str) -> None:
    service, name = operation.split(":")
    for session in (ses.session, ses.session.acting(), ses.session.dry_running()):
        with pytest.raises(AccessDeniedError, match="not among the operations"):
            session.call(Shard("aws", ""), service, name, InstanceIds=["i-0123456789abcdef0"])
        assert operation not in {call.operation for call in session.calls_made()}


@pytest.mark.parametrize("operation", sorted(name for name, one in alibaba.OPERATIONS.items() if one.changes_something))
def test_a_session_for_mail_can_change_no_machine_on_alibaba_cloud(
    directmail: DirectMailChannel, operation: str
) -> None:
    service, name = operation.split(":")
    for session in (directmail.session, directmail.session.acting(), directmail.session.dry_running()):
        with pytest.raises(AccessDeniedError, match="not among the operations"):
            session.call(Shard("alibaba", ""), service, name, InstanceId=["i-0123456789abcdef0"])
        session.close()
    assert {call.action for call in directmail.stand_in.calls} <= {"GetCallerIdentity"}


def test_a_session_that_reads_or_acts_can_send_no_mail(ses: SesChannel, directmail: DirectMailChannel) -> None:
    own = AwsSession(endpoint_url="http://127.0.0.1:1", keys=("AKIAIOSFODNN7EXAMPLE", "s"))
    theirs = AlibabaSession(
        keys=to_product(directmail.stand_in.keys), endpoint=directmail.stand_in.url, now=lambda: NOW
    )
    for session in (own, own.acting()):
        with pytest.raises(InvalidInputError, match="mail needs a session that can do nothing else"):
            SesCarrier(session)
    for other in (theirs, theirs.acting()):
        with pytest.raises(InvalidInputError, match="mail needs a session that can do nothing else"):
            DirectMailCarrier(other)
    assert "sesv2:SendEmail" not in aws.OPERATIONS
    assert "dm:SingleSendMail" not in alibaba.OPERATIONS
    assert ses.got() == []


def test_the_reach_of_mail_is_who_we_are_and_one_operation() -> None:
    assert {name for name, one in aws.REACH[Purpose.MAIL].items() if one.changes_something} == {"sesv2:SendEmail"}
    assert set(alibaba.REACH[Purpose.MAIL]) == {"sts:GetCallerIdentity", "dm:SingleSendMail"}
    assert {one.feature for one in aws.REACH[Purpose.MAIL].values()} == {
        Feature.IDENTITY,
        Feature.MEMBERS,
        Feature.MAIL,
    }


def test_a_policy_for_mail_allows_mail_alone() -> None:
    (statement,) = aws_documents.policy_document([Feature.MAIL], partition="aws-us-gov")["Statement"]
    assert statement["Action"] == ["ses:SendEmail", "ses:SendRawEmail"]
    assert statement["Resource"] == ["arn:aws-us-gov:ses:*:*:identity/*"]
    assert alibaba_documents.policy_document([Feature.MAIL])["Statement"] == [
        {"Effect": "Allow", "Action": ["dm:SingleSendMail"], "Resource": "*"}
    ]
    assert "Mail" not in str(aws_documents.policy_document(READING)) + str(alibaba_documents.policy_document(READING))


def test_what_was_sent_is_counted_as_a_change(ses: SesChannel, directmail: DirectMailChannel) -> None:
    ses.notifier.send(NOTICE)
    directmail.notifier.send(NOTICE)
    for session, operation in ((ses.session, "sesv2:SendEmail"), (directmail.session, "dm:SingleSendMail")):
        counted = {call.operation: call for call in session.calls_made()}
        assert set(counted) == {operation, "sts:GetCallerIdentity"}
        assert (counted[operation].calls > 0, counted[operation].changes_something) == (True, True)
        assert counted["sts:GetCallerIdentity"].calls == 1


def test_there_is_no_ses_in_china() -> None:
    with pytest.raises(InvalidInputError, match="COSTGUARD_MAIL_VIA to smtp or directmail"):
        SesCarrier(AwsSession(cloud="aws-cn").only_for(Purpose.MAIL))


# SES


def test_ses_names_the_mail_anew_and_the_receipt_has_that_name(ses: SesChannel) -> None:
    receipt = ses.notifier.send(NOTICE).receipt
    assert receipt.startswith("<")
    assert "@email.amazonses.com> SES " in receipt


@pytest.mark.parametrize(
    ("answer", "kind", "words"),
    [
        ("MessageRejected: Email address is not verified.", RejectedNoticeError, "verify the sender"),
        ("MailFromDomainNotVerifiedException: no MX.", RejectedNoticeError, "MX record"),
        ("AccountSuspendedException: suspended.", RejectedNoticeError, "AWS support"),
        ("BadRequestException: bad.", RejectedNoticeError, "COSTGUARD_MAIL_FROM"),
        ("AccessDeniedException: not authorized.", RejectedNoticeError, "grant ses:SendEmail and ses:SendRawEmail"),
        ("SendingPausedException: paused.", NoticeError, "paused"),
        ("LimitExceededException: too many.", NoticeError, "LimitExceeded"),
        ("ExpiredTokenException: expired.", NoticeError, "renew the credentials"),
        ("ServiceUnavailable: later.", NoticeError, "ServiceUnavailable"),
        ("SomethingNew: hm.", NoticeError, "SomethingNew"),
    ],
)
def test_each_refusal_of_ses_says_what_to_do(ses: SesChannel, answer: str, kind: type[NoticeError], words: str) -> None:
    ses.refuse(answer)
    with pytest.raises(NoticeError, match=words) as caught:
        ses.notifier.send(NOTICE)
    assert type(caught.value) is kind
    assert ses.got() == []


@pytest.mark.parametrize(
    ("answer", "wait"),
    [
        ("TooManyRequestsException: Maximum sending rate exceeded.", MINUTE),
        ("TooManyRequestsException: Daily message quota exceeded.", HOUR),
        ("Throttling: Maximum sending rate exceeded.", MINUTE),
    ],
)
def test_a_rate_is_waited_out_and_a_days_quota_longer(ses: SesChannel, answer: str, wait: timedelta) -> None:
    ses.refuse(answer)
    with pytest.raises(RateLimitedError) as caught:
        ses.notifier.send(NOTICE)
    assert caught.value.retry_after == wait


def test_a_sender_that_nobody_verified_is_rejected_by_ses(ses: SesChannel) -> None:
    carrier = SesCarrier(ses.session)
    with pytest.raises(RejectedNoticeError, match="verify the sender"):
        EmailNotifier(carrier, "other@example.org", now=lambda: NOW).send(Message(RECIPIENT, "t", "t"))


# DirectMail


def test_directmail_keeps_our_message_id_and_the_senders_name(directmail: DirectMailChannel) -> None:
    receipt = directmail.notifier.send(NOTICE).receipt
    (mail,) = directmail.stand_in.mails
    assert receipt == f"{mail.headers['Message-ID']} DirectMail {600_000_000_000 + 1}"
    assert (mail.sender, mail.recipients) == (SENDER, (RECIPIENT,))


def test_a_long_mail_does_not_travel_in_the_address(directmail: DirectMailChannel) -> None:
    directmail.notifier.send(Message(NOTICE.channel, "长" * 300, "字" * 9000, (("名", "值" * 1999),) * 9))
    (mail,) = directmail.stand_in.mails
    assert len(mail.text) > 9000
    assert len(mail.subject) == 100


@pytest.mark.parametrize(
    ("code", "kind", "words"),
    [
        ("InvalidMailAddress.NotFound", RejectedNoticeError, "COSTGUARD_MAIL_FROM"),
        ("InvalidMailAddressStatus.Malformed", RejectedNoticeError, "DirectMail console"),
        ("InvalidMailAddressDomain.Malformed", RejectedNoticeError, "DNS records"),
        ("InvalidToAddress", RejectedNoticeError, "check the address in the policy"),
        ("InvalidToAddress.Spam", RejectedNoticeError, "list of invalid"),
        ("InvalidUser.NotFound", RejectedNoticeError, "activate DirectMail"),
        ("InvalidBody", RejectedNoticeError, "report it"),
        ("Forbidden.RAM", RejectedNoticeError, "grant dm:SingleSendMail"),
        ("InvalidSendMail.Spam", NoticeError, "InvalidSendMail"),
        ("ServiceUnavailable", NoticeError, "ServiceUnavailable"),
        ("InvalidSecurityToken.Expired", NoticeError, "renew the credentials"),
        ("InvalidTimeStamp.Expired", NoticeError, "clock"),
        ("Throttling.User", RateLimitedError, "flow control"),
        ("Throttling.Api", RateLimitedError, "flow control"),
    ],
)
def test_each_refusal_of_directmail_says_what_to_do(
    directmail: DirectMailChannel, code: str, kind: type[NoticeError], words: str
) -> None:
    directmail.stand_in.faults.add(Fault(FaultKind.REFUSED, "SingleSendMail", code=code))
    with pytest.raises(NoticeError, match=words) as caught:
        directmail.notifier.send(NOTICE)
    assert type(caught.value) is kind
    assert directmail.got() == []


@pytest.mark.parametrize("kind", [FaultKind.NOT_JSON, FaultKind.TRUNCATED, FaultKind.LOST_ANSWER])
def test_an_answer_that_does_not_come_whole_proves_nothing(directmail: DirectMailChannel, kind: FaultKind) -> None:
    directmail.stand_in.faults.add(Fault(kind, "SingleSendMail"))
    with pytest.raises(NoticeError) as caught:
        directmail.notifier.send(NOTICE)
    assert type(caught.value) is NoticeError


def test_the_generated_policy_is_enough_for_directmail_and_reading_is_not(directmail: DirectMailChannel) -> None:
    account = directmail.stand_in.accounts[0]
    directmail.stand_in.allowed[account] = set(
        alibaba_documents.policy_document([Feature.MAIL])["Statement"][0]["Action"]
    )
    assert directmail.notifier.send(NOTICE).proves_delivery
    directmail.stand_in.allowed[account] = set(alibaba_documents.policy_document(READING)["Statement"][0]["Action"])
    with pytest.raises(RejectedNoticeError, match="grant dm:SingleSendMail"):
        directmail.notifier.send(NOTICE)


def test_without_keys_a_notice_waits_for_them() -> None:
    session = AlibabaSession(keys=None, now=lambda: NOW, pacer=swift()).only_for(Purpose.MAIL)
    with pytest.raises(NoticeError, match="provide valid") as caught:
        EmailNotifier(DirectMailCarrier(session), SENDER, now=lambda: NOW).send(Message(RECIPIENT, "t", "t"))
    assert type(caught.value) is NoticeError
