"""What decides about writes: webhook configurations, policies and their bindings."""

from __future__ import annotations

from nodeyard.apiserver.kinds.admissionregistration import validating_admission_policy as policies
from nodeyard.apiserver.kinds.admissionregistration import webhook_configuration as webhooks
from nodeyard.apiserver.kinds.columns import admission as columns
from nodeyard.apiserver.kinds.edits import keep_metadata
from nodeyard.apiserver.kinds.strategy import BuiltIn, Paths, WithStatus
from nodeyard.kube.fields import FieldError
from nodeyard.kube.json import Object, json_equal

_METADATA = ("deletionTimestamp", "generation", "selfLink", "labels", "annotations", "finalizers", "ownerReferences")


class _Webhooks(BuiltIn):
    """Counts changes of its webhooks."""

    printer = columns.WEBHOOKS
    uses_generation = True
    allows_unconditional_update = False
    is_mutating = False

    def changes_generation(self, new: Object, old: Object) -> bool:
        return not json_equal(new.get("webhooks"), old.get("webhooks"))

    def validate_create(self, obj: Object) -> list[FieldError]:
        return webhooks.configuration_errors(obj, is_mutating=self.is_mutating)

    def validate_update(self, new: Object, old: Object) -> list[FieldError]:
        return self.validate_create(new)


class ValidatingWebhookStrategy(_Webhooks):
    definition = "io.k8s.api.admissionregistration.v1.ValidatingWebhookConfiguration"
    plural = "validatingwebhookconfigurations"
    namespaced = False
    categories = ("api-extensions",)


class MutatingWebhookStrategy(_Webhooks):
    definition = "io.k8s.api.admissionregistration.v1.MutatingWebhookConfiguration"
    plural = "mutatingwebhookconfigurations"
    namespaced = False
    categories = ("api-extensions",)
    is_mutating = True


class PolicyStrategy(WithStatus):
    definition = "io.k8s.api.admissionregistration.v1.ValidatingAdmissionPolicy"
    plural = "validatingadmissionpolicies"
    namespaced = False
    categories = ("api-extensions",)
    printer = columns.POLICY
    allows_unconditional_update = False

    def reset_fields(self, subresource: str) -> Paths:
        return (("spec",), ("metadata",)) if subresource == "status" else (("status",),)

    def prepare_status(self, new: Object, old: Object) -> Object:
        return keep_metadata(super().prepare_status(new, old), old, *_METADATA)

    def validate_create(self, obj: Object) -> list[FieldError]:
        return policies.policy_errors(obj)

    def validate_update(self, new: Object, old: Object) -> list[FieldError]:
        return policies.policy_errors(new) if new.get("spec") != old.get("spec") else []


class PolicyBindingStrategy(BuiltIn):
    definition = "io.k8s.api.admissionregistration.v1.ValidatingAdmissionPolicyBinding"
    plural = "validatingadmissionpolicybindings"
    namespaced = False
    categories = ("api-extensions",)
    printer = columns.POLICY_BINDING
    uses_generation = True
    allows_unconditional_update = False

    def changes_generation(self, new: Object, old: Object) -> bool:
        return not json_equal(new.get("spec"), old.get("spec"))

    def validate_create(self, obj: Object) -> list[FieldError]:
        return policies.binding_errors(obj)

    def validate_update(self, new: Object, old: Object) -> list[FieldError]:
        return policies.binding_errors(new)
