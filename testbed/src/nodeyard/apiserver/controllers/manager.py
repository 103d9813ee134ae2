"""The controller manager of one server: it starts, feeds and stops the controllers."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from typing import Any, Final

import structlog

from nodeyard.apiserver.controllers.controller import Cluster, Controller
from nodeyard.apiserver.controllers.disruption import DisruptionController
from nodeyard.apiserver.controllers.garbage_collector import GarbageCollector
from nodeyard.apiserver.controllers.namespaces import NamespaceController
from nodeyard.apiserver.controllers.node_lifecycle import NodeLifecycleController
from nodeyard.apiserver.controllers.taint_eviction import TaintEvictionController
from nodeyard.apiserver.resources import GroupResource
from nodeyard.apiserver.store import Event

_ALL: Final[tuple[type[Controller[Any]], ...]] = (
    NamespaceController,
    GarbageCollector,
    DisruptionController,
    NodeLifecycleController,
    TaintEvictionController,
)
_OLD_NAMES: Final = {
    "namespace": NamespaceController.name,
    "garbagecollector": GarbageCollector.name,
    "disruption": DisruptionController.name,
    "nodelifecycle": NodeLifecycleController.name,
}

NAMES: Final = tuple(controller.name for controller in _ALL)
DEFAULT_CONTROLLERS: Final = ("*",)

log = structlog.get_logger(__name__)


def chosen(names: Iterable[str]) -> list[str]:
    """Parse `--controllers`: `*` all, `name` this one, `-name` not this one; ValueError for an unknown name."""
    given = [_full_name(name) for name in names]
    unknown = [name for name in given if name.removeprefix("-") not in (*NAMES, "*")]
    if unknown:
        listed = ", ".join(f'"{name}"' for name in unknown)
        raise ValueError(f"{listed} is not in the list of known controllers: {', '.join(NAMES)}")
    return [name for name in NAMES if name in given or ("*" in given and f"-{name}" not in given)]


def _full_name(name: str) -> str:
    sign = "-" if name.startswith("-") else ""
    bare = name.removeprefix("-")
    return sign + _OLD_NAMES.get(bare, bare)


class Controllers:
    """Runs the controllers. Each has a queue and a task of its own, so a failure does not affect others."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._running: list[Controller[Any]] = []
        self._tasks: list[asyncio.Task[None]] = []
        self._routes: dict[GroupResource, list[Controller[Any]]] = {}
        self._everything: list[Controller[Any]] = []
        self._stop_listening: Callable[[], None] | None = None

    @property
    def names(self) -> list[str]:
        """The running controllers."""
        return [controller.name for controller in self._running]

    async def start(self, names: Iterable[str] = DEFAULT_CONTROLLERS) -> None:
        """Start the controllers; they observe existing objects and all events from here on."""
        wanted = chosen(names)
        if self._stop_listening is not None or not wanted:
            return
        self._running = [kind(self._cluster) for kind in _ALL if kind.name in wanted]
        self._route(self._running)
        self._stop_listening = self._cluster.store.listen(self._dispatch)
        for controller in self._running:
            controller.seed()
            self._tasks.append(asyncio.get_running_loop().create_task(controller.run(), name=controller.name))

    async def stop(self) -> None:
        if self._stop_listening is None:
            return
        self._stop_listening()
        self._stop_listening = None
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for controller in self._running:
            controller.queue.close()
        self._tasks, self._running = [], []

    async def idle(self) -> None:
        """Wait until no controller has anything to do now; keys that are due later do not count."""
        while busy := [controller for controller in self._running if not controller.queue.is_idle]:
            await busy[0].queue.quiet()

    def _route(self, controllers: Iterable[Controller[Any]]) -> None:
        self._everything = [controller for controller in controllers if controller.watches is None]
        watched = {resource for controller in controllers for resource in controller.watches or ()}
        self._routes = {
            resource: [c for c in controllers if c.watches is None or resource in c.watches] for resource in watched
        }

    def _dispatch(self, resource: GroupResource, event: Event) -> None:
        """Called within a commit; an error of a controller must not fail the write."""
        for controller in self._routes.get(resource, self._everything):
            try:
                controller.observe(resource, event)
            except Exception:
                log.exception(
                    "event dropped", controller=controller.name, resource=resource.plural, key=event.stored.key
                )
