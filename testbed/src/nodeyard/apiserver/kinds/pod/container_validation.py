"""Validation of containers: ports, environment, probes, lifecycle, security context."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from nodeyard.apiserver.kinds.pod.resource_validation import requirement_errors
from nodeyard.apiserver.kinds.pod.volume_validation import mount_errors
from nodeyard.apiserver.kinds.validation import (
    NOT_NEGATIVE,
    choice_errors,
    config_key_faults,
    environment_name_faults,
    faults_at,
    label_errors_at,
    port_errors,
    port_name_faults,
    port_number_errors,
    range_fault,
    raw_json,
    required_choice_errors,
    subdomain_errors_at,
    unsupported,
)
from nodeyard.kube.fields import FieldError, duplicate, forbidden, index, invalid, required
from nodeyard.kube.json import Object

_PROTOCOLS = ("SCTP", "TCP", "UDP")
_FIELD_PATHS = frozenset(
    (
        "metadata.name", "metadata.namespace", "metadata.uid", "spec.nodeName", "spec.serviceAccountName",
        "status.hostIP", "status.hostIPs", "status.podIP", "status.podIPs",
    )
)  # fmt: skip
# Fields that the downward API serves in volumes, but not in variables.
_ELSEWHERE_FIELD_PATHS = ("metadata.labels", "metadata.annotations", "spec.restartPolicy", "status.phase")
_RESOURCE_PATHS = tuple(
    f"{kind}.{name}" for kind in ("limits", "requests") for name in ("cpu", "memory", "ephemeral-storage")
)
_SOURCES = ("fieldRef", "resourceFieldRef", "configMapKeyRef", "secretKeyRef", "fileKeyRef")
_PROBES = ("livenessProbe", "readinessProbe", "startupProbe")
_HANDLERS = ("exec", "httpGet", "tcpSocket", "grpc", "sleep")
_NOT_IN_INIT = "may not be set for init containers without restartPolicy=Always"


def container_errors(containers: list[Object], volumes: Mapping[str, Object], path: str) -> list[FieldError]:
    """Validate spec.containers."""
    if not containers:
        return [required(path)]
    errors: list[FieldError] = []
    names: set[str] = set()
    for place, container in enumerate(containers):
        where = index(path, place)
        errors += _shared_errors(container, volumes, where)
        if container.get("name", "") in names:
            errors.append(duplicate(f"{where}.name", container.get("name", "")))
        names.add(container.get("name", ""))
        errors += _health_errors(container, where)
    return errors + _host_port_errors(containers, path)


def init_container_errors(
    containers: list[Object], others: list[Object], volumes: Mapping[str, Object], path: str
) -> list[FieldError]:
    """Validate spec.initContainers; sidecars (restartPolicy Always) may have probes and lifecycle handlers."""
    errors: list[FieldError] = []
    names = {other.get("name", "") for other in others}
    for place, container in enumerate(containers):
        where, name = index(path, place), container.get("name", "")
        errors += _shared_errors(container, volumes, where)
        policy = container.get("restartPolicy")
        if policy is not None and policy not in ("Always", "OnFailure", "Never"):
            errors.append(unsupported(f"{where}.restartPolicy", policy, "Always", "OnFailure", "Never"))
        if name in names:
            errors.append(duplicate(f"{where}.name", name))
        names.add(name)
        errors += _host_port_errors([container], path)
        if policy == "Always":
            errors += _health_errors(container, where)
        else:
            unused = [field for field in ("lifecycle", *_PROBES) if field in container]
            errors += [forbidden(f"{where}.{field}", _NOT_IN_INIT) for field in unused]
    return errors


def whitespace_errors(containers: list[Object], path: str) -> list[FieldError]:
    """Check images of pods. Templates are not checked, because existing ones have such images."""
    return [
        invalid(f"{index(path, place)}.image", container["image"], "must not have leading or trailing whitespace")
        for place, container in enumerate(containers)
        if container.get("image", "") != container.get("image", "").strip()
    ]


def _shared_errors(container: Object, volumes: Mapping[str, Object], path: str) -> list[FieldError]:
    errors = label_errors_at(f"{path}.name", container.get("name", ""))
    if not container.get("image"):
        errors.append(required(f"{path}.image"))
    policy = container.get("terminationMessagePolicy")
    errors += required_choice_errors(f"{path}.terminationMessagePolicy", policy, "File", "FallbackToLogsOnError")
    errors += _port_errors(container.get("ports") or [], f"{path}.ports")
    errors += environment_errors(container.get("env") or [], f"{path}.env")
    errors += _environment_from_errors(container.get("envFrom") or [], f"{path}.envFrom")
    errors += mount_errors(container.get("volumeMounts") or [], volumes, f"{path}.volumeMounts")
    pull = container.get("imagePullPolicy")
    errors += required_choice_errors(f"{path}.imagePullPolicy", pull, "Always", "IfNotPresent", "Never")
    errors += requirement_errors(container.get("resources") or {}, f"{path}.resources")
    return errors + _security_errors(container.get("securityContext"), f"{path}.securityContext")


def _port_errors(ports: list[Object], path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    names: set[str] = set()
    for place, port in enumerate(ports):
        where, name = index(path, place), port.get("name", "")
        if name:
            faults = faults_at(f"{where}.name", name, port_name_faults)
            errors += faults
            if not faults and name in names:
                errors.append(duplicate(f"{where}.name", name))
            names.add(name)
        number = port.get("containerPort", 0)
        errors += (
            port_number_errors(f"{where}.containerPort", number) if number else [required(f"{where}.containerPort")]
        )
        if port.get("hostPort"):
            errors += port_number_errors(f"{where}.hostPort", port["hostPort"])
        errors += required_choice_errors(f"{where}.protocol", port.get("protocol"), *_PROTOCOLS)
    return errors


def _host_port_errors(containers: list[Object], path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    taken: set[str] = set()
    for where, port in _ports(containers, path):
        if not port.get("hostPort"):
            continue
        shown = f"{port.get('protocol', '')}/{port.get('hostIP', '')}/{port['hostPort']}"
        if shown in taken:
            errors.append(duplicate(f"{where}.hostPort", shown))
        taken.add(shown)
    return errors


def host_network_errors(containers: list[Object], path: str, *, is_pod: bool) -> list[FieldError]:
    return [
        invalid(f"{where}.hostPort", port.get("hostPort", 0), "must match `containerPort` when `hostNetwork` is true")
        for where, port in _ports(containers, path)
        if (is_pod or port.get("hostPort")) and port.get("hostPort", 0) != port.get("containerPort", 0)
    ]


def _ports(containers: list[Object], path: str) -> Iterator[tuple[str, Object]]:
    for place, container in enumerate(containers):
        for position, port in enumerate(container.get("ports") or ()):
            yield index(f"{index(path, place)}.ports", position), port


def environment_errors(variables: list[Object], path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    for place, variable in enumerate(variables):
        where, name = index(path, place), variable.get("name", "")
        errors += faults_at(f"{where}.name", name, environment_name_faults) if name else [required(f"{where}.name")]
        if variable.get("valueFrom") is not None:
            errors += _value_from_errors(variable, f"{where}.valueFrom")
    return errors


def _value_from_errors(variable: Object, path: str) -> list[FieldError]:
    given = variable["valueFrom"]
    errors: list[FieldError] = []
    if "fieldRef" in given:
        errors += _field_errors(given["fieldRef"], f"{path}.fieldRef")
    if "resourceFieldRef" in given:
        errors += _resource_field_errors(given["resourceFieldRef"], f"{path}.resourceFieldRef")
    for field in ("configMapKeyRef", "secretKeyRef"):
        if field in given:
            errors += _key_errors(given[field], f"{path}.{field}")
    count = sum(field in given for field in _SOURCES)
    if not count:
        listed = ", ".join(f"`{field}`" for field in _SOURCES[:-1])
        errors.append(invalid(path, "", f"must specify one of: {listed} or `{_SOURCES[-1]}`"))
    elif variable.get("value"):
        errors.append(invalid(path, "", "may not be specified when `value` is not empty"))
    elif count > 1:
        errors.append(invalid(path, "", "may not have more than one field specified at a time"))
    return errors


def _field_errors(reference: Object, path: str) -> list[FieldError]:
    given = reference.get("fieldPath", "")
    if not given:
        return [required(f"{path}.fieldPath")]
    subscripted = given.startswith(("metadata.labels['", "metadata.annotations['")) and given.endswith("']")
    if given in _FIELD_PATHS or subscripted:
        return []
    if given in _ELSEWHERE_FIELD_PATHS:
        return [unsupported(f"{path}.fieldPath", given, *sorted(_FIELD_PATHS))]
    return [invalid(f"{path}.fieldPath", given, f"error converting fieldPath: field label not supported: {given}")]


def _resource_field_errors(reference: Object, path: str) -> list[FieldError]:
    resource = reference.get("resource", "")
    if not resource:
        return [required(f"{path}.resource")]
    if resource.startswith(("limits.hugepages-", "requests.hugepages-")):
        return []
    return choice_errors(f"{path}.resource", resource, *sorted(_RESOURCE_PATHS))


def _key_errors(reference: Object, path: str) -> list[FieldError]:
    errors = subdomain_errors_at(f"{path}.name", reference.get("name", ""))
    given = reference.get("key", "")
    return errors + (faults_at(f"{path}.key", given, config_key_faults) if given else [required(f"{path}.key")])


def _environment_from_errors(sources: list[Object], path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    for place, source in enumerate(sources):
        where = index(path, place)
        if source.get("prefix"):
            errors += faults_at(f"{where}.prefix", source["prefix"], environment_name_faults)
        given = [field for field in ("configMapRef", "secretRef") if field in source]
        for field in given:
            if not source[field].get("name"):
                errors.append(required(f"{where}.{field}.name"))
            else:
                errors += subdomain_errors_at(f"{where}.{field}.name", source[field]["name"])
        if not given:
            errors.append(invalid(path, "", "must specify one of: `configMapRef` or `secretRef`"))
        elif len(given) > 1:
            errors.append(invalid(path, "", "may not have more than one field specified at a time"))
    return errors


def _health_errors(container: Object, path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    for event, handler in sorted((container.get("lifecycle") or {}).items()):
        if isinstance(handler, dict):
            errors += _handler_errors(handler, f"{path}.lifecycle.{event}")
    for field in _PROBES:
        probe = container.get(field)
        if probe is None:
            continue
        errors += _probe_errors(probe, f"{path}.{field}")
        if field != "readinessProbe" and probe.get("successThreshold") != 1:
            errors.append(invalid(f"{path}.{field}.successThreshold", probe.get("successThreshold", 0), "must be 1"))
    return errors


def _probe_errors(probe: Object, path: str) -> list[FieldError]:
    errors = _handler_errors(probe, path)
    for field in (
        "initialDelaySeconds",
        "timeoutSeconds",
        "periodSeconds",
        "successThreshold",
        "failureThreshold",
    ):
        if probe.get(field, 0) < 0:
            errors.append(invalid(f"{path}.{field}", probe[field], NOT_NEGATIVE))
    grace = probe.get("terminationGracePeriodSeconds")
    if grace is not None and grace <= 0:
        errors.append(invalid(f"{path}.terminationGracePeriodSeconds", grace, "must be greater than 0"))
    return errors


def _handler_errors(handler: Object, path: str) -> list[FieldError]:
    given = [field for field in _HANDLERS if field in handler]
    if not given:
        return [required(path, "must specify a handler type")]
    errors = _action_errors(given[0], handler[given[0]], f"{path}.{given[0]}")
    for field in given[1:]:
        errors.append(forbidden(f"{path}.{field}", "may not specify more than 1 handler type"))
    return errors


def _action_errors(kind: str, action: Object, path: str) -> list[FieldError]:
    if kind == "exec":
        return [] if action.get("command") else [required(f"{path}.command")]
    if kind == "httpGet":
        errors = [] if action.get("path") else [required(f"{path}.path")]
        errors += port_errors(f"{path}.port", action.get("port", 0))
        return errors + choice_errors(f"{path}.scheme", action.get("scheme"), "HTTP", "HTTPS")
    if kind in ("tcpSocket", "grpc"):
        return port_errors(f"{path}.port", action.get("port", 0))
    return []


# All fields of the Go struct in its order, as the message shows them.
_SECURITY_CONTEXT = (
    "capabilities", "privileged", "seLinuxOptions", "windowsOptions", "runAsUser", "runAsGroup", "runAsNonRoot",
    "readOnlyRootFilesystem", "allowPrivilegeEscalation", "procMount", "seccompProfile", "appArmorProfile",
)  # fmt: skip


def _security_errors(context: Object | None, path: str) -> list[FieldError]:
    if context is None:
        return []
    errors = [
        invalid(f"{path}.{field}", context[field], range_fault(0, 2**31 - 1))
        for field in ("runAsUser", "runAsGroup")
        if context.get(field) is not None and not 0 <= context[field] < 2**31
    ]
    if context.get("allowPrivilegeEscalation") is False and context.get("privileged"):
        shown = {_exported(field): context.get(field) for field in _SECURITY_CONTEXT}
        detail = "cannot set `allowPrivilegeEscalation` to false and `privileged` to true"
        errors.append(invalid(path, raw_json(shown), detail))
    return errors


def _exported(field: str) -> str:
    return "SELinuxOptions" if field == "seLinuxOptions" else field[0].upper() + field[1:]
