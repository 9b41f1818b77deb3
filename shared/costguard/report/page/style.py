"""How a report's page looks: by light and by dark, on a desk and on a phone. Nothing is loaded from anywhere."""

from __future__ import annotations

from costguard.report.charts.palettes import DARK, LIGHT, Palette

POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'"
"""What a browser may do with the page: show it. No script, no request, no form; styles are its own."""

_RULES = """
*{box-sizing:border-box}
body{margin:0;background:var(--paper);color:var(--ink);font:16px/1.5 var(--sans)}
main,header,footer{max-width:62rem;margin:0 auto;padding:0 1.25rem}
header{padding-top:1.75rem}
h1{font-size:1.75rem;line-height:1.2;margin:0 0 .25rem}
h2{font-size:1.25rem;margin:2.5rem 0 .5rem;padding-top:1rem;border-top:1px solid var(--grid)}
h3{font-size:1rem;margin:1.5rem 0 .25rem}
p{margin:.35rem 0}
.faint{color:var(--faint)}
small,.note{color:var(--faint);font-size:.875rem}
.cards{display:grid;grid-template-columns:repeat(auto-fit,minmax(10.5rem,1fr));gap:.75rem;margin:1.25rem 0 0;padding:0}
.card{border:1px solid var(--grid);border-top:4px solid var(--faint);border-radius:.5rem;padding:.7rem .8rem}
.card{min-width:0}
.card.good{border-top-color:var(--good)}
.card.bad{border-top-color:var(--bad)}
.card h2{all:unset;display:block;font-size:.875rem;color:var(--faint)}
.card .figure{font-size:1.125rem;font-weight:650;line-height:1.25;overflow-wrap:anywhere;margin:.1rem 0 .25rem}
.card .figure span{display:block}
.card p{font-size:.875rem;overflow-wrap:anywhere}
.chart{overflow-x:auto;margin:.5rem 0}
.chart svg{display:block;width:100%;min-width:34rem;height:auto}
.scroll{overflow-x:auto}
table{border-collapse:collapse;width:100%;font-size:.9375rem;margin:.5rem 0}
th{text-align:left;font-weight:600;color:var(--faint);font-size:.8125rem;vertical-align:bottom}
th,td{padding:.4rem .75rem .4rem 0;border-bottom:1px solid var(--grid);vertical-align:top;overflow-wrap:break-word}
td:last-child,th:last-child{padding-right:0}
td.number,th.number{text-align:right;white-space:nowrap;font-variant-numeric:tabular-nums}
ul.changes{margin:.25rem 0;padding-left:1.25rem}
.way{border:1px solid var(--grid);border-left:4px solid var(--bad);border-radius:.5rem;padding:.6rem .9rem}
.way{margin:.6rem 0}
.way ol{display:flex;flex-wrap:wrap;gap:.35rem 0;list-style:none;margin:.5rem 0 .25rem;padding:0}
.way li{display:flex;align-items:center;min-width:0;max-width:100%}
.way li span{border:1px solid var(--grid);border-radius:.375rem;padding:.2rem .55rem;font-size:.875rem}
.way li span{overflow-wrap:anywhere;min-width:0}
.way li+li::before{content:"\\2192";padding:0 .45rem;color:var(--faint)}
footer{padding-top:2rem;padding-bottom:2rem}
@media (max-width:40rem){
main,header,footer{padding-left:.9rem;padding-right:.9rem}
h1{font-size:1.4rem}
.cards{grid-template-columns:1fr}
thead{display:none}
table,tbody,tr,td{display:block;width:100%}
tr{border:1px solid var(--grid);border-radius:.5rem;padding:.4rem .75rem;margin:.6rem 0}
td,td.number{border:0;overflow-wrap:anywhere;padding:.15rem 0;text-align:left;white-space:normal}
td:empty{display:none}
td::before{content:attr(data-label);display:block;color:var(--faint);font-size:.75rem}
}
@media print{.chart svg{min-width:0}}
"""
_SANS = (
    "system-ui,-apple-system,'Segoe UI',Roboto,'Noto Sans','PingFang SC','Microsoft YaHei','Noto Sans CJK SC',"
    "'Noto Sans SC','WenQuanYi Zen Hei',sans-serif"
)


def style() -> str:
    """The whole style sheet."""
    return (
        f":root{{color-scheme:light dark;--sans:{_SANS};{_variables(LIGHT)}}}"
        f"@media (prefers-color-scheme:dark){{:root{{{_variables(DARK)}}}}}"
        f"@media print{{:root{{{_variables(LIGHT)}}}}}"
        f"{_RULES}"
    )


def _variables(palette: Palette) -> str:
    return "".join(f"--{name}:{colour};" for name, colour in palette.named().items())
