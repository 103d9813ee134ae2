"""ValidatingAdmissionWebhook: calls all matching webhooks at once; the first denial is the answer."""

from __future__ import annotations

import asyncio

from nodeyard.apiserver.admission.attributes import Attributes, Validating
from nodeyard.apiserver.admission.rules import is_exempt
from nodeyard.apiserver.admission.webhooks.configurations import Configurations
from nodeyard.apiserver.admission.webhooks.dispatcher import Dispatcher

_FAILED_OPEN = "failed-open.validating.webhook.admission.k8s.io"


class ValidatingWebhooks(Validating):
    def __init__(self, configurations: Configurations, dispatcher: Dispatcher) -> None:
        self._configurations = configurations
        self._dispatcher = dispatcher

    async def validate(self, attributes: Attributes) -> None:
        candidates = self._configurations.candidates(attributes)
        if not candidates or is_exempt(attributes):
            return
        meant = [candidate for candidate in candidates if await self._dispatcher.matches(candidate, attributes)]
        calls = [self._dispatcher.call(candidate, attributes, is_mutating=False) for candidate in meant]
        # Await all even after a denial: their warnings are part of the answer.
        outcomes = await asyncio.gather(*calls, return_exceptions=True)
        for position, (candidate, outcome) in enumerate(zip(meant, outcomes, strict=True)):
            if outcome is None:
                attributes.annotate(f"{_FAILED_OPEN}/round_0_index_{position}", candidate.webhook.name)
        for outcome in outcomes:
            if isinstance(outcome, BaseException):
                raise outcome
