"""The stages of a world, compiled from stage files and from reconcilers written in Python.

Every error in a stage file is found when it is loaded; the message names the file and the stage.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib.resources import files
from pathlib import Path as FilePath
from typing import Any

import msgspec

from nodeyard.kube.json import Json, Object
from nodeyard.kube.manifests import ManifestError, dump, load
from nodeyard.kube.selectors import LabelSelector, SelectorError, parse_labels
from nodeyard.sim.action_types import Action, Reconcile, compile_action
from nodeyard.sim.conditions import Condition, compile_conditions, references
from nodeyard.sim.paths import Path, parse_path
from nodeyard.sim.seeded_random import SeededRandom
from nodeyard.sim.stage_format import (
    CountSpec,
    DelaySpec,
    Kind,
    RelationSpec,
    StageFile,
    StageSpec,
    seconds,
)

SHIPPED = ("nodes", "pods", "scheduling", "drains", "providers", "machines", "services", "releases")

Delay = Callable[[Object, SeededRandom, str, int], float]
"""The seconds to wait, for an object, a random source, the name of the draw and how often it was drawn before."""


class StageError(ValueError):
    """A stage file that cannot be used."""


@dataclass(frozen=True, slots=True)
class Relation:
    """Objects of kind `of` refer to objects of kind `to`."""

    name: str
    of: Kind
    to: Kind
    key: Path | None
    """The field of the referrer that names the target; None for its controller reference."""
    id: Path
    """The field of the target that is named."""
    is_namespaced: bool
    """References resolve within a namespace only."""

    def key_of(self, obj: Object) -> str | None:
        """Return the id of the target that this object refers to."""
        if self.key is not None:
            return self._qualified(obj, _text(self.key.get(obj)))
        for owner in obj["metadata"].get("ownerReferences") or ():
            if owner.get("controller") and owner.get("kind") == self.to.kind:
                return _text(owner.get("uid"))
        return None

    def id_of(self, obj: Object) -> str | None:
        """Return the id under which referrers name this object."""
        return self._qualified(obj, _text(self.id.get(obj)))

    def _qualified(self, obj: Object, name: str | None) -> str | None:
        if name is None or not self.is_namespaced:
            return name
        return f"{obj['metadata'].get('namespace', '')}/{name}"


@dataclass(frozen=True, slots=True)
class Count:
    name: str
    relation: str
    where: Condition


@dataclass(frozen=True, slots=True)
class Stage:
    name: str
    kind: Kind
    labels: LabelSelector
    where: Condition
    delay: Delay
    repeat: bool
    chance: float
    actions: tuple[Action, ...]
    next: str | None
    starts_itself: bool
    """False for a stage that another stage leads to by `next`."""
    follows_changes: bool
    """The stage acts again after each change of the object or of a followed relation."""


@dataclass(frozen=True, slots=True)
class Reconciler:
    """A stage in Python: it calls `reconcile` for each object that matches, and again after each change of it."""

    name: str
    kind: Kind
    reconcile: Callable[[Any], Awaitable[None]]
    where: Condition
    follows: tuple[str, ...] = ()
    """Changes of objects related by these relations, in either direction, call it too."""
    reads: tuple[str, ...] = ()
    """The relations that `where` looks up."""
    delay: tuple[float, float] = (0.02, 0.06)
    once: bool = False
    """Call it only when the object begins to match."""


@dataclass(frozen=True, slots=True)
class StageChanges:
    """Changes of a world to the stages that it loads, such as by a rehearsal."""

    without: Collection[str] = ()
    """Names of stages to leave out."""
    delays: Mapping[str, Delay] = field(default_factory=dict)
    """Delays that replace those of the stages of these names."""
    reconcilers: Sequence[Reconciler] = ()
    """Further stages in Python."""


@dataclass(frozen=True, slots=True)
class StageSet:
    stages: tuple[Stage, ...]
    relations: Mapping[str, Relation]
    counts: Mapping[str, Count]
    notify_referrers: frozenset[str]
    """Relations in which a change of the target concerns the objects that refer to it."""
    notify_targets: frozenset[str]
    """Relations in which a change of a referrer concerns its target."""

    @property
    def kinds(self) -> list[Kind]:
        """Return all kinds to watch, sorted."""
        kinds = {stage.kind for stage in self.stages}
        for relation in self.relations.values():
            kinds |= {relation.of, relation.to}
        return sorted(kinds)


def load_stages(
    *names: str,
    extra: Iterable[FilePath] = (),
    services: Collection[Kind] = (),
    reconcilers: Mapping[str, Sequence[Reconciler]] | None = None,
    changes: StageChanges | None = None,
) -> StageSet:
    """Load the shipped stages of these names: their stage files and reconcilers, with `changes`.

    `extra` are stage files of the user. `services` are kinds to which the stages of `services.yaml` apply as well.
    """
    directory = files("nodeyard.sim") / "stages"
    texts: list[tuple[str, str]] = []
    changes = changes or StageChanges()
    chosen = list(changes.reconcilers)
    for name in names:
        source, in_python = directory / f"{name}.yaml", (reconcilers or {}).get(name)
        if source.is_file():
            texts.append((f"{name}.yaml", source.read_text()))
        elif not in_python:
            raise StageError(f'no stages "{name}"; there are: {", ".join(SHIPPED)}')
        chosen += in_python or ()
    texts += [(str(path), path.read_text()) for path in extra]
    if services:
        texts.append(("services.yaml for other kinds", _service_stages(services)))
    loaded = parse_stages(texts, chosen)
    stages = (each for each in loaded.stages if each.name not in changes.without)
    return replace(
        loaded, stages=tuple(replace(each, delay=changes.delays.get(each.name, each.delay)) for each in stages)
    )


def _service_stages(kinds: Iterable[Kind]) -> str:
    """Return a stage file that applies the stages of the first kind in `services.yaml` to these kinds."""
    shipped = load((files("nodeyard.sim") / "stages" / "services.yaml").read_text())["stages"]
    templates = [stage for stage in shipped if stage["for"] == shipped[0]["for"]]
    stages = [
        {
            **stage,
            "name": f"{kind.api_version} {kind.kind}: {stage['name']}",
            "for": {"apiVersion": kind.api_version, "kind": kind.kind},
        }
        for kind in kinds
        for stage in templates
    ]
    return dump({"stages": stages})


def parse_stages(texts: Iterable[tuple[str, str]], reconcilers: Sequence[Reconciler] = ()) -> StageSet:
    """Compile stage files, given as pairs of name and text, and reconcilers."""
    parsed = [(name, _parse(name, text)) for name, text in texts]
    relations: dict[str, Relation] = {}
    counts: dict[str, Count] = {}
    specs: list[tuple[str, StageSpec]] = []
    for name, file in parsed:
        for relation_name, relation in file.relations.items():
            relations[relation_name] = _located(name, f"relation {relation_name}", _relation, relation_name, relation)
        for count_name, count in file.counts.items():
            counts[count_name] = _located(name, f"count {count_name}", _count, count_name, count)
        specs += [(name, stage) for stage in file.stages]
    successors = {stage.next for _, stage in specs if stage.next}
    stages = [
        _located(name, f"stage {stage.name}", _stage, stage, stage.name not in successors) for name, stage in specs
    ]
    to_referrers: set[str] = set()
    to_targets: set[str] = set()
    for name, stage in specs:
        outgoing, incoming = _located(
            name, f"stage {stage.name}", _directions, stage.kind.key, stage.follows or (), relations
        )
        to_referrers |= references(stage.where)[0] | outgoing
        to_targets |= incoming
    for reconciler in reconcilers:
        stages.append(_reconciler_stage(reconciler))
        outgoing, incoming = _directions(reconciler.kind, reconciler.follows, relations)
        to_referrers |= {*reconciler.reads} | outgoing
        to_targets |= incoming
    result = StageSet(tuple(stages), relations, counts, frozenset(to_referrers), frozenset(to_targets))
    for name, stage in specs:
        _located(name, f"stage {stage.name}", _check_names, stage, result)
    for count_value in counts.values():
        _located("counts", count_value.name, _check_relation, count_value.relation, result)
    return result


def _parse(name: str, text: str) -> StageFile:
    try:
        return msgspec.convert(load(text), StageFile)
    except (ManifestError, msgspec.ValidationError) as error:
        raise StageError(f"{name}: {error}") from None


def _located(file: str, what: str, build: Callable[..., Any], *arguments: Any) -> Any:
    """Call `build`; add the file and the part of it to its errors."""
    try:
        return build(*arguments)
    except (ValueError, SelectorError) as error:
        raise StageError(f"{file}, {what}: {error}") from None


def _relation(name: str, spec: RelationSpec) -> Relation:
    is_owner = spec.key == "owner"
    return Relation(
        name,
        spec.of.key,
        spec.to.key,
        None if is_owner else parse_path(spec.key),
        parse_path("metadata.uid" if is_owner else spec.id),
        spec.within == "namespace",
    )


def _count(name: str, spec: CountSpec) -> Count:
    relations, counts = references(spec.where)
    if relations or counts:
        raise ValueError("where: a count may read only the counted object, not related objects or counts")
    return Count(name, spec.relation, compile_conditions(spec.where))


def _stage(spec: StageSpec, starts_itself: bool) -> Stage:
    if not 0 < spec.chance <= 1:
        raise ValueError(f"chance: {spec.chance} is not above 0 and at most 1")
    delay = _delay(spec.delay)
    if spec.repeat and isinstance(spec.delay, float) and spec.delay <= 0:
        raise ValueError("repeat: needs a delay")
    return Stage(
        name=spec.name,
        kind=spec.kind.key,
        labels=parse_labels(spec.labels),
        where=compile_conditions(spec.where),
        delay=delay,
        repeat=spec.repeat,
        chance=spec.chance,
        actions=tuple(compile_action(action) for action in spec.do),
        next=spec.next,
        starts_itself=starts_itself,
        follows_changes=spec.follows is not None,
    )


def _reconciler_stage(reconciler: Reconciler) -> Stage:
    return Stage(
        name=reconciler.name,
        kind=reconciler.kind,
        labels=parse_labels(""),
        where=reconciler.where,
        delay=_random_delay(*reconciler.delay),
        repeat=False,
        chance=1.0,
        actions=(Action(Reconcile(reconciler.reconcile)),),
        next=None,
        starts_itself=True,
        follows_changes=not reconciler.once,
    )


def _directions(kind: Kind, follows: Iterable[str], relations: Mapping[str, Relation]) -> tuple[set[str], set[str]]:
    """Split the followed relations into those that start at the kind and those that end there."""
    outgoing: set[str] = set()
    incoming: set[str] = set()
    for name in follows:
        relation = relations.get(name)
        if relation is None or kind not in (relation.of, relation.to):
            raise ValueError(f'follows: no relation "{name}" of {kind}')
        (outgoing if relation.of == kind else incoming).add(name)
    return outgoing, incoming


def _delay(spec: Any) -> Delay:
    if isinstance(spec, DelaySpec):
        return _delay_from_field(spec)
    if isinstance(spec, list):
        if len(spec) != 2:
            raise ValueError("delay: a range has two ends")
        return _random_delay(*(seconds(end) for end in spec))
    fixed = seconds(spec)
    return lambda obj, random, what, times: fixed


def _random_delay(low: float, high: float) -> Delay:
    return lambda obj, random, what, times: random.uniform(low, high, "delay", what, times)


def _delay_from_field(spec: DelaySpec) -> Delay:
    path, default = parse_path(spec.path), seconds(spec.default)
    limit = seconds(spec.at_most) if spec.at_most is not None else float("inf")

    def delay(obj: Object, random: SeededRandom, what: str, times: int) -> float:
        value = path.get(obj)
        return min(seconds(value) if value is not None else default, limit)

    return delay


def _check_names(spec: StageSpec, stages: StageSet) -> None:
    if spec.next and all(stage.name != spec.next for stage in stages.stages):
        raise ValueError(f'next: no stage "{spec.next}"')
    relations, counts = references(spec.where)
    for action in spec.do:
        relations |= compile_action(action).relations
    for name in relations:
        _check_relation(name, stages)
    for name in counts:
        if name not in stages.counts:
            raise ValueError(f'no count "{name}"; known: {", ".join(sorted(stages.counts)) or "none"}')


def _check_relation(name: str, stages: StageSet) -> None:
    if name not in stages.relations:
        raise ValueError(f'no relation "{name}"; known: {", ".join(sorted(stages.relations)) or "none"}')


def _text(value: Json) -> str | None:
    return None if value is None or value == "" else str(value)
