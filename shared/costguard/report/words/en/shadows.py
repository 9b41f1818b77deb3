"""English: what is said of rules in the shadow."""

from __future__ import annotations

from collections.abc import Mapping

SHADOWS: Mapping[str, str] = {
    "shadow_title": "Rule {rule} in the shadow ({guard}): where it would differ",
    "shadow_agrees": "Rule {rule} in the shadow ({guard}) sees all {compared} as what is in force does.",
    "shadow_unseen": "Rule {rule} in the shadow ({guard}): nothing was compared; nothing that it is about was read.",
    "shadow_counts": "{differs} of {compared} differ; it would have stopped {would_stop} that run now.",
    "shadow_tally": (
        "Since {since}: {stops} more would have been stopped. {busy} were in use again within 24 h, {later} later, "
        "{stopped} were stopped all the same, {otherwise} ended otherwise; {hours} h idle in all."
    ),
    "shadow_left_out": "… and {count} more",
    "shadow_none": "No rule stands in the shadow, or none was followed by a run yet.",
    "shadow_in_force": "In force",
    "shadow_says": "In the shadow",
    "shadow_differs": "Difference",
    "only_shadow": "only the shadow would act",
    "only_in_force": "the shadow would not act",
    "sooner": "sooner in the shadow",
    "later": "later in the shadow",
    "other_mend": "another mend",
    "shadow_stops_at": "{verdict}; stops {when}",
}
