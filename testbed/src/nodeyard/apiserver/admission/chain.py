"""The admission plugins in their order: all of them change what comes in, then all of them judge what came out.

lifecycle ─▶ nodes, pods ─▶ mutating webhooks ─▶ escalation │ expressions ─▶ policies ─▶ validating webhooks
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from nodeyard.apiserver.access import AccessControl
from nodeyard.apiserver.admission.attributes import Attributes, Plugin
from nodeyard.apiserver.admission.expression_check import ExpressionCheck
from nodeyard.apiserver.admission.expressions import Binder, webhook_condition
from nodeyard.apiserver.admission.namespaces import Namespaces
from nodeyard.apiserver.admission.plugins import (
    DefaultTolerationSeconds,
    NamespaceLifecycle,
    Priority,
    TaintNodesByCondition,
)
from nodeyard.apiserver.admission.policies.index import PolicyIndex
from nodeyard.apiserver.admission.policies.params import Kinds, Params
from nodeyard.apiserver.admission.policies.plugin import ValidatingPolicies
from nodeyard.apiserver.admission.webhooks.client import WebhookClient
from nodeyard.apiserver.admission.webhooks.configurations import MUTATING, VALIDATING, Configurations
from nodeyard.apiserver.admission.webhooks.dispatcher import Dispatcher
from nodeyard.apiserver.admission.webhooks.endpoints import Services, read_address
from nodeyard.apiserver.admission.webhooks.mutating import MutatingWebhooks
from nodeyard.apiserver.admission.webhooks.validating import ValidatingWebhooks
from nodeyard.apiserver.rbac.escalation import EscalationGuard
from nodeyard.apiserver.store import Store


class Host(Protocol):
    """The server, as far as admission needs it."""

    @property
    def store(self) -> Store: ...

    @property
    def registry(self) -> Kinds: ...

    @property
    def access(self) -> AccessControl: ...


class Chain:
    """`services` says where Services that webhooks name really listen: `NAME.NAMESPACE` to `HOST:PORT`.

    `further` are plugins of whoever embeds the server, such as what stands in for another project's webhooks.
    """

    def __init__(self, host: Host, services: Mapping[str, str] | None = None, further: Sequence[Plugin] = ()) -> None:
        store, authorizer = host.store, host.access.authorizer
        namespaces, binder = Namespaces(store), Binder(authorizer)
        self.services = Services(store, {name: read_address(text) for name, text in (services or {}).items()})
        self._client = WebhookClient(self.services)
        dispatcher = Dispatcher(namespaces, self._client, binder)
        built_in: tuple[Plugin, ...] = (
            NamespaceLifecycle(namespaces),
            TaintNodesByCondition(),
            Priority(),
            DefaultTolerationSeconds(),
            *further,
        )
        self._plugins: tuple[Plugin, ...] = (
            *built_in,
            MutatingWebhooks(Configurations(store, MUTATING, webhook_condition), dispatcher, before=built_in),
            EscalationGuard(authorizer),
            ExpressionCheck(),
            ValidatingPolicies(PolicyIndex(store), Params(store, host.registry), namespaces, binder),
            ValidatingWebhooks(Configurations(store, VALIDATING, webhook_condition), dispatcher),
        )

    async def mutate(self, attributes: Attributes) -> None:
        for plugin in self._plugins:
            await plugin.mutate(attributes)

    async def validate(self, attributes: Attributes) -> None:
        for plugin in self._plugins:
            await plugin.validate(attributes)

    async def close(self) -> None:
        """Let the connections to webhooks go."""
        await self._client.close()
