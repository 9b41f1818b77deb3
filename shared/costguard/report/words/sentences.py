"""Reasons, verdicts, verbs, gaps and savings as sentences, in English and Simplified Chinese; texts in `locale`.

A template is text with optional parts: `Idle[ for {lasting_hours} h].` A part in brackets appears only when
every fact it names is known, so a missing fact shortens a sentence and never breaks it. `{a|b}` takes the
first of the facts that is known; `{volumes:disks}` says how many disks, by an entry of group `counts` that has
plural forms. Facts are outside text: they are cleaned before they are printed.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping
from datetime import timedelta
from decimal import Decimal
from enum import Enum
from types import MappingProxyType

from costguard.domain.actions import Saving, Verb
from costguard.domain.findings import Verdict
from costguard.domain.money import HourlyRate, Money, NetRate, totals
from costguard.domain.reasons import FactValue, Reason, ReasonCode
from costguard.domain.resources import Gap
from costguard.domain.signals import SignalName
from costguard.report.words.catalogue import template

MAX_OUTSIDE_TEXT = 200  # longer than any id, tag value or vendor message worth reading on a terminal
MAX_OWN_TEXT = 2000  # sentences made of other sentences
UNKNOWN = "?"


class Language(str, Enum):
    """The languages people are addressed in."""

    EN = "en"
    ZH = "zh"


_PART = re.compile(r"\[([^\[\]]*)\]")
_FIELD = re.compile(r"\{([a-z0-9_|]+)(?::([a-z_]+))?\}")
_ESCAPE = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]"  # CSI: colours, cursor movement
    r"|\x1b[\]PX^_].*?(?:\x07|\x1b\\|\x9c|$)"  # OSC, DCS and other strings: titles, links, clipboard
    r"|\x1b[ -/]*[0-~]"  # two-character escapes
    r"|\x9b[0-?]*[ -/]*[@-~]"  # the one-character form of CSI
    r"|[\x9d\x90\x98\x9e\x9f].*?(?:\x07|\x1b\\|\x9c|$)",  # and of the strings
    re.DOTALL,
)
_SPACES = re.compile(r"[\t\n\v\f\r\x85\u2028\u2029]+")
_INVISIBLE = frozenset({"Cc", "Cf", "Cs", "Co", "Cn"})  # controls, bidi and zero-width marks, lone surrogates
_TRANSLATED_FACTS = ("signal", "state", "mode", "kind", "part")
_UNKNOWN_WHEN_NEGATIVE = ("local_disk_gib", "age_minutes")
_MOMENTS = ("until", "due", "since", "read_at")
_ISO_UTC = re.compile(r"(\d{4}-\d\d-\d\d)T(\d\d:\d\d)(?::\d\d)?(?:\+00:00|Z)")
_KIB, _BYTES_PER_GIB, _BYTES_PER_GB = 1024.0, 2**30, 10**9
UNITS: Mapping[SignalName, str] = MappingProxyType(
    {
        SignalName.GPU: "%",
        SignalName.GPU_MEMORY: "%",
        SignalName.CPU: "%",
        SignalName.NETWORK: "B/s",
        SignalName.POWER: "W",
        SignalName.DISK: "B/s",
    }
)


def clean(text: object, limit: int = MAX_OUTSIDE_TEXT) -> str:
    """Text from outside, made safe to print: one line, no escapes, no bidi tricks, at most `limit` characters."""
    raw = str(text)
    if not (raw.isascii() and raw.isprintable()):
        raw = _SPACES.sub(" ", _ESCAPE.sub("", raw))
        raw = "".join(char for char in raw if unicodedata.category(char) not in _INVISIBLE)
    visible = raw.strip()
    return visible if len(visible) <= limit else visible[: limit - 1] + "…"


def fill(
    text: str, facts: Mapping[str, FactValue], language: Language = Language.EN, limit: int = MAX_OUTSIDE_TEXT
) -> str:
    """`text` with the facts that are known; parts in brackets that name an unknown one are left out."""

    def part(match: re.Match[str]) -> str:
        names = (field.group(1) for field in _FIELD.finditer(match.group(1)))
        return match.group(1) if all(_known(name, facts) is not None for name in names) else ""

    def shown(field: re.Match[str]) -> str:
        value = _known(field.group(1), facts)
        return _shown(value, limit) if field.group(2) is None else _counted(field.group(2), value, language)

    return _FIELD.sub(shown, _PART.sub(part, text))  # facts go in last: brackets and braces in them are only text


def _say(group: str, key: str, language: Language, facts: Mapping[str, FactValue], limit: int = MAX_OWN_TEXT) -> str:
    """A message filled; its plural form is that of the fact `count`. One that nobody wrote is said as its id."""
    text = template(group, key, language.value, _whole(facts.get("count")))
    return fill(text, facts, language, limit) if text else f"{group}.{key}"


def _counted(key: str, value: FactValue | None, language: Language) -> str:
    return _say("counts", key, language, {"count": value if value is not None else UNKNOWN}, MAX_OUTSIDE_TEXT)


def _whole(value: FactValue | None) -> int | None:
    """A number by which a plural form is chosen: what is no whole number counts as several."""
    if value is None or value == "":
        return None
    digits = _shown(value, MAX_OUTSIDE_TEXT).replace(",", "")
    return int(digits) if digits.isdecimal() else 2


def _known(names: str, facts: Mapping[str, FactValue]) -> FactValue | None:
    return next((facts[name] for name in names.split("|") if facts.get(name, "") != ""), None)


def _shown(value: FactValue | None, limit: int) -> str:
    if value is None:
        return UNKNOWN
    return number(value) if isinstance(value, float) else clean(value, limit)


_UNITS_OF_TIME = ((timedelta(days=1), "d"), (timedelta(hours=1), "h"), (timedelta(minutes=1), "m"))
_HOURS_UP_TO = timedelta(hours=48)  # people say 24 h and 48 h, and days beyond


def span(duration: timedelta) -> str:
    """A duration as policies write it: 24h, 7d, 90m."""
    for unit, name in _UNITS_OF_TIME:
        if duration and not duration % unit and not (name == "d" and duration <= _HOURS_UP_TO):
            return f"{duration // unit}{name}"
    return f"{duration.total_seconds():g}s"


def number(value: float) -> str:
    """At most two decimals, none where they say nothing: 5.0 → 5, 4.961 → 4.96."""
    return f"{value:,.2f}".rstrip("0").rstrip(".")


def sentence(reason: Reason, language: Language = Language.EN) -> str:
    """What is the case; of what is never touched also how it was used, where that was measured."""
    said = _say("reasons", reason.code.value, language, _translated(reason.facts, language), MAX_OUTSIDE_TEXT)
    use = reason.facts.get("utilisation", "")
    if use in {ReasonCode.IDLE.value, ReasonCode.BUSY.value, ReasonCode.PARTLY_IDLE.value}:
        return together((said, phrase(f"use_{use}", language)), language)
    return said


def fix(reason: Reason, language: Language = Language.EN) -> str:
    """What somebody can do about it; empty where there is nothing to do.

    A missing device metric is mended differently by family; the fact `kind` says which.
    """
    text = template("fixes", reason.code.value, language.value)
    if reason.code is ReasonCode.NO_DEVICE_METRIC:
        text = template("device_fixes", str(reason.facts.get("kind", "")), language.value) or text
    return fill(text, _translated(reason.facts, language), language)


def explain(reason: Reason, language: Language = Language.EN) -> str:
    """What is the case and what can be done."""
    parts = (sentence(reason, language), fix(reason, language))
    return together(parts, language)


def together(sentences: Iterable[str], language: Language) -> str:
    """Sentences that follow each other; empty ones are left out."""
    return _joined("sentences", (each for each in sentences if each), language)


def listed(parts: Iterable[str], language: Language) -> str:
    """Parts of a sentence, set off from each other."""
    return _joined("parts", parts, language)


def _joined(key: str, parts: Iterable[str], language: Language) -> str:
    return template("joins", key, language.value).replace("{one}", "").replace("{other}", "").join(parts)


def _translated(facts: Mapping[str, FactValue], language: Language) -> Mapping[str, FactValue]:
    """Facts whose value is one of our own words are said in the reader's language, measurements with their unit."""
    said = {name: value for name, value in facts.items() if not _is_unknown(name, value)}
    if said.get("signal") in {known.value for known in SignalName}:
        signal = SignalName(said["signal"])
        for name in ("maximum", "bound"):
            if isinstance(value := said.get(name), int | float):
                said[name], said["unit"] = readable(signal, value)
    if "cause" in said:
        measured = {name: value for name, value in facts.items() if name != "cause"}
        said["cause"] = _cause(str(said["cause"]), measured, language)
    if isinstance(names := said.get("unlooked"), str):
        said["unlooked"] = _joined("words", (choice(name, language) for name in names.split(",")), language)
    if isinstance(size := facts.get("local_disk_gib"), int | float):
        said["disk"] = local_disk(size, language)
    for name in _TRANSLATED_FACTS:
        if name in said:
            said[name] = choice(str(said[name]), language)
    said |= {name: _plain_moment(value) for name in _MOMENTS if isinstance(value := said.get(name), str)}
    if "verb" in said and said["verb"] in {known.value for known in Verb}:
        said["verb"] = verb(Verb(said["verb"]), language)
    return said


