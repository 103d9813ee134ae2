"""Turns the options of `nodeyard rehearse` into a Rehearsal: reads bundle, cluster, scenario and manifests."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Final, TypeVar

from nodeyard.app import files
from nodeyard.app.capabilities import choose
from nodeyard.bundle.model import BundleError, ClusterState, Objects, Omission
from nodeyard.bundle.reader import read_bundle
from nodeyard.capabilities.clustertree.controller import CLUSTERTREE
from nodeyard.kube.json import Object
from nodeyard.plan.brake import Limit, parse_limit
from nodeyard.process.clock import EPOCH
from nodeyard.rehearsal import scenario as scenarios
from nodeyard.rehearsal.assertions import Assertion, parse_assertion
from nodeyard.rehearsal.engine import DAY, FACTS, Event, Rehearsal, RehearsalError
from nodeyard.rehearsal.faults import boot_failures, parse_fault
from nodeyard.rehearsal.live import read_live
from nodeyard.rehearsal.profiles import PROFILES, Profile, calibrate
from nodeyard.rehearsal.scenario import Scenario, ScenarioError
from nodeyard.rehearsal.twin import TwinOptions
from nodeyard.runtime.capability import Capability
from nodeyard.sim.stage_format import seconds

LIVE: Final = "live"
CONVERGED: Final = "converged"
DEFAULT_PROFILE: Final = "typical"
_MACHINES: Final = "machines"

T = TypeVar("T")


class OptionError(ValueError):
    """An option with an invalid value; the text names it."""


@dataclass(frozen=True)
class Options:
    """The options as the user gave them."""

    files: Sequence[Path] = ()
    scenario: Path | None = None
    source: str = ""
    kubeconfig: Path | None = None
    context: str = ""
    capabilities: str = ""
    until: str = ""
    faults: Sequence[str] = ()
    assertions: Sequence[str] = ()
    profile: str = ""
    calibrates: bool = False
    max_disruption: str = ""
    approves: bool = False
    seed: int | None = None


@dataclass(frozen=True)
class _Source:
    """The cluster that the twin is of."""

    name: str
    start: datetime
    host: ClusterState
    leaves: Mapping[str, ClusterState]
    setup: Sequence[tuple[str, Object]] = ()
    is_complete: bool = False
    """It has its CRDs; none is installed."""
    notes: Sequence[str] = ()


def prepare(options: Options) -> Rehearsal:
    """Read everything that is named. Raises OptionError or RehearsalError."""
    given = Scenario()
    path = options.scenario or Path()
    try:
        if options.scenario is not None:
            given = scenarios.read_scenario(options.scenario)
        if not options.files and options.scenario is None:
            raise OptionError("nothing to rehearse: give a change with -f, or --scenario")
        settled = _merge(options, given)
        objects = files.read(options.files)
        events = _parse("events", lambda _: scenarios.events_of(given, path), "")
        source = _read_source(options, given, path)
    except (ScenarioError, files.FileError, BundleError, OSError) as error:
        raise RehearsalError(" ".join(str(error).split())) from None
    if options.files and not objects:
        raise RehearsalError(f"{', '.join(map(str, options.files))}: contains no object")
    faults = [_parse("--fault", parse_fault, each) for each in settled.faults]
    until = settled.until or CONVERGED
    profile = _profile(settled, source)
    return Rehearsal(
        options=TwinOptions(
            capabilities=_parse("--capabilities", _capabilities, settled.capabilities),
            profile=profile,
            seed=settled.seed or 0,
            limit=_parse("--max-disruption", parse_limit, settled.max_disruption)
            if settled.max_disruption
            else Limit(),
            installs=not source.is_complete,
            boot_failures=boot_failures(faults),
        ),
        start=source.start,
        source=source.name,
        host=source.host,
        leaves=source.leaves,
        setup=source.setup,
        events=[Event(0.0, apply=objects), *events] if objects else events,
        faults=faults,
        assertions=[_parse("--assert", _assertion, each) for each in settled.assertions],
        at_most=DAY if until == CONVERGED else _parse("--until", seconds, until),
        runs_on=until != CONVERGED,
        approves=settled.approves,
        notes=source.notes,
    )


def _merge(options: Options, scenario: Scenario) -> Options:
    """Return the options, with those of the scenario where the user gave none."""
    return replace(
        options,
        capabilities=options.capabilities or ",".join(scenario.capabilities),
        until=options.until or scenario.until,
        faults=(*scenario.faults, *options.faults),
        assertions=(*scenario.assertions, *options.assertions),
        profile=options.profile or scenario.profile or DEFAULT_PROFILE,
        max_disruption=options.max_disruption or scenario.max_disruption,
        approves=options.approves or scenario.approve,
        seed=options.seed if options.seed is not None else scenario.seed,
    )


def _read_source(options: Options, scenario: Scenario, path: Path) -> _Source:
    if options.source and options.scenario is not None:
        raise OptionError("--from and --scenario exclude each other: a scenario has its own fleet")
    if options.scenario is not None:
        fleet = scenario.fleet
        return _Source(
            f"scenario {options.scenario.name}",
            EPOCH,
            scenarios.build(fleet, EPOCH),
            scenarios.leaves_of(fleet, EPOCH),
            setup=scenarios.setup_of(fleet, path),
        )
    if options.source in ("", LIVE):
        gathered, name = read_live(options.kubeconfig, options.context)
        return _twin_of(name, gathered.created_at, gathered.cluster, gathered.clusters, gathered.omitted)
    bundle = read_bundle(Path(options.source))
    name = f"bundle {Path(options.source).name}"
    manifest = bundle.manifest
    return _twin_of(name, manifest.created_at, bundle.cluster, bundle.clusters.values(), manifest.omitted)


def _twin_of(
    name: str, start: datetime, host: ClusterState, clusters: Iterable[ClusterState], omitted: Iterable[Omission]
) -> _Source:
    leaves: dict[str, ClusterState] = {}
    for each in (one for one in clusters if not one.error):
        capability, _, cluster = each.name.partition("/")
        if capability == CLUSTERTREE.name or cluster not in leaves:
            leaves[cluster] = each
    notes = [*_notes(host, leaves), *(f"not read: {each}" for each in omitted)]
    return _Source(name, start, host, leaves, is_complete=True, notes=notes)


def _notes(host: ClusterState, leaves: Mapping[str, ClusterState]) -> list[str]:
    names = (each["metadata"]["name"] for each in _objects(host, "kosmos.io", "clusters"))
    return [f"leaf cluster {name} is not known and does not answer" for name in names if name not in leaves]


def _objects(state: ClusterState, group: str, plural: str) -> Sequence[Object]:
    found = (each for gvr, each in state.objects.items() if (gvr.group, gvr.resource) == (group, plural))
    return next(found, Objects())


def _profile(options: Options, source: _Source) -> Profile:
    profile = PROFILES.get(options.profile)
    if profile is None:
        raise OptionError(f'--profile: "{options.profile}" is not one of {", ".join(PROFILES)}')
    if not options.calibrates:
        return profile
    if not source.is_complete:
        raise OptionError("--calibrate: a scenario has no timestamps to learn from")
    state = source.host
    calibrated = calibrate(
        profile,
        _objects(state, "", "nodes"),
        _objects(state, "", "pods"),
        _objects(state, "cluster.x-k8s.io", _MACHINES),
    )
    return calibrated


def _capabilities(names: str) -> tuple[Capability, ...]:
    return choose([each.strip() for each in names.split(",") if each.strip()])


def _assertion(text: str) -> Assertion:
    return parse_assertion(text, FACTS)


def _parse(name: str, parse: Callable[[str], T], text: str) -> T:
    try:
        return parse(text)
    except (ScenarioError, files.FileError):
        raise
    except ValueError as error:
        raise OptionError(f"{name}: {error}") from None
