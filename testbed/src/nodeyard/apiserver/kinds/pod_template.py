"""Pod templates: PodTemplate as a kind, and the validation of templates in workloads."""

from __future__ import annotations

from datetime import datetime

from nodeyard.apiserver.kinds.columns import NAME, container_cells, labels_text, name_of, text_column
from nodeyard.apiserver.kinds.pod.validation import spec_errors
from nodeyard.apiserver.kinds.strategy import BuiltIn
from nodeyard.apiserver.metadata import annotation_errors, label_errors
from nodeyard.kube.fields import FieldError, forbidden
from nodeyard.kube.json import Json, Object


def template_errors(template: Object, path: str) -> list[FieldError]:
    metadata, spec = template.get("metadata") or {}, template.get("spec") or {}
    errors = label_errors(metadata.get("labels") or {}, f"{path}.labels")
    errors += annotation_errors(metadata.get("annotations") or {}, f"{path}.annotations")
    errors += spec_errors(spec, f"{path}.spec", is_pod=False)
    if spec.get("ephemeralContainers"):
        detail = "ephemeral containers not allowed in pod template"
        errors.append(forbidden(f"{path}.spec.ephemeralContainers", detail))
    return errors


class PodTemplateStrategy(BuiltIn):
    definition = "io.k8s.api.core.v1.PodTemplate"
    plural = "podtemplates"
    columns = (
        NAME,
        text_column("Containers", "Names of the containers."),
        text_column("Images", "Images of the containers."),
        text_column("Pod Labels", "Labels of the pods."),
    )
    uses_generation = True

    def changes_generation(self, new: Object, old: Object) -> bool:
        return bool(new.get("template") != old.get("template"))

    def validate_create(self, obj: Object) -> list[FieldError]:
        return template_errors(obj.get("template") or {}, "template")

    def validate_update(self, new: Object, old: Object) -> list[FieldError]:
        return self.validate_create(new)

    def cells(self, obj: Object, now: datetime) -> list[Json]:
        template = obj.get("template") or {}
        return [name_of(obj), *container_cells(template), labels_text((template.get("metadata") or {}).get("labels"))]