def _is_unknown(name: str, value: FactValue) -> bool:
    return name in _UNKNOWN_WHEN_NEGATIVE and isinstance(value, int | float) and value < 0


def _plain_moment(text: str) -> str:
    found = _ISO_UTC.fullmatch(text)
    return f"{found.group(1)} {found.group(2)} UTC" if found else text


def _cause(word: str, facts: Mapping[str, FactValue], language: Language) -> str:
    if word not in {known.value for known in ReasonCode}:
        return choice(word, language)
    return sentence(Reason(ReasonCode(word), facts), language).rstrip(".。")


def readable(signal: SignalName, value: float) -> tuple[float, str]:
    """A measurement in the unit people think in."""
    return (value / _KIB, "KiB/s") if UNITS[signal] == "B/s" else (float(value), UNITS[signal])


def short(code: ReasonCode | str, language: Language = Language.EN) -> str:
    """A reason without its facts, as a label in tables; text that is no known code is shown cleaned."""
    if code not in {known.value for known in ReasonCode}:
        return clean(code)
    return sentence(Reason(ReasonCode(code)), language).rstrip(".。")


def verdict(value: Verdict, language: Language = Language.EN) -> str:
    """A verdict as one or two words."""
    return _say("verdicts", value.value, language, {})


def verb(value: Verb, language: Language = Language.EN) -> str:
    """A verb as it stands in a plan."""
    return _say("verbs", value.value, language, {})


