"""MutatingAdmissionWebhook: calls webhooks one after the other, each with the object that those before it left.

If one changes the object, the built-in plugins run again, and webhooks before it with reinvocationPolicy IfNeeded are
called once more. Each call is recorded in the audit log, with whether it changed the object.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import msgspec

from nodeyard.apiserver.admission.attributes import Attributes, Mutating, Plugin
from nodeyard.apiserver.admission.rules import is_exempt
from nodeyard.apiserver.admission.webhooks.configurations import Candidate, Configurations, Webhook
from nodeyard.apiserver.admission.webhooks.dispatcher import Dispatcher
from nodeyard.apiserver.admission.webhooks.errors import CallError
from nodeyard.apiserver.admission.webhooks.reviews import in_version
from nodeyard.apiserver.errors import internal
from nodeyard.kube.goformat import quote
from nodeyard.kube.json import Json, json_equal
from nodeyard.kube.patch import PatchError, json_patch

_AUDIT = "mutation.webhook.admission.k8s.io"


class _Rounds:
    """The webhooks that are called in the second round."""

    def __init__(self) -> None:
        self.number = 0
        self.is_needed = False
        self.is_patched = False
        self.again: set[Webhook] = set()
        self._invoked: set[Webhook] = set()

    def note(self, webhook: Webhook, *, has_changed: bool) -> None:
        if has_changed:
            self.is_needed = True
            self.recall_invoked()
        if webhook.is_reinvoked:
            self._invoked.add(webhook)

    def recall_invoked(self) -> None:
        """Reinvoke the webhooks that were called before a change."""
        self.again |= self._invoked
        self._invoked.clear()


class MutatingWebhooks(Mutating):
    def __init__(self, configurations: Configurations, dispatcher: Dispatcher, before: Sequence[Plugin] = ()) -> None:
        """`before` are the built-in plugins that have run already and run again between the rounds."""
        self._configurations = configurations
        self._dispatcher = dispatcher
        self._before = tuple(before)

    async def mutate(self, attributes: Attributes) -> None:
        candidates = self._configurations.candidates(attributes)
        if not candidates or is_exempt(attributes):
            return
        rounds = _Rounds()
        for candidate in candidates:
            await self._call(candidate, attributes, rounds)
        if not rounds.is_needed:
            return
        last = attributes.object
        for plugin in self._before:
            await plugin.mutate(attributes)
        if not json_equal(attributes.object, last):
            rounds.recall_invoked()
        rounds.number = 1
        for candidate in candidates:
            if candidate.webhook in rounds.again:
                await self._call(candidate, attributes, rounds)

    async def _call(self, candidate: Candidate, attributes: Attributes, rounds: _Rounds) -> None:
        if not await self._dispatcher.matches(candidate, attributes):
            return
        place = f"round_{rounds.number}_index_{candidate.position}"
        has_changed = False
        try:
            answer = await self._dispatcher.call(candidate, attributes, is_mutating=True)
            if answer is None:
                attributes.annotate(f"failed-open.{_AUDIT}/{place}", candidate.webhook.name)
            elif answer.patch:
                attributes.is_large |= answer.is_large
                patch = partial(self._patch, candidate, attributes, answer.patch)
                has_changed = await attributes.work.run(attributes.is_large, patch)
                has_changed = has_changed or (not rounds.is_patched and _has_fresh_times(attributes))
                rounds.is_patched = True
        finally:
            attributes.annotate(f"{_AUDIT}/{place}", _mutation_annotation(candidate.webhook, has_changed))
        rounds.note(candidate.webhook, has_changed=has_changed)

    def _patch(self, candidate: Candidate, attributes: Attributes, operations: Json) -> bool:
        """Apply the patch; return whether it changed the object."""
        obj = in_version(attributes, attributes.object, candidate.version)
        if obj is None:
            name = quote(candidate.webhook.name)
            raise internal(
                f"admission webhook {name} attempted to modify the object, which is not supported for this operation"
            )
        try:
            patched = json_patch(obj, operations)
        except PatchError as fault:
            raise _unusable(candidate.webhook, fault) from fault
        if not isinstance(patched, dict):
            raise internal("json: cannot unmarshal the patched object")
        if candidate.version != attributes.version and attributes.kind is None:
            patched = {**patched, "apiVersion": attributes.resource.api_version(attributes.version)}
        if json_equal(patched, attributes.object):
            return False
        attributes.object = patched
        return True


def _has_fresh_times(attributes: Attributes) -> bool:
    """True if a patch counts as a change because the real server's Go structs round times to seconds."""
    if attributes.resource.is_custom or attributes.object is None:
        return False
    if attributes.old is None:
        return True
    known = attributes.old["metadata"].get("managedFields") or ()
    managed = (attributes.object.get("metadata") or {}).get("managedFields") or ()
    return any(entry.get("operation") == "Update" and entry not in known for entry in managed)


def _mutation_annotation(webhook: Webhook, has_changed: bool) -> str:
    told = {"configuration": webhook.configuration, "webhook": webhook.name, "mutated": has_changed}
    return msgspec.json.encode(told).decode()


def _unusable(webhook: Webhook, fault: PatchError) -> Exception:
    if fault.code == 400:
        return CallError(f"received undecodable patch in webhook response: {fault.why}").answer(webhook.name)
    return internal(fault.why)
