"""Writes what docs/performance.md shows of bench/results.json, and its plots. A test fails if they have drifted.

python -m bench.report
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path

from bench import measurements, peer
from bench.measurements import Measured, Row

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "performance.md"
IMAGES = ROOT / "docs" / "images"
BEGIN, END = "<!-- begin: python -m bench.report -->\n", "<!-- end -->\n"
CEILINGS = ("ceiling", "raw patches", "empty")
"""Contestants that do the least that the work takes."""
PEERS = ("kube-apiserver",)
COSTS = ("s", "ms", "MB", "%")
"""Units of which less is better."""
PLOTS = {
    "ceiling": "Cost against the raw ceiling, which is 1",
    "peer": "Cost against kube-apiserver, which is 1",
    "growth": "Cost of the larger input, the smaller being 1",
}
LEFT, BAR, ROW, HEAD, WIDTH = 8, 660, 46, 34, 760
"""Pixels: left margin, longest bar, height of a bar with its label and of the title, width of a plot."""
STYLE = """\
text { font: 12px system-ui, sans-serif; fill: #1f2933 } .title { font-weight: 600; font-size: 14px }
.sub { fill: #52606d } .met { fill: #2a9d8f } .missed { fill: #d1495b }
.one { stroke: #7b8794 } .limit { stroke: #b7791f; stroke-width: 2 }
@media (prefers-color-scheme: dark) { text { fill: #e4e7eb } .sub { fill: #9aa5b1 } .limit { stroke: #f0b429 } }"""


@dataclass(frozen=True)
class Ratio:
    """Two contestants' values of a metric as a cost: above 1 the first is worse."""

    result: str
    what: str
    name: str
    against: str
    cost: float
    limit: float | None = None
    met: bool = True

    @property
    def plot(self) -> str:
        return "ceiling" if self.against in CEILINGS else "peer" if self.against in PEERS else "growth"


def page(text: str, results: Sequence[Measured]) -> str:
    """Return the page with what is between its marks rendered again."""
    before, _, rest = text.partition(BEGIN)
    return before + BEGIN + "\n" + "\n".join(_lines(results)) + "\n" + END + rest.partition(END)[2]


def plots(results: Sequence[Measured]) -> dict[str, str]:
    """Return the plots by file name; none without data."""
    drawn: dict[str, list[Ratio]] = {}
    for each in ratios(results):
        if each.limit is not None:
            drawn.setdefault(each.plot, []).append(each)
    return {f"performance-{name}.svg": svg(PLOTS[name], drawn[name]) for name in PLOTS if name in drawn}


def ratios(results: Sequence[Measured]) -> Iterator[Ratio]:
    """Yield the required ratios, and every other cost of a contestant beside its ceiling or peer."""
    for result in results:
        required = {(row.name, row.what, row.against) for row in result.rows if row.against}
        values = {(row.name, row.what): row for row in result.rows if not row.against}
        for row in result.rows:
            if row.against and row.at_most is not None:
                yield Ratio(result.name, row.what, row.name, row.against, row.value, row.at_most, row.met is True)
            elif row.against and row.at_least and row.value:
                what, cost, limit = f"{row.what}, inverted", 1 / row.value, 1 / row.at_least
                yield Ratio(result.name, what, row.name, row.against, cost, limit, row.met is True)
            elif row.unit in COSTS and row.name not in CEILINGS + PEERS:
                for against in CEILINGS + PEERS:
                    base = values.get((against, row.what))
                    if base is not None and base.value and (row.name, row.what, against) not in required:
                        yield Ratio(result.name, row.what, row.name, against, row.value / base.value)


def svg(title: str, bars: Sequence[Ratio]) -> str:
    scale = BAR / max(1.0, *(bar.cost for bar in bars), *(bar.limit or 0 for bar in bars))
    height = HEAD + ROW * len(bars) + 10
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}">',
        f"<title>{title}</title><style>{STYLE}</style>",
        f'<text class="title" x="{LEFT}" y="20">{title}. Shorter is better; dashed: 1, thick: the limit</text>',
    ]
    for number, bar in enumerate(bars):
        top, end = HEAD + ROW * number, LEFT + max(bar.cost, bar.limit or 0) * scale
        kind, pair = "met" if bar.met else "missed", f"{bar.result}: {bar.name} / {bar.against}"
        limit = LEFT + (bar.limit or 0) * scale
        lines += [
            f'<text x="{LEFT}" y="{top + 14}">{escape(bar.what)} <tspan class="sub">{escape(pair)}</tspan></text>',
            f'<rect class="{kind}" x="{LEFT}" y="{top + 21}" width="{bar.cost * scale:.1f}" height="16" rx="2"/>',
            f'<path class="one" stroke-dasharray="3" d="M{LEFT + scale:.1f} {top + 18}v22"/>',
            f'<path class="limit" d="M{limit:.1f} {top + 18}v22"/>',
            f'<text x="{end + 8:.1f}" y="{top + 33}">{bar.cost:.2f}{"" if bar.met else ", missed"}</text>',
        ]
    return "\n".join([*lines, "</svg>"]) + "\n"


def _lines(results: Sequence[Measured]) -> Iterator[str]:
    yield from _losses(results)
    if results:
        yield from ("## Results", "")
    for machine in dict.fromkeys(each.machine for each in results):
        names = ", ".join(dict.fromkeys(each.benchmark for each in results if each.machine == machine))
        yield from (f"Machine of {names}: {machine.describe()}.", "")
    for name in plots(results):
        title = PLOTS[name.removeprefix("performance-").removesuffix(".svg")]
        yield from (f"![{title}](images/{name})", "")
    if results:
        yield from (
            "### Required and measured",
            "",
            "| benchmark | | measured | limit | met |",
            "|---|---|--:|--:|---|",
        )
    for result in results:
        for row in result.rows:
            if row.met is not None:
                what = f"{row.what}: {row.name}" + (f" / {row.against}" if row.against else "")
                met = "yes" if row.met else "**no**"
                yield f"| {result.name} | {what} | {_number(row.value)} | {_limit(row)} | {met} |"
    if results:
        yield from ("", "### All figures", "")
    for result in results:
        yield from _figures(result)
    if not any(row.name == peer.NAME for result in results for row in result.rows):
        yield from (f"## {peer.NAME}, quoted", "", peer.QUOTED)


def _losses(results: Sequence[Measured]) -> Iterator[str]:
    worse = [each for each in ratios(results) if each.plot != "growth" and round(each.cost, 2) > 1]
    if worse:
        yield from ("Where it is slower or needs more than its ceiling or peer, also where that is allowed:", "")
        yield from ("| benchmark | | times | limit |", "|---|---|--:|--:|")
    for each in sorted(worse, key=lambda each: -each.cost):
        limit = "" if each.limit is None else f"{each.limit:.2f}" + ("" if each.met else ", **missed**")
        yield f"| {each.result} | {each.what}: {each.name} / {each.against} | {each.cost:.2f} | {limit} |"
    if worse:
        yield ""


def _figures(result: Measured) -> Iterator[str]:
    rows = {(row.name, row.what): row for row in result.rows if not row.against}
    names = list(dict.fromkeys(name for name, _ in rows))
    rounds = "one round" if result.rounds == 1 else f"medians of {result.rounds} rounds, ± half the range"
    yield from (f"#### {result.name}", "", f"{result.date}, {rounds}.", "")
    yield from (f"| | {' | '.join(names)} |", f"|---|{'--:|' * len(names)}")
    for what in dict.fromkeys(what for _, what in rows):
        yield f"| {what} | {' | '.join(_cell(rows[name, what]) for name in names)} |"
    yield ""


def _cell(row: Row) -> str:
    return _number(row.value) + (f" (±{row.spread / 2:.0%})" if row.spread is not None else "")


def _limit(row: Row) -> str:
    if row.at_least == row.at_most:
        return _number(row.at_least or 0)
    return f"≥ {_number(row.at_least)}" if row.at_least is not None else f"≤ {_number(row.at_most or 0)}"


def _number(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def main() -> None:
    results = measurements.read(measurements.PATH)
    PAGE.write_text(page(PAGE.read_text(), results))
    drawn = plots(results)
    for stale in set(IMAGES.glob("performance-*.svg")) - {IMAGES / name for name in drawn}:
        stale.unlink()
    for name, text in drawn.items():
        (IMAGES / name).write_text(text)


if __name__ == "__main__":
    main()
