"""What is wrong with a configuration, in words: the same at admission, in conditions and in `plan`.

A fault keeps a configuration from being deployed: its service would not start, or would read something else than was
meant. A warning does not. Every sentence names object, field and line.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from nodeyard.capabilities.profiles import names
from nodeyard.capabilities.profiles.configuration import cpusets
from nodeyard.capabilities.profiles.configuration.cpusets import Source
from nodeyard.capabilities.profiles.configuration.ini import EMPTY, check
from nodeyard.capabilities.profiles.snapshot import Profile, Service
from nodeyard.capabilities.profiles.types import ConfigFormat

MOST: Final = 10
"""Sentences about one text: enough to mend it by, few enough for a status."""


@dataclass(frozen=True)
class Judgement:
    faults: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()

    def __add__(self, other: Judgement) -> Judgement:
        return Judgement(self.faults + other.faults, self.warnings + other.warnings)


@dataclass(frozen=True)
class Text:
    """A configuration and where it stands: `ComputeProfile/dpdk: spec.customComputeServiceConfig`."""

    object: str
    field: str
    content: str

    @property
    def place(self) -> str:
        return f"{self.object}: {self.field}"


def profile_text(service: Service, name: str, config: str) -> Text:
    return Text(f"{service.profile_kind}/{name}", f"spec.{service.config_field}", config)


def custom_text(service: Service, node: str, custom: str) -> Text:
    """What the user added on the service object, which has the node's name."""
    return Text(f"{service.object_kind}/{node}", f"spec.{names.CUSTOM_CONFIG}", custom)


def node_text(node: str, config: str) -> Text:
    """What a node has for the service, of its own or from its role."""
    return Text(f"{names.NODE_KIND}/{node}", f"spec.node.nova.{names.CUSTOM_CONFIG}, or its role's", config)


def of_profile(service: Service, name: str, config: str) -> Judgement:
    """Of a profile by itself, also of one that is empty. Profiles of a service without configuration have no fault."""
    return of_texts(service, [profile_text(service, name, config)]) if service.config_field else Judgement()


def of_node(service: Service, node: str, profile: Profile | None, custom: str, defaults: str = "") -> Judgement:
    """Of all that a node's service will read, and of its parts beside each other."""
    texts = [node_text(node, defaults)] if defaults else []
    if profile is not None and service.config_field:
        texts.append(profile_text(service, profile.name, profile.config))
    if custom:
        texts.append(custom_text(service, node, custom))
    return of_texts(service, texts)


def of_texts(service: Service, texts: Sequence[Text]) -> Judgement:
    """Of texts in the order in which they are read, the last of which wins. Of a format that is not ours to know, only
    that there is nothing."""
    if service.config_format is ConfigFormat.TEXT:
        return Judgement(warnings=tuple(f"{text.place}, {EMPTY}" for text in texts if not text.content.strip()))
    return _judged(tuple(texts), service.name == names.NOVA)


@lru_cache(maxsize=64)
def _judged(texts: tuple[Text, ...], has_cpu_sets: bool) -> Judgement:
    """Kept for the thousands of nodes that have the same profile."""
    sources = [Source(text.place, check(text.content)) for text in texts]
    judgement = Judgement()
    for source in sources:
        told = list(map(str, source.checked.faults))
        if has_cpu_sets:
            told += cpusets.faults(source.checked)
        judgement += Judgement(
            tuple(_sentences(source.name, told)),
            tuple(_sentences(source.name, list(map(str, source.checked.warnings)))),
        )
    if has_cpu_sets:
        judgement += Judgement(tuple(cpusets.overlap_faults(sources)))
    return judgement


def _sentences(place: str, told: Sequence[str]) -> Iterator[str]:
    for each in told[:MOST]:
        yield f"{place}, {each}"
    if len(told) > MOST:
        yield f"{place}: and {len(told) - MOST} more"
