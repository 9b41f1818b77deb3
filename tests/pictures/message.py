"""A message of Slack's as a page: our own simple rendering of its Block Kit, not Slack's."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from costguard.report.page.markup import Html, element, joined
from costguard.report.page.style import POLICY

_STYLE = """
body{margin:0;padding:20px;background:#fff;color:#1d1c1d;font:15px/1.47 system-ui,'Noto Sans','DejaVu Sans',sans-serif}
.message{max-width:640px;border-left:4px solid #ddd;padding-left:14px}
.from{font-weight:700;margin-bottom:4px}.from small{background:#eee;border-radius:3px;padding:1px 4px;font-size:10px}
h1{font-size:18px;margin:6px 0}.section{margin:8px 0}.fields{display:grid;grid-template-columns:1fr 1fr;gap:6px 16px}
.context{color:#616061;font-size:13px}hr{border:0;border-top:1px solid #ddd;margin:14px 0}
.actions{display:flex;flex-wrap:wrap;gap:8px;margin:8px 0}
.button{border:1px solid #bbb;border-radius:4px;padding:5px 12px;font-weight:700;font-size:13px}
.button.primary{background:#007a5a;color:#fff;border-color:#007a5a}.button.danger{color:#e01e5a;border-color:#e01e5a}
code{background:#f4f4f4;border:1px solid #ddd;border-radius:3px;padding:0 3px}
code{font:12px ui-monospace,'DejaVu Sans Mono',monospace}
.note{color:#616061;font-size:12px;margin-top:16px}
"""
_MARK = re.compile(r"(\*[^*\n]+\*|`[^`\n]+`)")
_ENTITIES = (("&lt;", "<"), ("&gt;", ">"), ("&amp;", "&"))


def message_page(blocks: Sequence[Mapping[str, Any]], sender: str = "Costguard") -> str:
    """The whole page."""
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", http_equiv="Content-Security-Policy", content=POLICY),
        element("title", sender),
        Html(f"<style>{_STYLE}</style>"),
    )
    body = element(
        "body",
        element(
            "div",
            element("div", f"{sender} ", element("small", "APP"), class_="from"),
            *(part for block in blocks for part in _block(block)),
            class_="message",
        ),
        element("p", "Our own rendering of the message's Block Kit; Slack's looks somewhat different.", class_="note"),
    )
    return f"<!doctype html>\n{element('html', head, body)}\n"


def _block(block: Mapping[str, Any]) -> Iterator[Html]:
    kind = block["type"]
    if kind == "header":
        yield element("h1", _plain(block["text"]["text"]))
    elif kind == "divider":
        yield element("hr")
    elif kind == "section":
        if "text" in block:
            yield element("div", _text(block["text"]), class_="section")
        if "fields" in block:
            yield element("div", *(element("div", _text(one)) for one in block["fields"]), class_="section fields")
        if "accessory" in block:
            yield element("div", _button(block["accessory"]), class_="actions")
    elif kind == "context":
        yield element("div", *(_text(one) for one in block["elements"]), class_="section context")
    elif kind == "actions":
        yield element("div", *(_button(one) for one in block["elements"]), class_="actions")
    else:
        yield element("div", f"[{kind}]", class_="section context")


def _button(one: Mapping[str, Any]) -> Html:
    said = one.get("text") or one.get("placeholder") or {"text": one["type"]}
    return element("span", _plain(said["text"]), class_=f"button {one.get('style', '')}".strip())


def _text(said: Mapping[str, Any]) -> Html:
    if said["type"] == "plain_text":
        return joined([_plain(said["text"])])
    lines = said["text"].split("\n")
    return joined(part for at, line in enumerate(lines) for part in (*([element("br")] if at else []), *_marked(line)))


def _marked(line: str) -> Iterator[Html | str]:
    for part in _MARK.split(line):
        if part.startswith("*") and part.endswith("*") and part != "*":
            yield element("strong", _plain(part[1:-1]))
        elif part.startswith("`") and part.endswith("`") and part != "`":
            yield element("code", _plain(part[1:-1]))
        else:
            yield _plain(part)


def _plain(text: str) -> str:
    for coded, plain in _ENTITIES:
        text = text.replace(coded, plain)
    return text
