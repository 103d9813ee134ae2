"""A timeline as one self-contained HTML page: inline SVG, no scripts, no request to anywhere."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import Final

from nodeyard.rehearsal.text import conditions, duration, headline, story, summary
from nodeyard.rehearsal.timeline import Capacity, Timeline

WIDTH: Final = 960
LABELS: Final = 300
ROW: Final = 22
PLOT: Final = 90
ROWS_MAX: Final = 300
_STYLE: Final = """
:root { color-scheme: light dark; --line: #8884; --step: #0a7f7f; --change: #b06a00; --area: #0a7f7f44; }
body { font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 62rem; padding: 0 1rem; }
h1 { font-size: 1.5rem; } h2 { font-size: 1.1rem; margin-top: 2rem; }
.bad { color: #c22; } .good { color: #087f3f; } svg { width: 100%; height: auto; }
svg text { font: 12px system-ui, sans-serif; fill: currentColor; } svg line { stroke: var(--line); }
.step { fill: var(--step); } .change { fill: var(--change); } .area { fill: var(--area); stroke: var(--step); }
table { border-collapse: collapse; width: 100%; } td, th { border-bottom: 1px solid var(--line); padding: .2rem .5rem;
text-align: left; vertical-align: top; overflow-wrap: anywhere; }
"""


def render_html(timeline: Timeline) -> str:
    state = "good" if timeline.passes else "bad"
    body = [
        f'<h1 class="{state}">{escape(headline(timeline))}</h1>',
        _list(timeline.reasons),
        f"<p>{escape(summary(timeline))}</p><p>{escape(conditions(timeline))}</p>",
        _section("Assertions", _table(("", "assertion"), [("ok" if each.holds else "FAILED", each.text)
                                                          for each in timeline.checks])),
        _section("Timeline", _gantt(timeline)),
        _section("Free CPUs", "".join(_plot(each, timeline.seconds) for each in timeline.capacity)),
        _section("Pods that left their nodes", _table(
            ("at", "pod", "from", "why", "to", "ready after"),
            [(duration(each.at), each.pod, each.node, each.reason, each.to or "-",
              "-" if each.ready is None else duration(each.ready - each.at)) for each in timeline.moves])),
        _section("Held for approval", _table(("from", "plan", "what"), [
            (duration(each.since), each.id, each.text) for each in timeline.held])),
        _section("Blocked", _table(("from", "until", "object", "why"), [
            (duration(each.since), "the end" if each.until is None else duration(each.until), each.object, each.text)
            for each in timeline.refusals])),
        _section("Notes", _list(timeline.notes)),
    ]  # fmt: skip
    head = f'<meta charset="utf-8"><title>{escape(headline(timeline))}</title><style>{_STYLE}</style>'
    return f'<!doctype html><html lang="en"><head>{head}</head><body>{"".join(body)}</body></html>\n'


def _section(title: str, content: str) -> str:
    return f"<h2>{escape(title)}</h2>{content}" if content else ""


def _list(texts: Iterable[str]) -> str:
    items = "".join(f"<li>{escape(each)}</li>" for each in texts)
    return f"<ul>{items}</ul>" if items else ""


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    if not rows:
        return ""
    titles = "".join(f"<th>{escape(each)}</th>" for each in head)
    cells = ("".join(f"<td>{escape(each)}</td>" for each in row) for row in rows)
    return f"<table><tr>{titles}</tr>{''.join(f'<tr>{each}</tr>' for each in cells)}</table>"


def _gantt(timeline: Timeline) -> str:
    """Return one bar for each step and each group of changes; its tooltip has the whole text."""
    rows, end = story(timeline), max(timeline.seconds, 1.0)
    shown = rows[:ROWS_MAX]
    parts = []
    for number, (begin, until, text) in enumerate(shown):
        y = number * ROW
        x, width = _x(begin, end), max(3.0, _x(until, end) - _x(begin, end))
        kind = "step" if "/" in text.partition(":")[0] else "change"
        label = text if len(text) <= 46 else f"{text[:45]}…"
        parts.append(
            f"<g><title>{escape(f'{duration(begin)} - {duration(until)}: {text}')}</title>"
            f'<line x1="0" x2="{WIDTH}" y1="{y + ROW}" y2="{y + ROW}"/>'
            f'<text x="0" y="{y + 15}">{escape(label)}</text>'
            f'<rect class="{kind}" x="{x:.1f}" y="{y + 5}" width="{width:.1f}" height="12"/></g>'
        )
    height = len(shown) * ROW
    more = f"<p>and {len(rows) - len(shown)} more rows</p>" if len(rows) > len(shown) else ""
    return f"{_svg(height + 20, ''.join(parts) + _axis(end, height))}{more}" if shown else ""


def _plot(series: Capacity, end: float) -> str:
    """Return the free CPUs of a zone and class over time, as steps from the bottom, which is 0 or below."""
    end, points = max(end, 1.0), series.points
    top = max(max(point[2] for point in points), 1.0)
    bottom = min(0.0, *(point[2] for point in points))
    base = _y(0.0, bottom, top)
    path = [f"M{LABELS} {base:.1f}"]
    for at, _, cpu, _ in points:
        path.append(f"H{_x(min(at, end), end):.1f}V{_y(cpu, bottom, top):.1f}")
    path.append(f"H{WIDTH}V{base:.1f}Z")
    lowest = series.lowest
    name = f"zone {series.zone}, class {series.node_class}"
    labels = (
        f'<text x="0" y="20">{escape(name)}</text>'
        f'<text x="0" y="40">lowest {lowest[2]:g} on {lowest[1]} nodes at {duration(lowest[0])}</text>'
        f'<text x="0" y="60">highest {top:g}</text>'
    )
    return _svg(PLOT + 20, f'{labels}<path class="area" d="{"".join(path)}"/>{_axis(end, PLOT)}')


def _axis(end: float, height: int) -> str:
    marks = (end * part / 4 for part in range(5))
    return "".join(
        f'<line x1="{_x(at, end):.1f}" x2="{_x(at, end):.1f}" y1="0" y2="{height}"/>'
        f'<text x="{_x(at, end):.1f}" y="{height + 14}" text-anchor="{"end" if at == end else "start"}">'
        f"{duration(at)}</text>"
        for at in marks
    )


def _svg(height: int, content: str) -> str:
    return f'<svg viewBox="0 0 {WIDTH} {height}" role="img">{content}</svg>'


def _x(at: float, end: float) -> float:
    return LABELS + (WIDTH - LABELS) * min(at, end) / end


def _y(value: float, bottom: float, top: float) -> float:
    return PLOT - (PLOT - 5) * (value - bottom) / (top - bottom)