def choice(word: str, language: Language = Language.EN) -> str:
    """A word of one of the closed lists (state, billing, status, signal, …); anything else cleaned."""
    return template("choices", word, language.value) or clean(word)


def gap(value: Gap, language: Language = Language.EN) -> str:
    """What could not be read, where and why, what follows from it, and what to grant or set."""
    facts: dict[str, FactValue] = {
        "shard": str(value.shard),
        "what": gap_subject(value.what, language),
        "kind": gap_kind(value, language),
        "detail": value.detail.rstrip(". "),
        "fix": value.fix.rstrip(". "),
        "effect": template("gap_effects", value.what, language.value),
    }
    return _say("phrases", "gap", language, facts, MAX_OUTSIDE_TEXT)


def gap_subject(what: str, language: Language = Language.EN) -> str:
    """What was to be read."""
    return template("gap_subjects", what, language.value) or clean(what)


def gap_kind(value: Gap, language: Language = Language.EN) -> str:
    """Why it was not read."""
    return _say("gap_kinds", value.kind.value, language, {})


def risk(word: str, language: Language = Language.EN, local_disk_gib: float | None = 0.0) -> str:
    """One risk of an action; a word nobody has a sentence for is shown as it is. The size is as in `Saving`."""
    if word == "local_disk_lost" and local_disk_gib != 0:
        return _say("risks", "local_disk_empty", language, {"disk": local_disk(local_disk_gib, language)})
    return template("risks", word, language.value) or clean(word)


def local_disk(gib: float | None, language: Language = Language.EN) -> str:
    """The local disk of a machine by its size, as vendors sell it: in GB of 10^9 bytes. None is an unknown size."""
    if gib is None or gib < 0:
        return phrase("local_disk_unsized", language)
    return phrase("local_disk_sized", language, size=f"{max(1, round(gib * _BYTES_PER_GIB / _BYTES_PER_GB)):,}")


def label(key: str, language: Language = Language.EN) -> str:
    """The title of a column or field."""
    return _say("labels", key, language, {})


def phrase(key: str, language: Language = Language.EN, **facts: FactValue) -> str:
    """A sentence of a report or notice, filled."""
    return _say("phrases", key, language, facts)


