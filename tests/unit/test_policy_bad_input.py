"""Every mistake a policy can hold is told with file, line, column and what to write instead."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, timedelta

import pytest

from costguard.domain.errors import InvalidInputError
from costguard.policy.documents.loader import check_policy, load_policy
from costguard.ports import PolicyText

RULE = "idle_gpu: [{name: research}]\n"
HEAD = "version: 1\n" + RULE


@dataclass(frozen=True)
class Bad:
    """`text` holds » right before the place that must be named."""

    text: str
    says: str
    fix: str


def main(text: str, says: str, fix: str) -> Bad:
    return Bad("version: 1\n" + text, says, fix)


def rule(text: str, says: str, fix: str) -> Bad:
    return Bad(f"version: 1\nmode: enforce\nidle_gpu:\n  - name: research\n    {text}\n", says, fix)


def idle(text: str, says: str, fix: str) -> Bad:
    return rule(f"idle_when_all: {{{text}}}", says, fix)


def safety(text: str, says: str, fix: str) -> Bad:
    return rule(f"safety: {{{text}}}", says, fix)


def where(text: str, says: str, fix: str) -> Bad:
    return rule(f"applies_when_all: {text}", says, fix)


def account(text: str, says: str, fix: str) -> Bad:
    return main(RULE + f"accounts:\n  - {{{text}}}\n", says, fix)


def calendar(text: str, says: str, fix: str) -> Bad:
    return main(RULE + f"calendar: {{{text}}}\n", says, fix)


def exception(text: str, says: str, fix: str) -> Bad:
    head = RULE + "exceptions:\n  - {resource: i-0123456789abcdef0, owner: nlp, reason: demo, approver: finops, "
    return main(head + text + "}\n", says, fix)


FORM = {
    "duplicate key": main("mode: observe\n»mode: warn\n" + RULE, "mode is there twice, first on line 2", "keep one"),
    "duplicate nested key": idle("lasting: 24h, »lasting: 48h", "lasting is there twice", "keep one"),
    "anchor": main("mode: »&m observe\n" + RULE, "anchors are not allowed: &m", "write the value out"),
    "alias": main(RULE + "prices: »*m\n", "aliases are not allowed: *m", "write the value out"),
    "star unquoted": where("{instance_types: [»*.large]}", "aliases are not allowed", 'in quotes: "*.large"'),
    "star alone": where("{instance_types: [*»]}", "while scanning an alias", 'in quotes: "*"'),
    "merge key": idle("»<<: {lasting: 24h}", "merge keys", "write the keys out"),
    "tag": main("mode: »!!str observe\n" + RULE, "tags are not allowed", "remove the tag"),
    "own tag": main("mode: »!secret observe\n" + RULE, "tags are not allowed: !secret", "remove the tag"),
    "yaml 1.1": Bad("%YAML 1.1\n»---\n" + HEAD, "read as YAML 1.2", "remove the %YAML line"),
    "second document": Bad(HEAD + "»---\nversion: 1\n", "a second document", "remove the line ---"),
    "tab": Bad("version: 1\nidle_gpu:\n»\t- name: a\n", "a tab", "use spaces"),
    "NUL": Bad(HEAD + "mode: »\0\n", "U+0000", "type the line again"),
    "escape character": Bad(HEAD + "mode: »\x1b[31m\n", "U+001B", "type the line again"),
    "direction mark": Bad(HEAD + "mode: »\u202eevresbo\n", "U+202E", "type the line again"),
    "zero width": Bad(HEAD + "mode: obs»\u200berve\n", "U+200B", "type the line again"),
    "line separator": Bad(HEAD + "mode: observe»\u2028\n", "U+2028", "type the line again"),
    "escaped control": Bad(HEAD + 'mode: »"obs\\u0000erve"\n', "U+0000", "remove the escape"),
    "nan": safety("actions_per_day: ».nan", ".nan is not a number", "write a finite number"),
    "inf": safety("actions_per_day: ».inf", ".inf is not a number", "write a finite number"),
    "minus inf": safety("actions_per_day: »-.INF", "-.INF is not a number", "write a finite number"),
    "huge float": safety("actions_per_day: »1e999", "too large", "write a finite number"),
    "octal id": account("cloud: aws, id: »012345670123, regions: all", "read as octal", '"012345670123"'),
    "octal": safety("actions_per_day: »0o17", "octal or hexadecimal", "write it in decimal"),
    "hexadecimal": safety("actions_per_day: »0x10", "octal or hexadecimal", "write it in decimal"),
    "unquoted id": account("cloud: aws, id: »111122223333, regions: all", "expected text", '"111122223333"'),
    "number as key": where("{tags: {»7: x}}", "a key must be text: 7", '"7"'),
    "true as key": where("{tags: {»true: x}}", "a key must be text: true", '"true"'),
    "list as key": where("{tags: {»[a, b]: x}}", "not a list or mapping", "write key: value"),
    "empty value": main("mode:»\n" + RULE, "an empty value says neither none nor all", "leave the key out"),
    "comment for value": main(
        RULE + "notify: {default:» #gpu-costs\n  }\n", "an empty value", "starts with # needs quotes"
    ),
    "null": main("mode: »null\n" + RULE, "an empty value", "leave the key out"),
    "tilde": main("mode: »~\n" + RULE, "an empty value", "leave the key out"),
    "too deep": Bad(HEAD + "prices: " + "[" * 49 + "»[" + "]" * 50, "deeper than 50", "flatten it"),
    "open quote": Bad(HEAD + 'mode: "observe»', "unexpected end of stream", "close the quote"),
    "open bracket": Bad(
        "version: 1\nidle_gpu: [{name: a}\n»mode: observe\n", "expected ',' or ']'", "close the bracket"
    ),
    "colon in value": Bad(HEAD + "mode: a»: b\n", "mapping values are not allowed", "quote a value"),
    "percent at start": Bad(HEAD + "mode: »%x\n", "cannot start any token", "in quotes"),
    "not a mapping": Bad("»- version: 1\n", "expected keys and values, found a list", "key: value"),
    "empty file": Bad("»", "the file is empty", "remove the file"),
    "only a comment": Bad("»# later\n", "the file is empty", "remove the file"),
    "too long": Bad("»" + "# filler\n" * 8_000, "longer than 64 KiB", "policies/"),
    "half a surrogate": Bad(HEAD + "mode: »\ud800\n", "U+D800", "type the line again"),
}

MAIN = {
    "no version": Bad("»" + RULE, "version: this key is missing", "add version: 1"),
    "version 2": Bad("version: »2\n" + RULE, "version 2 is not known", "write version: 1"),
    "version as text": Bad('version: »"1"\n' + RULE, "not known", "write version: 1"),
    "no rules": Bad("»version: 1\n", "nothing would be guarded", "add a rule"),
    "empty rules": main("idle_gpu: »[]\n", "nothing would be guarded", "add a rule"),
    "unknown key": main("»idle_gpus: []\n" + RULE, "unknown key 'idle_gpus'", "did you mean idle_gpu?"),
    "unknown key, nothing near": main(
        "»zzz: 1\n" + RULE, "unknown key 'zzz'", "known here: accounts, budgets, calendar"
    ),
    "network_audits": main(
        "»network_audits: []\n" + RULE, "unknown key 'network_audits'", "did you mean network_audit?"
    ),
    "mode": main("mode: »enforced\n" + RULE, "'enforced' is not a mode", "did you mean enforce?"),
    "mode is on": main("mode: »on\n" + RULE, "'on' is not a mode", "observe, warn"),
    "mode is true": main("mode: »true\n" + RULE, "true is not a mode", ""),
    "notify": main(RULE + 'notify: {default: »"#gpu-costs"}\n', "is not a channel", "slack:#gpu-costs"),
    "prometheus password": main(
        RULE + 'signals: {prometheus: [{url: »"https://me:s3cret@prom:9090"}]}\n', "without user, password", "9090"
    ),
    "prometheus matcher": main(
        RULE + "signals: {prometheus: [{url: http://prom, extra_matchers: »'job=dcgm'}]}\n", "label matchers", "job="
    ),
    "namespace": main(
        RULE + "signals: {cloudwatch_namespace: »Our Metrics}\n", "not a CloudWatch namespace", "CWAgent"
    ),
    "price of nothing": main(
        RULE + 'prices: [{cloud: aws, instance_types: ["p4d.*"], hourly: »0 USD}]\n', "hide the cost", "price an hour"
    ),
    "protect nothing": main(RULE + "protect: {tags: »[]}\n", "matches nothing", "keep the tags Costguard knows"),
    "protect a pattern": main(RULE + 'protect: {accounts: [»"1111*"]}\n', "is a pattern", "list every account"),
    "owner twice": main(
        RULE + "owners: [{name: a, owns: {tags: {t: a}}}, {name: »A, owns: {tags: {t: b}}}]\n", "a second owner", "name"
    ),
    "owner owns nothing": main(RULE + "owners: [{name: a, owns: »{}}]\n", "matches nothing", "leave the key out"),
    "owner by account": main(
        RULE + 'owners: [{name: a, owns: {»account: "111122223333"}}]\n', "unknown key", "did you mean accounts?"
    ),
}

ACCOUNTS = {
    "cloud": account('cloud: »amazon, id: "111122223333", regions: all', "is not a cloud", "aws"),
    "short id": account('cloud: aws, id: »"11112222333", regions: all', "has 12 digits", "leading zeros"),
    "alibaba id": account('cloud: alibaba, id: »"111122223333", regions: all', "has 16 digits", "console"),
    "no regions": main(
        RULE + 'accounts: [»{cloud: aws, id: "111122223333"}]\n', "regions: this key is missing", "add regions: all"
    ),
    "empty regions": account('cloud: aws, id: "111122223333", regions: »[]', "reads no region", "regions: all"),
    "one region": account('cloud: aws, id: "111122223333", regions: »us-east-1', "not a list", "write [us-east-1]"),
    "all in a list": account('cloud: aws, id: "111122223333", regions: [»all]', "not a region", "write regions: all"),
    "mapping for a region": account('cloud: aws, id: "111122223333", regions: [»{a: b}]', "is not a region", ""),
    "wrong partition": account(
        'cloud: aws-cn, id: "111122223333", regions: [»us-east-1]', "not a region of aws-cn", "it belongs to aws"
    ),
    "role of another partition": account(
        'cloud: aws-cn, id: "111122223333", regions: all, role: »"arn:aws:iam::111122223333:role/x"',
        "not a role of aws-cn",
        "arn:aws-cn:iam::",
    ),
    "bool": account('cloud: aws, id: "111122223333", regions: all, protected: »no', "true or false", "write false"),
    "bool in quotes": account(
        'cloud: aws, id: "111122223333", regions: all, organisation: »"yes"', "true or false", "write true"
    ),
    "no accounts": main(RULE + "accounts: »[]\n", "matches nothing", "the account the credentials belong to"),
    "same account": main(
        RULE + 'accounts:\n  - {cloud: aws, id: "111122223333", regions: all}\n'
        '  - {cloud: aws, id: »"111122223333", regions: all}\n',
        "a second account aws 111122223333",
        "remove one",
    ),
}

RULES = {
    "no name": Bad("version: 1\nidle_gpu: [»{mode: observe}]\n", "name: this key is missing", "add name: research"),
    "bad name": Bad('version: 1\nidle_gpu: [{name: »"a b"}]\n', "is not a name", ""),
    "same name": Bad("version: 1\nidle_gpu: [{name: a}, {name: »A}]\n", "a second rule A", "a name of its own"),
    "harsher mode": Bad(
        "version: 1\nmode: warn\nidle_gpu: [{name: a, mode: »enforce}]\n",
        "harsher than the policy's warn",
        "write warn",
    ),
    "harsher than unwritten": Bad(
        "version: 1\nidle_gpu: [{name: a, mode: »warn}]\n", "harsher than the policy's observe", "write observe"
    ),
    "rule is text": Bad("version: 1\nidle_gpu: [»research]\n", "expected keys and values", "key: value"),
    "rules are a mapping": Bad("version: 1\nidle_gpu: »{name: a}\n", "expected a list", "with a dash"),
    "unknown key": rule("»idle_when: {lasting: 24h}", "unknown key 'idle_when'", "did you mean idle_when_all?"),
    "matches nothing": where("»{}", "an empty mapping matches nothing", "leave the key out to match all"),
    "no types": where("{instance_types: »[]}", "an empty list matches nothing", "leave the key out to match all"),
    "no tags": where("{tags: »{}}", "an empty mapping matches nothing", "leave the key out to match all"),
    "no billing": where("{billing: »[]}", "an empty list matches nothing", "leave the key out"),
    "types as text": where("{instance_types: »p4d.24xlarge}", "expected a list", 'write ["p4d.24xlarge"]'),
    "type twice": where('{instance_types: ["p4d.*", »"p4d.*"]}', "is there twice", "keep one"),
    "billing": where("{billing: [»ondemand]}", "is not a way of billing", "did you mean on_demand?"),
    "cloud": where("{clouds: [»aws-china]}", "is not a cloud", "did you mean"),
    "tag value is a number": where("{tags: {cost: »17}}", "expected text, found the number 17", '"17"'),
    "tag value is true": where("{tags: {gpu: »true}}", "expected text, found the truth value true", '"true"'),
    "account too short": where('{accounts: [»"1111"]}', "matches no account id", "ids are digits"),
    "account unquoted": where("{accounts: [»111122223333]}", "expected text", '"111122223333"'),
    "resource": where('{resources: [»"aws:1:2"]}', "is not a resource id", ""),
    "except as mapping": rule("except_when_any: »{tags: {a: b}}", "expected a list", "dash"),
    "except nothing": rule("except_when_any: »[]", "matches nothing", "leave the key out"),
    "bare number": idle("lasting: »24", "'24' has no unit", "write 24h if hours"),
    "bare number in quotes": idle('lasting: »"24"', "'24' has no unit", "write 24h"),
    "upper case unit": idle("lasting: »24H", "'H' is not a unit of time", "write 24h"),
    "word for a unit": idle("lasting: »2 days", "'days' is not a unit of time", "write 2d"),
    "ISO 8601": idle("lasting: »PT24H", "is not a duration", "write 24h"),
    "fraction": idle("lasting: »1.5h", "not a whole number", "write 90m"),
    "two units": idle("lasting: »1d12h", "is not a duration", "one whole number and one unit"),
    "negative": idle("lasting: »-24h", "is negative", "without the minus"),
    "zero window": idle("lasting: »0h", "too short to call anything idle", "24h"),
    "short window": idle("lasting: »59m", "too short to call anything idle", "24h"),
    "long window": idle("lasting: »61d", "longer than signals are kept", "14d"),
    "endless": idle("lasting: »99999999999d", "longer than ten years", "shorter"),
    "list for duration": idle("lasting: »[24h]", "found a list", ""),
    "over 100 %": idle("every_gpu_max_below: »101%", "more than all of it", "at most 100%"),
    "percent without sign": idle("every_gpu_max_below: »5", "not a percentage", "write 5%"),
    "negative percent": idle("cpu_max_below: »-5%", "is negative", "minus"),
    "bound of zero": idle("every_gpu_max_below: »0%", "nothing is ever below 0", "5%"),
    "rate without unit": idle("network_max_below: »50", "no unit", "KiB/s"),
    "rate in bits": idle("network_max_below: »1Mbit/s", "unknown unit", "divided by 8"),
    "rate in another case": idle("network_max_below: »50kib/s", "unknown unit", "write 50KiB/s"),
    "power without unit": idle("power_max_below: »80", "no unit", "W"),
    "coverage lowered": idle("min_coverage: »90%", "only be raised above 95%", "95% or more"),
    "coverage over 100 %": idle("min_coverage: »101%", "more than all of it", "100%"),
    "unknown signal": idle("»gpu_max_below: 5%", "unknown key", "did you mean every_gpu_max_below?"),
    "share over 100 %": safety("fleet_share_per_day: »110%", "more than all of it", "at most 100%"),
    "share without sign": safety("fleet_share_per_day: »0.1", "not a percentage", "%"),
    "money without currency": safety("hourly_cost_stopped_per_day: [»200]", "not an amount of money", "200 USD"),
    "money with a sign": safety('hourly_cost_stopped_per_day: [»"$200"]', "not an amount of money", "write 200 USD"),
    "money with commas": safety('hourly_cost_stopped_per_day: [»"1,400 CNY"]', "not an amount", "write 1400 CNY"),
    "money lower case": safety("hourly_cost_stopped_per_day: [»200 usd]", "not an amount", "write 200 USD"),
    "RMB": safety("hourly_cost_stopped_per_day: [»1400RMB]", "not an amount", "write 1400 CNY"),
    "negative money": safety("hourly_cost_stopped_per_day: [»-1 USD]", "is negative", "minus"),
    "no money": safety("hourly_cost_stopped_per_day: »[]", "caps every currency at nothing", "[0 USD]"),
    "one currency twice": safety("hourly_cost_stopped_per_day: [1 USD, »2 USD]", "two caps in USD", "one amount"),
    "money alone": safety("hourly_cost_stopped_per_day: »200 USD", "expected a list", "write [200 USD]"),
    "count negative": safety("actions_per_day: »-1", "is negative", "write 0"),
    "count as text": safety('actions_per_day: »"10"', "is not a count", "without quotes"),
    "count with fraction": safety("actions_per_day: »1.5", "is not a count", ""),
    "count is true": safety("actions_per_day: »true", "is not a count", ""),
    "local disk": safety("local_disk: »loose", "is not an answer", "did you mean lose?"),
    "no amount for an approver": safety("local_disk_approver_above: »[]", "caps every currency at nothing", "[0 USD]"),
    "amount for an approver": safety("local_disk_approver_above: [»20]", "not an amount", "20 USD"),
    "amounts for an approver": safety("local_disk_approver_above: [1 USD, »2 USD]", "two caps in USD", "one amount"),
    "unstoppable": safety("unstoppable: »kill", "is not an answer", "hold, terminate"),
    "verb": rule("then: [»wran]", "'wran' is not a step", "did you mean warn?"),
    "start is no step": rule("then: [warn, »start]", "'start' is not a step", ""),
    "empty ladder": rule("then: »[]", "an empty ladder does nothing", "[warn,"),
    "terminate alone": rule("then: [warn, »terminate]", "terminate without a stop before it", "put stop before"),
    "terminate first": rule("then: [warn, »terminate, stop]", "terminate without a stop", "put stop before"),
    "after terminate": rule("then: [stop, »terminate, snapshot]", "nothing can follow terminate", "last"),
    "verb twice": rule("then: [warn, stop, »stop]", "stop is there twice", "keep one"),
    "warn later": rule("then: [stop, »warn]", "warn comes first", "warned again"),
    "warn waits": rule("then: [{warn: {wait: »1h}}]", "warn never waits", "step after"),
    "short stop": rule("then: [warn, {stop: {wait: »59m}}]", "too short a wait before stop; at least 1h", "1h or more"),
    "no wait before stop": rule("then: [warn, {stop: {wait: »0s}}]", "too short a wait before stop", "1h or more"),
    "short quarantine": rule("then: [stop, {terminate: {wait: »1h}}]", "before terminate; at least 24h", "24h or more"),
    "long wait": rule("then: [{stop: {wait: »91d}}]", "too long a wait", "90d"),
    "wait without unit": rule("then: [{stop: {wait: »24}}]", "no unit", "write 24h"),
    "short form": rule("then: [{stop: »24h}]", "is not what a step takes", "{stop: {wait: 24h}}"),
    "step option": rule("then: [{stop: {»after: 24h}}]", "unknown key 'after'", "only wait"),
    "two verbs in a step": rule("then: [»{warn: {}, stop: {}}]", "one verb", "its own item"),
    "ladder as text": rule("then: »stop", "expected a list", "write [stop]"),
}

CALENDARS = {
    "zone": calendar('zone: »Asia/Shanghia, hours: "10:00-18:00"', "not a time zone", "did you mean Asia/Shanghai?"),
    "zone by city": calendar('zone: »Shanghai, hours: "10:00-18:00"', "not a time zone", "write Asia/Shanghai"),
    "offset": calendar('zone: »UTC+8, hours: "10:00-18:00"', "not a time zone", "write for example"),
    "path for zone": calendar('zone: »../../etc/passwd, hours: "10:00-18:00"', "not a time zone", ""),
    "hours backwards": calendar('zone: UTC, hours: »"18:00-10:00"', "closes before it opens", "24:00"),
    "no hours at all": calendar('zone: UTC, hours: »"10:00-10:00"', "closes before it opens", "24:00"),
    "hour 25": calendar('zone: UTC, hours: »"10:00-25:00"', "no clock shows", ""),
    "hours in words": calendar("zone: UTC, hours: »office", "not a span of hours", ""),
    "sexagesimal is text": calendar("zone: UTC, hours: »22:30", "not a span of hours", ""),
    "day": calendar('zone: UTC, hours: "10:00-18:00", days: »mon-fry', "'fry' is not a day", "did you mean fri?"),
    "no days": calendar('zone: UTC, hours: "10:00-18:00", days: »[]', "no day is worked", "every hour"),
    "holidays": calendar('zone: UTC, hours: "10:00-18:00", holidays: »germany', "is no country", "write de"),
    "no such country": calendar('zone: UTC, hours: "10:00-18:00", holidays: »xx', "no holidays are known", "cn, us"),
    "no such part": calendar('zone: UTC, hours: "10:00-18:00", holidays: [cn, »us-QQ]', "no part of us", "CA"),
    "zone not chosen": calendar('zone: »CHOOSE, hours: "10:00-18:00"', "no time zone is chosen yet", "calendar: none"),
    "another word": main(RULE + "calendar: »sometimes\n", "expected keys and values", "calendar: none"),
    "never": calendar('zone: UTC, days: wed, hours: »"13:00-18:00"', "nothing could ever be stopped", "12:00"),
    "holiday date": calendar('zone: UTC, hours: "10:00-18:00", holidays: [»2026-02-30]', "is not a date", ""),
    "holiday and workday": calendar(
        'zone: UTC, hours: "10:00-18:00", holidays: [2026-10-01], workdays: [»2026-10-01]',
        "a holiday and a workday",
        "",
    ),
    "unliveable wait": Bad(
        'version: 1\ncalendar: {zone: UTC, days: mon, hours: "10:00-11:00"}\n'
        "idle_gpu: [{name: a, then: [stop, »{terminate: {wait: 30d}}]}]\n",
        "takes over two years",
        "widen calendar.hours",
    ),
}

EXCEPTIONS = {
    "naive": exception('expires: »"2026-12-01T18:00:00"', "says no offset", "2026-12-01T18:00:00Z or"),
    "naive, unquoted": exception("expires: »2026-12-01T18:00:00", "says no offset", "+08:00"),
    "date alone": exception("expires: »2026-12-01", "a date without time and offset", "2026-12-01T23:59:59Z"),
    "day that is not": exception('expires: »"2026-02-30T00:00:00Z"', "is not a time", ""),
    "word": exception("expires: »never", "is not a time", ""),
    "no expiry": main(
        RULE + "exceptions:\n  - »{resource: i-0abc, owner: a, reason: b, approver: c}\n",
        "expires: this key is",
        "2026-",
    ),
    "no aim": main(
        RULE + 'exceptions:\n  - »{owner: a, reason: b, approver: c, expires: "2026-12-01T00:00Z"}\n', "neither", "one"
    ),
    "two aims": exception('»applies_when_all: {tags: {a: b}}, expires: "2026-12-01T00:00Z"', "both", "keep one"),
    "no reason": main(
        RULE + 'exceptions: [{resource: i-0abc, owner: a, reason: »" ", approver: c, expires: "2026-12-01T00:00Z"}]\n',
        "is not a line of text",
        "",
    ),
}

TABLES = {
    "form": FORM,
    "main": MAIN,
    "accounts": ACCOUNTS,
    "rules": RULES,
    "calendar": CALENDARS,
    "exceptions": EXCEPTIONS,
}


@pytest.mark.parametrize(
    "bad", [pytest.param(bad, id=f"{table}: {name}") for table, cases in TABLES.items() for name, bad in cases.items()]
)
def test_a_mistake_is_told_with_its_place_and_the_fix(bad: Bad) -> None:
    before, _, after = bad.text.partition("»")
    place = f"costguard.yaml:{before.count(chr(10)) + 1}:{len(before) - before.rfind(chr(10))}: "

    with pytest.raises(InvalidInputError) as raised:
        load_policy(PolicyText({"costguard.yaml": before + after}, "r1"))

    message = str(raised.value)
    assert message.startswith("1 error in the policy; nothing was changed\n" + place)
    assert bad.says in message
    assert bad.fix in message


def test_all_mistakes_of_all_files_are_told_at_once_in_order_of_place() -> None:
    files = {
        "policies/b.yaml": "idle_gpu:\n  - {name: research, then: [stop, stop]}\n  - {name: x, mode: enforce}\n",
        "owners.yaml": "- {name: nlp, owns: {tags: {}}}\n- *them\n",
        "exceptions.yaml": "- {resource: i-0abc, owner: a, reason: b, approver: c, expires: 2026-12-01}\n",
        "costguard.yaml": "version: 1\nmod: warn\nidle_gpu: [{name: research, safety: {fleet_share_per_day: 200%}}]\n",
        "policies/a.yaml": "idle_gpu: [\n",
    }

    _, problems = check_policy(PolicyText(files, "r1", "/etc/costguard"))

    assert [f"{each.path.removeprefix('/etc/costguard/')}:{each.mark.line} {each.field}" for each in problems] == [
        "costguard.yaml:2 mod",
        "costguard.yaml:3 idle_gpu[0].safety.fleet_share_per_day",
        "exceptions.yaml:1 [0].expires",
        "owners.yaml:1 [0].owns.tags",
        "owners.yaml:2 [1]",
        "policies/a.yaml:2 idle_gpu[0]",
        "policies/b.yaml:2 idle_gpu[0].name",
        "policies/b.yaml:2 idle_gpu[0].then[1]",
        "policies/b.yaml:3 idle_gpu[1].mode",
    ]


@pytest.mark.parametrize(
    ("name", "text", "says", "fix"),
    [
        ("exception.yaml", "[]\n", "no file of a policy is called so", "did you mean exceptions.yaml?"),
        ("costguard.yml", HEAD, "costguard.yaml holds the same", "keep one of the two files"),
        (
            "policies/a.yaml",
            "version: 1\n",
            "none of idle_gpu, budgets, kms_rotation and network_audit is in this file",
            "add",
        ),
        ("policies/a.yaml", "mode: warn\nidle_gpu: []\n", "this key belongs in costguard.yaml", "move it there"),
        ("policies/a.yaml", "", "the file is empty", "remove the file"),
        ("owners.yaml", "", "the file is empty", "[] for an empty list"),
        ("exceptions.yaml", "# none yet\n", "the file is empty", "[] for an empty list"),
        ("owners.yaml", "nlp: x\n", "expected a list", "a dash"),
    ],
)
def test_a_file_beside_costguard_yaml_is_never_passed_over(name: str, text: str, says: str, fix: str) -> None:
    _, problems = check_policy(PolicyText({"costguard.yaml": HEAD, name: text}, "r1"))

    assert [each.path for each in problems] == [name]
    assert says in str(problems[0])
    assert fix in str(problems[0])


def test_a_folder_without_costguard_yaml_is_no_policy() -> None:
    _, problems = check_policy(PolicyText({"policies/a.yaml": RULE, "owners.yaml": "[]\n"}, "r1", "/etc/costguard"))

    assert [str(each).splitlines()[0] for each in problems] == ["/etc/costguard:1:1: there is no costguard.yaml"]


def test_the_offending_line_is_shown_with_a_caret_below_its_column() -> None:
    _, problems = check_policy(PolicyText({"costguard.yaml": HEAD + "mode: 观察\n"}, "r1"))

    assert problems[0].excerpt == "    mode: 观察\n          ^"


def test_a_password_in_an_address_is_never_repeated() -> None:
    text = HEAD + 'signals: {prometheus: [{url: "https://me:s3cret@prom:9090", instance_lable: x}]}\n'

    with pytest.raises(InvalidInputError) as raised:
        load_policy(PolicyText({"costguard.yaml": text}, "r1"))

    assert "s3cret" not in str(raised.value)
    assert "https://***@prom:9090" in str(raised.value)


@pytest.mark.parametrize("key", ["\\0", "\\e[31m", "\\u202E", "\\uD800"])
def test_a_key_that_would_command_a_terminal_is_not_repeated(key: str) -> None:
    """The key also names the field of every problem below it."""
    _, problems = check_policy(PolicyText({"costguard.yaml": HEAD + f'"{key}":\n  "{key}": ~\n'}, "r1"))

    assert len(problems) > 1
    assert all(char.isprintable() for each in problems for char in str(each).replace("\n", ""))


def test_files_within_the_limit_are_refused_where_together_they_are_a_flood() -> None:
    files = {f"policies/{number}.yaml": "- " * 30_000 for number in range(20)}

    _, problems = check_policy(PolicyText({"costguard.yaml": HEAD, **files}, "r1", "/etc/costguard"))

    assert [each.message for each in problems] == ["the files of the policy are longer than 1024 KiB together"]


def test_every_holiday_that_is_none_is_named_at_once() -> None:
    text = HEAD + 'calendar: {zone: UTC, hours: "10:00-18:00", holidays: [cn, 2026-02-30, germany, xx]}\n'

    _, problems = check_policy(PolicyText({"costguard.yaml": text}, "r1"))

    assert len(problems) == 1
    assert "calendar.holidays[1]" in str(problems[0])
    assert problems[0].message.endswith("; wrong too: germany, xx")


def test_holidays_that_leave_no_working_day_in_sight_are_refused() -> None:
    """Ten years of Mondays: the grace of a calendar that works on Mondays would end in no year that is looked at."""
    closed = ", ".join(str(date(2026, 3, 16) + timedelta(weeks=week)) for week in range(521))
    text = HEAD + f'calendar: {{zone: UTC, days: mon, hours: "10:00-18:00", holidays: [{closed}]}}\n'

    _, problems = check_policy(PolicyText({"costguard.yaml": text}, "r1"))

    assert "521 holidays might leave no working day" in str(problems[0])
