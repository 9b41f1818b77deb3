"""The page behind a Keep link: it asks, and only what is pressed on it keeps. Readable on a phone, nothing loaded.

Of a machine it says the name, the id, the cost and what happens when: whoever has the link sees no more.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from hashlib import sha256
from types import MappingProxyType

from costguard.report.page.markup import Html, element
from costguard.report.words.sentences import Language, clean, fill

_STYLE = (
    "*{box-sizing:border-box}"
    "body{margin:0 auto;max-width:34rem;padding:1.5rem 1.25rem;font:17px/1.5 system-ui,sans-serif;"
    "background:#fff;color:#1c1c1e;overflow-wrap:anywhere}"
    "h1{font-size:1.4rem;line-height:1.25;margin:0 0 1rem}"
    "dl{margin:1rem 0;padding:.75rem 1rem;border:1px solid #d0d0d5;border-radius:.5rem}"
    "dt{font-size:.85rem;color:#5c5c66}dd{margin:0 0 .5rem}"
    "button{font:inherit;font-weight:600;width:100%;min-height:3rem;padding:.6rem 1rem;border:0;border-radius:.5rem;"
    "background:#0b57d0;color:#fff}"
    ".faint{color:#5c5c66;font-size:.9rem}"
    "@media (prefers-color-scheme:dark){body{background:#161618;color:#ececf0}dl{border-color:#48484d}"
    "dt,.faint{color:#a9a9b3}button{background:#8ab4f8;color:#10141c}}"
)
_STYLE_HASH = base64.b64encode(sha256(_STYLE.encode()).digest()).decode()

HEADERS: Mapping[str, str] = MappingProxyType(
    {
        "Content-Type": "text/html; charset=utf-8",
        "Content-Security-Policy": (
            f"default-src 'none'; style-src 'sha256-{_STYLE_HASH}'; form-action 'self'; base-uri 'none'; "
            "frame-ancestors 'none'"
        ),
        "Referrer-Policy": "no-referrer",
        "Cache-Control": "no-store",
        "X-Frame-Options": "DENY",
        "X-Content-Type-Options": "nosniff",
        "X-Robots-Tag": "noindex",
    }
)
"""What every answer with a page carries: the address holds the token, and goes nowhere."""


class KeepScreen(str, Enum):
    """What the page says. Only `ASK` can be answered, only `KEPT` and `KEPT_LATE` changed something."""

    ASK = "ask"
    KEPT = "kept"
    KEPT_LATE = "kept_late"
    LONGER = "longer"
    USED = "used"
    LATE = "late"
    REFUSED = "refused"
    EXPIRED = "expired"
    FORGED = "forged"
    FAILED = "failed"
    METHOD = "method"


STATUS: Mapping[KeepScreen, int] = MappingProxyType(
    {
        KeepScreen.ASK: 200,
        KeepScreen.KEPT: 200,
        KeepScreen.KEPT_LATE: 200,
        KeepScreen.LONGER: 200,
        KeepScreen.USED: 409,
        KeepScreen.LATE: 409,
        KeepScreen.REFUSED: 403,
        KeepScreen.EXPIRED: 410,
        KeepScreen.FORGED: 404,
        KeepScreen.FAILED: 503,
        KeepScreen.METHOD: 405,
    }
)


@dataclass(frozen=True, slots=True)
class KeepPage:
    """One page. `cost` is of an hour; `hours` is how long the link keeps, `until` when that ends; `why` is why not.

    `token` is there where the page asks, and comes back as it is.
    """

    screen: KeepScreen
    name: str = ""
    native_id: str = ""
    cost: str = ""
    what: str = ""
    hours: int = 0
    until: str = ""
    why: str = ""
    token: str = ""


_WORDS: Mapping[Language, Mapping[str, str]] = MappingProxyType(
    {
        Language.EN: MappingProxyType(
            {
                "ask": "Keep {machine}?",
                "ask_text": "Nothing has changed yet. Press the button and Costguard leaves it alone for {length}.",
                "kept": "{machine} is kept",
                "kept_text": "Costguard leaves it alone[ until {until}].",
                "kept_late": "{machine} is kept, from the next step on",
                "kept_late_text": (
                    "A step had begun already and may still take place. After it nothing happens[ until {until}]."
                ),
                "longer": "{machine} is kept already",
                "longer_text": "It is kept[ until {until}], which is at least as long. Nothing was changed.",
                "used": "This link was used before",
                "used_text": "A link keeps once.[ {machine} is kept until {until}.] Nothing was changed.",
                "late": "This link is too late",
                "late_text": (
                    "Things have moved on since the message with this link: look at the newest message, or ask "
                    "`costguard why`. Nothing was changed."
                ),
                "refused": "This could not be kept",
                "refused_text": "Nothing was changed.[ {why}]",
                "expired": "The time of this link is over",
                "expired_text": "Look for a newer message, or use `costguard snooze`. Nothing was changed.",
                "forged": "This link is not complete",
                "forged_text": "Open it from the message again, whole. Nothing was changed.",
                "failed": "This could not be written down",
                "failed_text": "Nothing is known to have changed. Please try again in a minute.",
                "method": "This page is opened or answered, nothing else",
                "method_text": "Nothing was changed.",
                "button": "Keep for {length}",
                "hours": "{count} hours",
                "days": "{count} days",
                "name": "Machine",
                "id": "Id",
                "cost": "Cost",
                "hourly": "{cost} an hour",
                "what": "What was announced",
                "note": "Costguard · opening this page changes nothing",
            }
        ),
        Language.ZH: MappingProxyType(
            {
                "ask": "保留 {machine}？",
                "ask_text": "目前尚未做任何更改。点击按钮后，Costguard 在 {length} 内不会处理它。",
                "kept": "已保留 {machine}",
                "kept_text": "Costguard 不会处理它[，直至 {until}]。",
                "kept_late": "已保留 {machine}，自下一步起生效",
                "kept_late_text": "此前已有一步开始执行，可能仍会完成。此后[直至 {until}]不会再有操作。",
                "longer": "{machine} 已被保留",
                "longer_text": "它已被保留[至 {until}]，不短于此链接的期限。未做任何更改。",
                "used": "此链接已使用过",
                "used_text": "每个链接只能使用一次。[{machine} 已保留至 {until}。]未做任何更改。",
                "late": "此链接已过时",
                "late_text": "发出该链接后情况已有变化：请查看最新消息，或使用 `costguard why`。未做任何更改。",
                "refused": "无法保留",
                "refused_text": "未做任何更改。[{why}]",
                "expired": "此链接已过期",
                "expired_text": "请查找更新的消息，或使用 `costguard snooze`。未做任何更改。",
                "forged": "此链接不完整",
                "forged_text": "请从消息中重新完整打开。未做任何更改。",
                "failed": "无法记录您的答复",
                "failed_text": "目前未发现任何更改。请一分钟后重试。",
                "method": "此页面只能打开或提交",
                "method_text": "未做任何更改。",
                "button": "保留 {length}",
                "hours": "{count} 小时",
                "days": "{count} 天",
                "name": "机器",
                "id": "编号",
                "cost": "费用",
                "hourly": "每小时 {cost}",
                "what": "已通知的内容",
                "note": "Costguard · 打开此页面不会做任何更改",
            }
        ),
    }
)


def keep_page(page: KeepPage, language: Language) -> str:
    """The whole page; every word that is not its own is escaped."""
    words = _WORDS[language]
    machine = clean(page.name) or clean(page.native_id) or "–"
    facts = {
        "machine": machine,
        "length": length_words(page.hours, language),
        "until": page.until,
        "why": clean(page.why, 400),
    }
    title = fill(words[page.screen.value], facts)
    rows = (
        (words["name"], page.name),
        (words["id"], page.native_id),
        (words["cost"], fill(words["hourly"], {"cost": page.cost}) if page.cost else ""),
        (words["what"], page.what),
    )
    known = [
        element("div", element("dt", label), element("dd", clean(value, 400))) for label, value in rows if clean(value)
    ]
    body = element(
        "body",
        element("h1", title),
        element("p", fill(words[f"{page.screen.value}_text"], facts, limit=400)),
        element("dl", *known) if known else None,
        _form(page, language) if page.screen is KeepScreen.ASK else None,
        element("p", words["note"], class_="faint") if page.screen is KeepScreen.ASK else None,
    )
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", name="referrer", content="no-referrer"),
        element("meta", name="robots", content="noindex"),
        element("meta", name="color-scheme", content="light dark"),
        element("title", title),
        Html(f"<style>{_STYLE}</style>"),
    )
    return f"<!doctype html>\n{element('html', head, body, lang='zh-CN' if language is Language.ZH else 'en')}\n"


def length_words(hours: int, language: Language) -> str:
    """`24 hours`, `7 days`: up to two days in hours, as people say it."""
    days, rest = divmod(hours, 24)
    whole = not rest and days > 2  # noqa: PLR2004 - two days are said in hours
    return fill(_WORDS[language]["days" if whole else "hours"], {"count": days if whole else hours})


def _form(page: KeepPage, language: Language) -> Html:
    label = fill(_WORDS[language]["button"], {"length": length_words(page.hours, language)})
    # `?` leaves the token out of the address that is posted to: it travels in the body
    return element(
        "form", element("button", label, type="submit", name="t", value=page.token), method="post", action="?"
    )
