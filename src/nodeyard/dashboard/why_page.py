"""The answer to `nodeyard why` as one HTML file: `nodeyard why --html FILE`.

The page needs nothing else: no script, and by its Content-Security-Policy no request. All texts are escaped, since
names and messages come from the cluster.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from html import escape
from typing import Final

from nodeyard.dashboard.answers import CANDIDATES
from nodeyard.dashboard.wire import CandidateRow, Change, Step, Why, WhyAnswer
from nodeyard.plan.layout import counted
from nodeyard.plan.style import clean

_STATES: Final = {"passed": "does not apply", "decided": "decided", "notReached": "not reached"}
_STYLE: Final = """
:root { color-scheme: light dark; --line: #8886; --good: #1a7f37; --bad: #cf222e; --warn: #9a6700; }
@media (prefers-color-scheme: dark) { :root { --good: #3fb950; --bad: #ff7b72; --warn: #d29922; } }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 70rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.4rem; overflow-wrap: anywhere; } h2 { font-size: 1.1rem; } h3 { font-size: 1rem; }
section { border-top: 1px solid var(--line); margin-top: 1.5rem; }
.sentence { font-size: 1.1rem; } .quiet { opacity: .7; } .note { color: var(--warn); }
.decided { font-weight: 600; } .notReached { opacity: .5; } .yes { color: var(--good); } .no { color: var(--bad); }
.matrix { overflow-x: auto; } table { border-collapse: collapse; }
th, td { border: 1px solid var(--line); padding: .2rem .6rem; text-align: left; vertical-align: top; }
pre { border: 1px solid var(--line); padding: .4rem .6rem; overflow-x: auto; user-select: all; }
"""


def render_page(why: Why, headline: str = "", *, most: int | None = CANDIDATES) -> str:
    """Return the page, with at most `most` candidates per answer. `headline` names the running operator."""
    return "\n".join(_page(why, headline, most)) + "\n"


def _page(why: Why, headline: str, most: int | None) -> Iterator[str]:
    title = _text(f"Why {why.object}")
    yield "<!doctype html>"
    yield '<html lang="en"><head><meta charset="utf-8">'
    yield "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">"
    yield '<meta name="viewport" content="width=device-width, initial-scale=1">'
    yield f"<title>{title}</title>"
    yield f"<style>{_STYLE}</style></head><body>"
    yield f"<h1>{title}</h1>"
    if headline:
        yield f'<p class="quiet">{_text(headline)}</p>'
    for answer in why.answers:
        yield "<section>"
        yield from _answer(answer, most)
        yield "</section>"
    yield "</body></html>"


def _answer(answer: WhyAnswer, most: int | None) -> Iterator[str]:
    yield f"<h2>{_text(answer.object)} <span class=quiet>{_text(answer.by)}</span></h2>"
    since = f" <span class=quiet>since {_text(answer.since.isoformat())}</span>" if answer.since else ""
    yield f'<p class="sentence"><b>{_text(answer.reason)}</b>: {_text(answer.sentence)}{since}</p>'
    for note in answer.notes:
        if note.message != answer.sentence:
            yield f'<p class="note"><b>{_text(note.reason)}</b>: {_text(note.message)}</p>'
    if answer.ladder:
        yield "<h3>Rules, in order</h3><ol>"
        yield from map(_step, answer.ladder)
        yield "</ol>"
    if answer.would_change:
        yield "<h3>What would change it</h3><ul>"
        yield from map(_change, answer.would_change)
        yield "</ul>"
    if answer.candidates:
        yield f"<h3>{counted(answer.total, 'candidate')}</h3>"
        shown = answer.candidates[:most]
        yield from _matrix(answer.requirements, shown)
        if answer.total > len(shown):
            yield f'<p class="quiet">and {answer.total - len(shown)} more</p>'


def _step(step: Step) -> str:
    state = step.state if step.state in _STATES else "notReached"
    return f'<li class="{state}">{_text(step.title)} <span class=quiet>({_STATES[state]})</span></li>'


def _matrix(requirements: Iterable[str], candidates: Iterable[CandidateRow]) -> Iterator[str]:
    """Yield a table of candidates by requirements; the requirement that failed is crossed."""
    columns = list(requirements)
    head = "".join(f"<th>{_text(each)}</th>" for each in columns)
    yield f'<div class="matrix"><table><thead><tr><th>candidate</th>{head}<th>why</th></tr></thead><tbody>'
    for each in candidates:
        marks = "".join(_mark(each, column) for column in columns)
        chosen = ' <span class="yes">selected</span>' if each.is_taken else ""
        yield f"<tr><td>{_text(each.name)}{chosen}</td>{marks}<td>{_text(each.message)}</td></tr>"
    yield "</tbody></table></div>"


def _mark(candidate: CandidateRow, requirement: str) -> str:
    if candidate.failed == requirement:
        return '<td class="no" title="failed">\N{MULTIPLICATION X}</td>'
    return '<td class="yes" title="met">\N{CHECK MARK}</td>' if candidate.is_taken else "<td></td>"


def _change(change: Change) -> str:
    command = f"<pre><code>{_text(change.command)}</code></pre>" if change.command else ""
    return f"<li>{_text(change.message)}{command}</li>"


def _text(value: object) -> str:
    return escape(clean(str(value)))
