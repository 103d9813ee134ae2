"""Validation of volumes and volume mounts."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from nodeyard.apiserver.kinds.validation import label_errors_at, required_choice_errors, unsupported
from nodeyard.kube import quantity
from nodeyard.kube.fields import FieldError, duplicate, forbidden, index, invalid, not_found, required
from nodeyard.kube.json import Object

_MODE = "must be a number between 0 and 0777 (octal), both inclusive"
_HOST_PATH_TYPES = ("", "BlockDevice", "CharDevice", "Directory", "DirectoryOrCreate", "File", "FileOrCreate", "Socket")

Source = Callable[[Object, str], list[FieldError]]


def volume_errors(volumes: list[Object], path: str) -> tuple[dict[str, Object], list[FieldError]]:
    """Return the valid volumes by name, and the errors of the others."""
    usable: dict[str, Object] = {}
    errors: list[FieldError] = []
    for place, volume in enumerate(volumes):
        where, name = index(path, place), volume.get("name", "")
        found = _source_errors(volume, where) + label_errors_at(f"{where}.name", name)
        if name in usable:
            found.append(duplicate(f"{where}.name", name))
        if not found:
            usable[name] = volume
        errors += found
    return usable, errors


def _source_errors(volume: Object, path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    sources = [field for field in _ORDER if field in volume]
    sources += [field for field in volume if field not in _ORDER and field != "name"]
    for place, field in enumerate(sources):
        if place:
            errors.append(forbidden(f"{path}.{field}", "may not specify more than 1 volume type"))
        elif check := _SOURCES.get(field):
            errors += check(volume[field], f"{path}.{field}")
    return errors


def _empty_dir_errors(source: Object, path: str) -> list[FieldError]:
    limit = source.get("sizeLimit")
    if limit is not None and quantity.parse(limit).nano < 0:
        return [forbidden(f"{path}.sizeLimit", "SizeLimit field must be a valid resource quantity")]
    return []


def _host_path_errors(source: Object, path: str) -> list[FieldError]:
    given = source.get("path", "")
    if not given:
        return [required(f"{path}.path")]
    errors = _backstep_errors(given, f"{path}.path")
    if source.get("type", "") not in _HOST_PATH_TYPES:
        errors.append(unsupported(f"{path}.type", source["type"], *_HOST_PATH_TYPES))
    return errors


def _backstep_errors(given: str, path: str) -> list[FieldError]:
    return [invalid(path, given, "must not contain '..'")] if ".." in given.split("/") else []


def _secret_errors(source: Object, path: str) -> list[FieldError]:
    return _named_errors(source, path, "secretName")


def _config_map_errors(source: Object, path: str) -> list[FieldError]:
    return _named_errors(source, path, "name")


def _named_errors(source: Object, path: str, field: str) -> list[FieldError]:
    errors = [] if source.get(field) else [required(f"{path}.{field}")]
    return errors + _mode_errors(source, f"{path}.defaultMode", "defaultMode") + _item_errors(source, path)


def _item_errors(source: Object, path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    for place, item in enumerate(source.get("items") or ()):
        where = index(f"{path}.items", place)
        errors += [required(f"{where}.{field}") for field in ("key", "path") if not item.get(field)]
        errors += _local_path_errors(item.get("path", ""), f"{where}.path")
        errors += _mode_errors(item, f"{where}.mode", "mode")
    return errors


def _mode_errors(obj: Object, path: str, field: str) -> list[FieldError]:
    mode = obj.get(field)
    return [invalid(path, mode, _MODE)] if mode is not None and not 0 <= mode <= 0o777 else []


def _local_path_errors(given: str, path: str) -> list[FieldError]:
    if given.startswith("/"):
        return [invalid(path, given, "must be a relative path")]
    errors = _backstep_errors(given, path)
    if given.startswith("..") and not errors:
        errors.append(invalid(path, given, "must not start with '..'"))
    return errors


def _claim_errors(source: Object, path: str) -> list[FieldError]:
    return [] if source.get("claimName") else [required(f"{path}.claimName")]


def _nfs_errors(source: Object, path: str) -> list[FieldError]:
    errors = [required(f"{path}.{field}") for field in ("server", "path") if not source.get(field)]
    if not source.get("path", "").startswith("/"):
        errors.append(invalid(f"{path}.path", source.get("path", ""), "must be an absolute path"))
    return errors


def _projected_errors(source: Object, path: str) -> list[FieldError]:
    errors = _mode_errors(source, f"{path}.defaultMode", "defaultMode")
    for place, projection in enumerate(source.get("sources") or ()):
        where = index(f"{path}.sources", place)
        for field in ("secret", "configMap"):
            if field in projection:
                part = projection[field]
                errors += [] if part.get("name") else [required(f"{where}.{field}.name")]
                errors += _item_errors(part, f"{where}.{field}")
        if "serviceAccountToken" in projection:
            errors += _token_errors(projection["serviceAccountToken"], f"{where}.serviceAccountToken", path)
        if len(projection) > 1:
            errors.append(forbidden(where, "may not specify more than 1 volume type per source"))
    return errors


def _token_errors(token: Object, path: str, volume_path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    seconds = token.get("expirationSeconds", 0)
    if seconds < 600:
        errors.append(invalid(f"{path}.expirationSeconds", seconds, "may not specify a duration less than 10 minutes"))
    if not token.get("path"):
        errors.append(required(f"{volume_path}.path"))
    return errors


_SOURCES: Mapping[str, Source] = {
    "emptyDir": _empty_dir_errors,
    "hostPath": _host_path_errors,
    "secret": _secret_errors,
    "nfs": _nfs_errors,
    "persistentVolumeClaim": _claim_errors,
    "configMap": _config_map_errors,
    "projected": _projected_errors,
}
# If a volume has several sources, the server keeps the first in this order and refuses the others.
_ORDER = (
    "emptyDir", "hostPath", "gitRepo", "gcePersistentDisk", "awsElasticBlockStore", "secret", "nfs", "iscsi",
    "glusterfs", "flocker", "persistentVolumeClaim", "rbd", "cinder", "cephfs", "quobyte", "downwardAPI", "fc",
    "flexVolume", "configMap", "azureFile", "vsphereVolume", "photonPersistentDisk", "portworxVolume", "azureDisk",
    "storageos", "projected", "scaleIO", "csi", "ephemeral", "image",
)  # fmt: skip


def mount_errors(mounts: list[Object], volumes: Mapping[str, Object], path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    taken: set[str] = set()
    for place, mount in enumerate(mounts):
        where = index(path, place)
        name, target = mount.get("name", ""), mount.get("mountPath", "")
        if not name:
            errors.append(required(f"{where}.name"))
        if name not in volumes:
            errors.append(not_found(f"{where}.name", name))
        if not target:
            errors.append(required(f"{where}.mountPath"))
        if target in taken:
            errors.append(invalid(f"{where}.mountPath", target, "must be unique"))
        taken.add(target)
        if mount.get("subPath"):
            errors += _local_path_errors(mount["subPath"], f"{where}.subPath")
        if mount.get("mountPropagation") is not None:
            choices = ("Bidirectional", "HostToContainer", "None")
            errors += required_choice_errors(f"{where}.mountPropagation", mount["mountPropagation"], *choices)
    return errors
