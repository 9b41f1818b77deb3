"""The hand that changes settings of networks: it reads the whole shard anew, judges again, and calls once."""

from __future__ import annotations

from datetime import datetime

from costguard.cases import Case
from costguard.cases.mending import mend_terms
from costguard.domain.actions import Action, Receipt
from costguard.domain.errors import RefusedError
from costguard.domain.findings import Verdict
from costguard.domain.reasons import Reason, ReasonCode
from costguard.engine.hands import Cleared, people_heard
from costguard.engine.network_look import is_whole, judged_networks, network_now
from costguard.engine.network_sightings import SightingsRepository, first_seen
from costguard.engine.surroundings import Surroundings
from costguard.guards.network_audit import before_of
from costguard.policy.model import Policy


class NetworkHand:
    """`Hand` for networks; what it may change is what the port of the cloud's mender names, and nothing else."""

    def __init__(self, world: Surroundings) -> None:
        self._world = world

    def last_look(self, case: Case, action: Action, policy: Policy, now: datetime) -> Reason | Cleared:
        """Why not, after reading everything around it again: a path is open or closed by what stands beside a rule.

        A shard is read for each action: a day has few, and each rests on what was there a moment before.
        """
        world, subject, mend = self._world, case.subject, action.mend
        heard = people_heard(world.memory, case, now)
        if isinstance(heard, Reason):
            return heard
        network, instances = network_now(
            world.networks[subject.cloud], world.readings[subject.cloud], subject.shard, world.clock, world.workers
        )
        if not is_whole(network):
            return Reason(ReasonCode.DETAIL_UNREAD, {"cause": network.gaps[0].detail})
        known = first_seen(SightingsRepository(world.memory.store).all(), now)
        found = judged_networks((network,), instances, policy, now, known)
        judged = next((one for one in found if (one.finding.check, one.finding.subject) == (case.check, subject)), None)
        if judged is None:
            return Reason(ReasonCode.VANISHED)
        if judged.rule is None or judged.rule.digest != action.rule_digest:
            return Reason(ReasonCode.RULE_CHANGED, {"rule": action.rule})
        if judged.finding.verdict is not Verdict.VIOLATION:
            return judged.finding.reason
        if mend is None or judged.mend != mend or mend_terms(judged.rule, judged.mend) != case.terms:
            return Reason(ReasonCode.CHANGED_SINCE_PLAN, {"what": "setting"})
        if judged.bar is not None:
            return judged.bar
        return Cleared(heard, before_of(mend, network, instances))

    def call(self, action: Action) -> Receipt:
        """One call, with the image of what it changes: a cloud that can refuse what has moved is asked to.

        Raises:
            RefusedError: nothing is to be mended; nothing was sent.
        """
        if action.mend is None:
            raise RefusedError("there is nothing to mend", operation="network")
        return self._world.network_menders[action.subject.cloud]().change(action.mend, action.before)
