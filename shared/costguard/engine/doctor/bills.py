"""Can the bill be read, and how far does it go? Asked only where the policy has budgets: some clouds charge for it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta

from costguard.domain.errors import AccessDeniedError, ProviderError
from costguard.domain.money import SpendReport, SpendScope
from costguard.domain.reasons import FactValue
from costguard.domain.refs import Shard
from costguard.policy.model.policy import Policy
from costguard.ports import SpendSource, Target
from costguard.report.doctor.checks import Code, Detail, DoctorCheck

_LOOKS_BACK = timedelta(days=4)  # further than any bill is behind
_HOUR = timedelta(hours=1)
_ALL = SpendScope()


def examine_bills(
    policy: Policy, targets: Sequence[Target], spends: Mapping[str, SpendSource], now: datetime
) -> Iterator[DoctorCheck]:
    """One question a payer. Without a bill budgets alert on what runs and stop nothing, so it never bars the rest."""
    for target in targets if policy.budgets else ():
        name = str(Shard(target.cloud, target.account))
        try:
            report = spends[target.cloud].read(target, [_ALL], now - _LOOKS_BACK, now)[_ALL]
        except AccessDeniedError as err:
            fix = f"allow {err.operation}" if err.operation else ""
            yield DoctorCheck(Code.BILL_DENIED, name, {"detail": str(err)}, (Detail(name, str(err), fix),))
        except ProviderError as err:
            yield DoctorCheck(Code.BILL_UNTOLD, name, {"detail": str(err)})
        else:
            yield bill_check(name, report, now)


def bill_check(target: str, report: SpendReport, now: datetime) -> DoctorCheck:
    """What a bill that answered is good for."""
    details = tuple(Detail(str(gap.shard), gap) for gap in report.gaps)
    facts: dict[str, FactValue] = {"source": report.source, "lines": len(report.lines)}
    if report.gaps:
        return DoctorCheck(Code.BILL_UNTOLD, target, {**facts, "detail": report.gaps[0].detail}, details)
    if report.complete_until is None:
        return DoctorCheck(Code.BILL_SAYS_NOTHING, target, facts)
    facts["age_hours"] = round((now - report.complete_until) / _HOUR)
    if not report.lines:
        return DoctorCheck(Code.BILL_SAYS_NOTHING, target, facts)
    return DoctorCheck(Code.BILL_READ, target, facts)
