"""Prometheus servers of a policy, connected: the authorization goes to hosts that the settings name for it alone."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from costguard.adapters.policy_sources.files import Remote
from costguard.adapters.signal_sources.combined import RefusedSignals
from costguard.adapters.signal_sources.http import LOOPBACK, Resolve, http_post, resolved
from costguard.adapters.signal_sources.prometheus import PrometheusSignals

if TYPE_CHECKING:
    from costguard.domain.signals import SignalName
    from costguard.policy.model.policy import Policy, Prometheus
    from costguard.ports import SignalSource
    from costguard.settings import Settings

_HOSTS = "COSTGUARD_PROMETHEUS_HOSTS"


def prometheus_signals(
    settings: Settings,
    server: Prometheus,
    signals: Collection[SignalName],
    shown: Collection[SignalName] = (),
    resolve: Resolve = resolved,
) -> SignalSource:
    """What reads `server`; where the authorization may not be sent to it, it is not asked at all, which leaves a gap.

    A server asked without its authorization could answer with less than there is.
    """
    refused = refusal(settings, server)
    if refused:
        return RefusedSignals(server.url, *refused)
    private = not settings.prometheus_authorization or _remote(server).may_be_private(settings.prometheus_hosts)
    authorization = settings.prometheus_authorization.reveal()
    post = http_post(server.url, authorization=authorization, private=private, resolve=resolve)
    return PrometheusSignals(server, post, signals, shown)


def refusal(settings: Settings, server: Prometheus) -> tuple[str, str] | None:
    """Why the authorization may not be sent to `server`, and what to do; None where it may, or where there is none."""
    if not settings.prometheus_authorization:
        return None
    remote = _remote(server)
    if not remote.allowed(settings.prometheus_hosts):
        return (
            f"the authorization is not sent to {remote.named}, which {_HOSTS} does not name; it was not asked",
            f"add {remote.named} to {_HOSTS}, or private:{remote.named} where its addresses are private",
        )
    if remote.transport != "https" and remote.host not in LOOPBACK:
        return (
            f"the authorization is not sent to {remote.named} unencrypted; it was not asked",
            "write https:// in the policy; http reaches this machine only",
        )
    return None


def refusals(settings: Settings, policy: Policy) -> Iterator[tuple[Prometheus, str, str]]:
    """Every server of a policy that these settings would not ask, why, and what to do."""
    for server in policy.signals.prometheus:
        refused = refusal(settings, server)
        if refused is not None:
            yield server, *refused


def _remote(server: Prometheus) -> Remote:
    """Of the same form as the hosts of policies in git, and bound by the same code."""
    parts = urlsplit(server.url)
    host = parts.hostname or ""
    port = parts.port or (443 if parts.scheme == "https" else 80)
    return Remote(parts.scheme, f"[{host}]" if ":" in host else host, port, parts.path)