def in_digest(key: str, language: Language, /, **facts: FactValue) -> str:
    """A sentence of the report for everybody, and of digests, filled."""
    return _say("digest", key, language, facts)


def in_backtest(key: str, language: Language, /, **facts: FactValue) -> str:
    """A sentence of a back-test, filled."""
    return _say("backtest", key, language, facts)


def on_keep_page(key: str, language: Language, /, **facts: FactValue) -> str:
    """A sentence of the page that a link in a notice opens, filled."""
    return _say("keep_page", key, language, facts)


def about_check(key: str, language: Language, /) -> str:
    """What a check of networks finds, what that leads to, or what to do about it."""
    return _say("checks", key, language, {})


def stays_billed(what: str, language: Language = Language.EN) -> str:
    """What stays billed after an action; a word nobody has a sentence for is shown as it is."""
    return template("kept", what, language.value) or clean(what)


def saving_lines(saving: Saving, verb_: Verb, language: Language = Language.EN) -> tuple[str, ...]:
    """What an action saves an hour, what stays billed, the net where every price is known, and the risks."""
    keeps = "keeps"
    if verb_ is Verb.TERMINATE and saving.stops_billing is None:
        lines, keeps = [phrase("saves_terminate", language)], "keeps_terminate"
    elif saving.stops_billing is None:
        lines = [phrase("saves_unknown", language)]
    else:
        lines = [_saves(saving, saving.stops_billing, language)]
    for word, cost in saving.kept:
        amount = phrase("price_unknown" if cost is None else "keeps_hourly", language, amount=_hourly_or_empty(cost))
        lines.append(phrase(keeps, language, what=stays_billed(word, language), amount=amount))
    net = net_saving(saving)
    if net is not None and saving.kept:
        lines.append(phrase("net", language, amount=hourly(net)))
    size = saving.local_disk_gib
    lines.extend(phrase("risk", language, risk=risk(word, language, size)) for word in saving.risks)
    return tuple(lines)


def _saves(saving: Saving, stops: Money, language: Language) -> str:
    rate = saving.price
    if rate is None:
        return phrase("saves", language, amount=hourly(stops))
    if not rate.is_list:
        return phrase("saves_net", language, amount=hourly(stops))
    return phrase("saves_list", language, amount=hourly(stops), net=_hourly_or_empty(rate.after_discounts(stops)))


def price(rate: HourlyRate | None, language: Language = Language.EN) -> str:
    """An hourly price, and which it is: the cloud's list price, the one after discounts where it is known, or both."""
    if rate is None:
        return phrase("price_unknown", language)
    if not rate.is_list:
        return phrase("price_net", language, net=hourly(rate.money))
    net = "" if rate.net is None else hourly(rate.net.money)
    return phrase("price_list", language, amount=hourly(rate.money), net=net)


def net_source(net: NetRate, language: Language = Language.EN) -> str:
    """How a price after discounts is known."""
    return phrase(
        f"net_source_{net.source.value}",
        language,
        as_of=net.as_of,
        off="" if net.discount is None else percent(net.discount),
        declared="" if net.declared is None else percent(net.declared),
    )


def percent(share: Decimal) -> str:
    """A share, 0 to 1, in percent."""
    return f"{number(float(round(share * 100, 1)))} %"


def net_saving(saving: Saving) -> Money | None:
    """What is really saved an hour; None when a price is unknown or currencies differ."""
    if saving.stops_billing is None or any(cost is None for _, cost in saving.kept):
        return None
    kept = totals(cost for _, cost in saving.kept if cost is not None)
    if not kept:
        return saving.stops_billing
    if len(kept) > 1 or kept[0].currency != saving.stops_billing.currency:
        return None
    return saving.stops_billing + kept[0].times(-1)


_CENTS = 2
_SMALL = Decimal("0.10")  # below this, two decimals would lose most of an hourly price


def hourly(money: Money) -> str:
    """An hourly price for people: to the cent, or four decimals for small change such as a volume's."""
    places = hourly_places(money)
    return str(money) if places == _CENTS else f"{money.rounded(places).amount:f} {money.currency}"


def hourly_places(money: Money) -> int:
    """How many decimals `hourly` has."""
    return _CENTS if abs(money.amount) >= _SMALL or money.amount == 0 else _CENTS + 2


def _hourly_or_empty(money: Money | None) -> str:
    return hourly(money) if money is not None else ""
