"""The capabilities of this build, each imported only if it is chosen: together they take 20 MB and half the start."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Final

from nodeyard.runtime.capability import Capability

if TYPE_CHECKING:
    CAPABILITIES: tuple[Capability, ...]
    """All of them; importing the name imports all."""

_CONTROLLERS: Final = {
    name: (f"nodeyard.capabilities.{name}.controller", name.upper())
    for name in ("spares", "pools", "affinity", "clustertree", "profiles")
}


class UnknownCapability(ValueError):
    """The text lists the choices."""


def choose(names: Sequence[str], among: Sequence[Capability] | None = None) -> tuple[Capability, ...]:
    """Select capabilities by name, in the order of the list; no names select all."""
    known = list(_CONTROLLERS) if among is None else [each.name for each in among]
    unknown = [name for name in names if name not in known]
    if unknown:
        choices = ", ".join(known) or "none in this build"
        raise UnknownCapability(f'unknown capability "{unknown[0]}"; choose from: {choices}')
    chosen = [name for name in known if not names or name in names]
    if among is None:
        return tuple(map(_load, chosen))
    return tuple(each for each in among if each.name in chosen)


def _load(name: str) -> Capability:
    module, attribute = _CONTROLLERS[name]
    capability: Capability = getattr(import_module(module), attribute)
    return capability


def __getattr__(name: str) -> tuple[Capability, ...]:
    if name == "CAPABILITIES":
        return choose(())
    raise AttributeError(name)
