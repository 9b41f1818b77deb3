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

from costguard.domain.reasons import FactValue
from costguard.report.page.markup import Html, element
from costguard.report.words.sentences import Language, clean, on_keep_page

_STYLE = (
    "*{box-sizing:border-box}"
    "body{margin:0 auto;max-width:34rem;padding:1.5rem 1.25rem;font:17px/1.5 system-ui,sans-serif;"
    "background:#fff;color:#1c1c1e;overflow-wrap:anywhere}"
    "h1{font-size:1.4rem;line-height:1.25;margin:0 0 1rem}h2{font-size:1.1rem;margin:2rem 0 .5rem}"
    "label{display:block;margin:0 0 .75rem}"
    "label input{font:inherit;display:block;width:100%;min-height:2.75rem;padding:.4rem}"
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
    """What the page says. Only `ASK` and `START` can be answered.

    Only `KEPT`, `KEPT_LATE`, `START_ASKED` and `EXCEPTION_ASKED` changed something.
    """

    ASK = "ask"
    KEPT = "kept"
    KEPT_LATE = "kept_late"
    LONGER = "longer"
    START = "start"
    START_ASKED = "start_asked"
    START_STANDS = "start_stands"
    EXCEPTION_ASKED = "exception_asked"
    EXCEPTION_WAITS = "exception_waits"
    EXCEPTION_WRONG = "exception_wrong"
    USED = "used"
    LATE = "late"
    REFUSED = "refused"
    EXPIRED = "expired"
    FORGED = "forged"
    FAILED = "failed"
    METHOD = "method"


_ASKING = frozenset({KeepScreen.ASK, KeepScreen.START})

STATUS: Mapping[KeepScreen, int] = MappingProxyType(
    {
        KeepScreen.ASK: 200,
        KeepScreen.KEPT: 200,
        KeepScreen.KEPT_LATE: 200,
        KeepScreen.LONGER: 200,
        KeepScreen.START: 200,
        KeepScreen.START_ASKED: 200,
        KeepScreen.START_STANDS: 200,
        KeepScreen.EXCEPTION_ASKED: 200,
        KeepScreen.EXCEPTION_WAITS: 200,
        KeepScreen.EXCEPTION_WRONG: 400,
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

    `token` is there where the page asks, and comes back as it is. `first` and `last` are the days until which an
    exception may be asked for on it, empty where none can be; `days` is how many that are at most.
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
    first: str = ""
    last: str = ""
    days: int = 0


def keep_page(page: KeepPage, language: Language) -> str:
    """The whole page; every word that is not its own is escaped."""
    machine = clean(page.name) or clean(page.native_id) or "–"
    facts: dict[str, FactValue] = {
        "machine": machine,
        "length": length_words(page.hours, language),
        "until": page.until,
        "why": clean(page.why, 400),
        "days": page.days,
    }
    title = on_keep_page(page.screen.value, language, **facts)
    rows = (
        ("name", page.name),
        ("id", page.native_id),
        ("cost", on_keep_page("hourly", language, cost=page.cost) if page.cost else ""),
        ("what", page.what),
    )
    known = [
        element("div", element("dt", on_keep_page(label, language)), element("dd", clean(value, 400)))
        for label, value in rows
        if clean(value)
    ]
    body = element(
        "body",
        element("h1", title),
        element("p", on_keep_page(f"{page.screen.value}_text", language, **facts)),
        element("dl", *known) if known else None,
        _form(page, language) if page.screen in _ASKING else None,
        element("p", on_keep_page("note", language), class_="faint") if page.screen in _ASKING else None,
        *(_exception_form(page, language) if page.first else ()),
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
    return on_keep_page("days" if whole else "hours", language, count=days if whole else hours)


def _form(page: KeepPage, language: Language) -> Html:
    starts = page.screen is KeepScreen.START
    length = length_words(page.hours, language)
    label = on_keep_page("start_button", language) if starts else on_keep_page("button", language, length=length)
    # `?` leaves the token out of the address that is posted to: it travels in the body
    return element(
        "form", element("button", label, type="submit", name="t", value=page.token), method="post", action="?"
    )


def _exception_form(page: KeepPage, language: Language) -> tuple[Html, ...]:
    """Until when, and why: what an approver is asked then."""

    def field(name: str, **more: str) -> Html:
        return element("label", on_keep_page(f"exception_{name}", language), element("input", name=name, **more))

    return (
        element("h2", on_keep_page("exception", language)),
        element("p", on_keep_page("exception_text", language, days=page.days), class_="faint"),
        element(
            "form",
            element("input", type="hidden", name="t", value=page.token),
            field("until", type="date", min=page.first, max=page.last, required=""),
            field("because", type="text", maxlength="200", required=""),
            element("button", on_keep_page("exception_button", language), type="submit", name="ask", value="exception"),
            method="post",
            action="?",
        ),
    )
