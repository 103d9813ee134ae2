"""The dispatcher of admission webhooks: it matches writes and calls webhooks."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from functools import partial

from nodeyard.apiserver import errors
from nodeyard.apiserver.admission.attributes import Attributes
from nodeyard.apiserver.admission.conditions import Bindings, ConditionError
from nodeyard.apiserver.admission.namespaces import Namespaces
from nodeyard.apiserver.admission.webhooks.client import WebhookClient
from nodeyard.apiserver.admission.webhooks.configurations import Candidate
from nodeyard.apiserver.admission.webhooks.errors import CallError, denial, no_dry_run
from nodeyard.apiserver.admission.webhooks.reviews import Answer, question, read_answer, review_version
from nodeyard.apiserver.worker_thread import LARGE

Bind = Callable[[Attributes, str], Bindings]
"""Makes the bindings of a write, with the object in a version."""


class Dispatcher:
    """Calls webhooks."""

    def __init__(self, namespaces: Namespaces, client: WebhookClient, bind: Bind) -> None:
        self._namespaces = namespaces
        self._client = client
        self._bind = bind

    async def matches(self, candidate: Candidate, attributes: Attributes) -> bool:
        """True if selectors and matchConditions of the webhook match the write; its rules do."""
        webhook = candidate.webhook
        if not webhook.scope.includes(attributes, self._namespaces):
            return False
        if not webhook.conditions:
            return True
        bindings = self._bind(attributes, candidate.version)
        try:
            return await attributes.work.evaluate(attributes.is_large, partial(webhook.conditions.hold, bindings))
        except ConditionError as fault:
            if webhook.is_ignoring_failure:
                return False
            resource = attributes.resource
            raise errors.forbidden(resource.group, resource.plural, attributes.name, str(fault)) from fault

    async def call(self, candidate: Candidate, attributes: Attributes, *, is_mutating: bool) -> Answer | None:
        """Return the webhook's answer, or None if it failed and failurePolicy is Ignore; else raise ApiError."""
        webhook = candidate.webhook
        if attributes.dry_run and not webhook.is_safe_to_try:
            raise no_dry_run(webhook.name)
        try:
            answer = await self._ask(candidate, attributes, is_mutating=is_mutating)
        except CallError as fault:
            if webhook.is_ignoring_failure:
                return None
            raise fault.answer(webhook.name) from fault
        attributes.warnings.extend(answer.warnings)
        for key, value in answer.audit.items():
            attributes.annotate(f"{webhook.name}/{key}", value)
        if not answer.is_allowed:
            raise denial(webhook.name, answer.status)
        return answer

    async def _ask(self, candidate: Candidate, attributes: Attributes, *, is_mutating: bool) -> Answer:
        webhook, uid = candidate.webhook, str(uuid.uuid4())
        review = review_version(webhook.review_versions)
        body = await self._client.post(
            webhook.endpoint, question(attributes, candidate.version, uid, review), webhook.timeout
        )
        read = partial(read_answer, body, uid, review, is_mutating=is_mutating)
        return await attributes.work.run(len(body) > LARGE, read)
