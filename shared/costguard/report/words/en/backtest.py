"""English: back-tests."""

from __future__ import annotations

from collections.abc import Mapping

BACKTEST: Mapping[str, str] = {
    "title": "Back-test of a policy",
    "span": "{machines} machines, {since} to {until}, a run every {every} h; {rows} rows read.",
    "nothing": "It would have stopped nothing.",
    "headline": (
        "It would have stopped {stopped} machines {stops} times[, terminated {terminations}], reclaimed {hours} idle"
        " hours[ ({money})], and been regretted within a day {regrets} times; of {undetermined} stops the record does"
        " not tell."
    ),
    "compared": "The current policy: {stops} stops, {hours} idle hours, {regrets} regretted within a day.",
    "doubted": "{count} values were not believed (no number, negative, or over 100 %); their hours are unmeasured.",
    "doubt": "{path}:{line}: {field}: {value}",
    "unlisted": "{count} machines stand in no instances file: their type, price, owner and runs are not known.",
    "unmatched": "{count} machines are under no rule.",
    "unpriced": "{count} reclaimed hours have no price and are not in the money.",
    "totals_title": "What it would have done",
    "rules_title": "By rule",
    "teams_title": "By team",
    "grid_title": "Other thresholds and windows",
    "grid_note": (
        "★ No other setting tried reclaims as much with fewer regrets; stops that the record cannot tell of count as"
        " regretted there."
    ),
    "regret_note": (
        "A regret is recorded use that comes back within so many hours of a stop. Undetermined: the record ends sooner,"
        " or has a hole there; that is never no regret."
    ),
    "column_figure": "Figure",
    "column_new": "New",
    "column_current": "Current",
    "column_change": "Change",
    "column_rule": "Rule",
    "column_team": "Team",
    "column_machines": "Machines",
    "column_stopped": "Machines stopped",
    "column_stops": "Stops",
    "column_terminations": "Terminations",
    "column_came_back_terminated": "Use that came back after a termination",
    "column_recorded_hours": "Hours recorded",
    "column_idle_hours": "Of them idle",
    "column_reclaimed_hours": "Idle hours reclaimed",
    "column_uncounted_hours": "Stopped hours nobody measured",
    "column_reclaimed": "Reclaimed",
    "column_regret": "Regretted within {hours} h",
    "column_undetermined": "Undetermined within {hours} h",
    "column_per_regret": "Hours reclaimed per regret ({hours} h)",
    "column_exempt": "Only shown",
    "column_unmeasured": "Machines unmeasured",
    "column_unmeasured_hours": "Hours nobody could judge",
    "column_threshold": "GPU below",
    "column_window": "Window",
    "column_share": "Of idle hours",
    "column_best": "Best",
    "no_team": "(nobody)",
    "own": "as written",
    "no_regret": "none",
    "assumes_title": "What this takes for granted",
    "assumes_enforced": "Every rule is replayed as if it enforced, whatever its mode.",
    "assumes_delivered": "Notices arrive at once, and snapshots and stops take effect before the next run.",
    "assumes_started_again": (
        "Nobody knows what a machine would have done after a stop that did not happen: it counts as started again in"
        " the hour in which its recorded use comes back, and not sooner."
    ),
    "assumes_no_people": "Nobody snoozes, approves, or answers a notice; local disks bar nothing.",
    "assumes_no_caps": "No cap of actions or money is reached: this is the most that the rules ask for.",
    "assumes_hourly": "Use is known by the hour: its return counts from the begin of the hour it is seen in.",
    "chart_reclaimed": "Idle hours reclaimed by each setting",
    "chart_regrets": "Stops by what the record says of the day after",
    "chart_hours": "hours",
    "chart_yes": "regretted",
    "chart_undetermined": "undetermined",
    "chart_no": "not regretted",
    "chart_new": "new",
    "chart_current": "current",
    "no_charts": "Without charts: {why}",
    "written": "Written: {file}",
    "markdown_more": "By rule and team",
    "exported": (
        "{shards} parts written to {folder}: {series} series of {machines} machines[; {kept} were there already]."
    ),
    "export_nothing": "No machine was found: nothing was written.",
    "export_gap": "Not exported: {shard}, {day}: {detail}",
    "export_again": "Run the same command again to fetch only what is missing.",
}
