"""Why spares that match a template were left while it is short of nodes: by reason, and by name."""

from __future__ import annotations

from nodeyard.capabilities.spares.planning.draft import listing
from nodeyard.capabilities.spares.planning.stock import Eligible, Spare, Stock
from nodeyard.capabilities.spares.planning.templates import Resolved
from nodeyard.capabilities.spares.types import Reason
from nodeyard.kube.json import Object
from nodeyard.kube.selectors import LabelSelector

Refused = dict[Reason, Object]
"""The number of nodes refused for each reason, and the first by name."""


class Refusals:
    """Asked by many templates with few selectors, so an answer is kept until the stock has moved."""

    def __init__(self, stock: Stock) -> None:
        self._stock = stock
        self._answers: dict[tuple[LabelSelector, Eligible, int, int], Refused] = {}

    def of(self, template: Resolved) -> Refused:
        stock = self._stock
        if stock.loses(template):
            return self._count(template)
        if not (stock.has_refused or stock.holds or any(template.eligibility)):
            return {}
        question = (template.selector, template.eligibility, len(stock.claimed), stock.holds)
        answer = self._answers.get(question)
        if answer is None:
            answer = self._answers[question] = self._count(template)
        return answer

    def _count(self, template: Resolved) -> Refused:
        found: dict[Reason, list[str]] = {}
        for spare in self._stock.matching(template.selector):
            reason = refusal(spare, template)
            if reason is not None:
                found.setdefault(reason, []).append(spare.name)
        return {reason: listing(nodes) for reason, nodes in found.items()}


def refusal(spare: Spare, template: Resolved) -> Reason | None:
    """Why a template whose selector matches this spare does not get it; None where another simply has it."""
    if spare.taker:
        return None
    if spare.holder and spare.holder != template.name:
        return Reason.HELD
    if template.touches_selector and not template.keeps(spare.node.metadata.labels):
        return Reason.SELF_DEFEATING
    return spare.refused(template.eligibility)
