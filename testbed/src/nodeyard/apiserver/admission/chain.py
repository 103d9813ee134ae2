"""The admission chain: all plugins mutate, then all validate.

built-in plugins ─▶ mutating webhooks ─▶ RBAC escalation │ CEL expressions ─▶ policies ─▶ validating webhooks
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
    """Parts of the server that admission uses."""

    @property
    def store(self) -> Store: ...

    @property
    def registry(self) -> Kinds: ...

    @property
    def access(self) -> AccessControl: ...


class Chain:
    """`services` maps Services of webhooks to addresses: `NAME.NAMESPACE` to `HOST:PORT`.

    `further` are plugins of the embedding program, such as substitutes for another project's webhooks.
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
        """Close the connections to webhooks."""
        await self._client.close()
