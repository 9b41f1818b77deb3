"""The channels people are told by, connected with the carriers and links they need; and what a digest is made with."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any

from costguard.connections.objects import keys_of, open_objects, plain_keys_of
from costguard.domain.refs import provider_of
from costguard.ports import Notifier
from costguard.providers.kit.iam.permissions import Purpose

if TYPE_CHECKING:
    from costguard.adapters.notifiers.email import MailCarrier
    from costguard.adapters.notifiers.plain import Link
    from costguard.adapters.notifiers.robots.notifier import RobotVendor
    from costguard.engine.digest import Means
    from costguard.engine.ledger.memory import Memory
    from costguard.policy.model.policy import Policy
    from costguard.ports import Clock
    from costguard.report.page.page import Drawing
    from costguard.settings import Settings

_MAIL_SECONDS = 30.0  # a notice is worth no longer wait: the outbox tries again
Now = Callable[[], datetime]


def notifier_over(settings: Settings, now: Now) -> Notifier:
    """Every channel that is set up; a notice for any other is refused. Each names the deployment it is from.

    Raises:
        InvalidInputError: an address, secret or robot in the settings that nothing could be sent with.
    """
    from costguard.adapters.notifiers.router import NotifierRouter
    from costguard.report.words.sentences import Language, phrase

    channels: dict[str, Notifier] = {}
    if settings.slack_token:
        from costguard.adapters.notifiers.slack.notifier import SlackNotifier

        channels["slack"] = SlackNotifier(settings.slack_token.reveal(), base_url=settings.slack_url)
    link = _link(settings, now)
    if settings.mail_via:
        from costguard.adapters.notifiers.email import EmailNotifier

        mailed: Link | None = None if link is None else lambda choice, mailbox: link(choice, f"mailto:{mailbox}")
        channels["mailto"] = EmailNotifier(_mail_carrier(settings, now), settings.mail_from, now=now, link=mailed)
    if settings.webhook_secret:
        from costguard.adapters.notifiers.webhook import WebhookNotifier

        secret, private = settings.webhook_secret.reveal(), settings.webhook_private
        channels["https"] = WebhookNotifier(secret, now=now, private=private)
        if private:
            channels["http"] = channels["https"]
    if settings.robots:
        channels.update(_robots(settings, now, link))
    foot = phrase("notice_deployment", Language(settings.language), name=settings.deployment)
    return NotifierRouter(channels, default="slack", foot=foot)


def robots_looked_at(settings: Settings) -> Mapping[str, str]:
    """Of each robot that something is to be said of: what, `unsigned` or a sentence. Nothing is sent."""
    from costguard.adapters.notifiers.robots.notifier import look_at_robots

    robots, problems = look_at_robots(settings.robots.reveal(), private=settings.webhook_private)
    said = {address: "unsigned" if robot.unsigned else "" for address, robot in robots.items()}
    return {**said, **dict(problems)}


def _robots(settings: Settings, now: Now, link: Link | None) -> Mapping[str, Notifier]:
    """One notifier for each vendor that has a robot."""
    from costguard.adapters.notifiers.robots.notifier import RobotNotifier, read_robots

    private = settings.webhook_private
    robots = read_robots(settings.robots.reveal(), private=private)
    return {
        kind: RobotNotifier(
            _vendor(kind),
            {address: robot for address, robot in robots.items() if robot.kind == kind},
            now=now,
            link=link,
            language=settings.language,
            private=private,
        )
        for kind in sorted({robot.kind for robot in robots.values()})
    }


def _vendor(kind: str) -> RobotVendor:
    if kind == "feishu":
        from costguard.adapters.notifiers.robots.feishu import Feishu

        return Feishu()
    if kind == "dingtalk":
        from costguard.adapters.notifiers.robots.dingtalk import DingTalk

        return DingTalk()
    from costguard.adapters.notifiers.robots.wecom import WeCom

    return WeCom()


def _link(settings: Settings, now: Now) -> Link | None:
    """What makes Keep links; None where nothing would answer them."""
    if not (settings.link_secret and settings.answer_url):
        return None
    from costguard.adapters.notifiers.plain import KeepLinks

    return KeepLinks(settings.answer_url, settings.link_secret.reveal()).at(now)


def _mail_carrier(settings: Settings, now: Now) -> MailCarrier:
    """SES and DirectMail with our own credentials, from a session that can do nothing else."""
    if settings.mail_via == "ses":
        from costguard.providers.aws.core.services import SesCarrier
        from costguard.providers.aws.core.session import AwsSession

        aws = AwsSession(
            cloud=settings.cloud if provider_of(settings.cloud) == "aws" else "aws",
            profile=settings.aws_profile,
            endpoint_url=settings.aws.endpoint_url,
            home_region=settings.aws_region,
            keys=plain_keys_of(settings.aws),
            deadline=lambda: _MAIL_SECONDS,
        )
        return SesCarrier(aws.only_for(Purpose.MAIL))
    if settings.mail_via == "directmail":
        from costguard.providers.alibaba.core.services import DirectMailCarrier
        from costguard.providers.alibaba.core.session import AlibabaSession

        alibaba = AlibabaSession(
            cloud=settings.cloud if provider_of(settings.cloud) == "alibaba" else "alibaba",
            keys=keys_of(settings.alibaba),
            endpoint=settings.alibaba.endpoint_url,
            deadline=lambda: _MAIL_SECONDS,
            now=now,
        )
        return DirectMailCarrier(alibaba.only_for(Purpose.MAIL))
    from costguard.adapters.notifiers.smtp import SmtpCarrier

    return SmtpCarrier.at(settings.smtp_url, settings.smtp_password.reveal())


_CHARTS_NEED = frozenset({"matplotlib", "numpy"})


def drawing() -> Drawing:
    """What draws charts here; without the plotting library none, and a page says so."""
    from costguard.report.page.page import Drawing

    try:
        from costguard.adapters.charts import svg
    except ModuleNotFoundError as err:
        if (err.name or "").partition(".")[0] not in _CHARTS_NEED:
            raise
        return Drawing(None, f"{err.name} is not installed: pip install 'gpu-costguard[charts]'")
    return Drawing(svg)


def means_of(settings: Settings, clock: Clock) -> Means:
    """The means that these settings and this host's packages give.

    Raises:
        InvalidInputError: COSTGUARD_REPORTS is no place to keep files.
    """
    from costguard.engine.digest import Means

    objects, draws = open_objects(settings, clock), drawing()
    if draws.draw is None:
        return Means(draws, None, objects)
    from costguard.adapters.charts import png

    return Means(draws, png, objects)


def tell_digest(settings: Settings, policy: Policy, memory: Memory, run_id: str, clock: Clock) -> dict[str, Any]:
    """One scheduled digest, as a function host asks for it; returns its figures.

    Raises:
        LedgerError: memory failed.
    """
    from costguard.engine.digest import digest_summary, run_digest
    from costguard.report.words.sentences import Language

    notifier, means = notifier_over(settings, clock.now), means_of(settings, clock)
    language = Language(settings.language)
    return digest_summary(run_digest(memory, policy, notifier, clock, run_id, means, language))
