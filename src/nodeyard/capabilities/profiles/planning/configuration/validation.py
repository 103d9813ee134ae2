"""Validate configuration; the messages are the same at admission, in conditions and in `plan`.

A fault blocks the deployment: the service would not start, or would read something else than intended. A warning does
not. Every message names object, field and line.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from nodeyard.capabilities.profiles import names
from nodeyard.capabilities.profiles.planning.configuration import cpusets
from nodeyard.capabilities.profiles.planning.configuration.cpusets import Source
from nodeyard.capabilities.profiles.planning.configuration.ini import EMPTY, check
from nodeyard.capabilities.profiles.snapshot import Profile, Service
from nodeyard.capabilities.profiles.types import ConfigFormat

MAX_MESSAGES: Final = 10
"""Maximum number of messages about one text, to keep the status small."""


@dataclass(frozen=True)
class ValidationResult:
    faults: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()

    def __add__(self, other: ValidationResult) -> ValidationResult:
        return ValidationResult(self.faults + other.faults, self.warnings + other.warnings)


@dataclass(frozen=True)
class Text:
    """Configuration text and its place, such as `ComputeProfile/dpdk: spec.customComputeServiceConfig`."""

    object: str
    field: str
    content: str

    @property
    def place(self) -> str:
        return f"{self.object}: {self.field}"


def profile_text(service: Service, name: str, config: str) -> Text:
    return Text(f"{service.profile_kind}/{name}", f"spec.{service.config_field}", config)


def custom_text(service: Service, node: str, custom: str) -> Text:
    """Return the user's text on the service object, which has the name of the node."""
    return Text(f"{service.object_kind}/{node}", f"spec.{names.CUSTOM_CONFIG}", custom)


def node_text(node: str, config: str) -> Text:
    """Return the text of the node or its role."""
    return Text(
        f"{names.NODE_KIND}/{node}",
        f"spec.node.nova.{names.CUSTOM_CONFIG} or its role's spec.nodeTemplate.nova.{names.CUSTOM_CONFIG}",
        config,
    )


def validate_profile(service: Service, name: str, config: str) -> ValidationResult:
    """Validate a profile, also if it is empty. A service without configField has nothing to validate."""
    return (
        validate_texts(service, [profile_text(service, name, config)]) if service.config_field else ValidationResult()
    )


def validate_node(
    service: Service, node: str, profile: Profile | None, custom: str, defaults: str = ""
) -> ValidationResult:
    """Validate all texts that a service on a node reads, each and together."""
    texts = [node_text(node, defaults)] if defaults else []
    if profile is not None and service.config_field:
        texts.append(profile_text(service, profile.name, profile.config))
    if custom:
        texts.append(custom_text(service, node, custom))
    return validate_texts(service, texts)


def validate_texts(service: Service, texts: Sequence[Text]) -> ValidationResult:
    """Validate texts in reading order. For format Text, only warn about empty texts."""
    if service.config_format is ConfigFormat.TEXT:
        return ValidationResult(warnings=tuple(f"{text.place}, {EMPTY}" for text in texts if not text.content.strip()))
    return _validate(tuple(texts), service.name == names.NOVA)


@lru_cache(maxsize=64)
def _validate(texts: tuple[Text, ...], has_cpu_sets: bool) -> ValidationResult:
    """Validate INI texts; cached for the thousands of nodes with the same profile."""
    sources = [Source(text.place, check(text.content)) for text in texts]
    result = ValidationResult()
    for source in sources:
        messages = list(map(str, source.checked.faults))
        if has_cpu_sets:
            messages += cpusets.faults(source.checked)
        result += ValidationResult(
            tuple(_sentences(source.name, messages)),
            tuple(_sentences(source.name, list(map(str, source.checked.warnings)))),
        )
    if has_cpu_sets:
        result += ValidationResult(tuple(cpusets.overlap_faults(sources)))
    return result


def _sentences(place: str, messages: Sequence[str]) -> Iterator[str]:
    for each in messages[:MAX_MESSAGES]:
        yield f"{place}, {each}"
    if len(messages) > MAX_MESSAGES:
        yield f"{place}: and {len(messages) - MAX_MESSAGES} more"
