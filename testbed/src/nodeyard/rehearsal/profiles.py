"""Delay profiles: how long machines, kubelets and containers take in a rehearsal.

A profile is named in every result. `fast` is for demonstrations; `typical` has published figures (docs/rehearse.md has
the sources); `calibrate` replaces what a cluster's own timestamps show.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from math import inf
from typing import Final

from nodeyard.kube.json import Object
from nodeyard.kube.timestamps import parse_rfc3339
from nodeyard.sim.seeded_random import SeededRandom
from nodeyard.sim.stage_set import Delay

MACHINE_STAGES: Final = ("dev-machine-start", "docker-machine-start", "aws-machine-start", "proxmox-machine-start")
FEWEST_SAMPLES: Final = 5
"""A distribution is calibrated from at least so many observations."""
QUANTILES: Final = 20
LONGEST_START: Final = 3600.0


@dataclass(frozen=True)
class Distribution:
    """Seconds by quantile, linear in between: ((0, shortest), (0.5, median), (1, longest))."""

    points: tuple[tuple[float, float], ...]

    @classmethod
    def between(cls, shortest: float, longest: float) -> Distribution:
        return cls(((0.0, shortest), (1.0, longest)))

    @classmethod
    def of(cls, samples: Sequence[float]) -> Distribution:
        """Return the distribution of observations, as at most QUANTILES + 1 points."""
        ordered = sorted(samples)
        last = len(ordered) - 1
        steps = min(QUANTILES, last) or 1
        return cls(tuple((step / steps, ordered[round(step / steps * last)]) for step in range(steps + 1)))

    def at(self, quantile: float) -> float:
        place = bisect_right(self.points, quantile, key=lambda point: point[0])
        if place == len(self.points):
            return self.points[-1][1]
        (low, shorter), (high, longer) = self.points[place - 1], self.points[place]
        return shorter + (longer - shorter) * (quantile - low) / (high - low)

    @property
    def delay(self) -> Delay:
        def draw(_obj: Object, random: SeededRandom, what: str, times: int) -> float:
            return self.at(random.random("delay", what, times))

        return draw

    def __str__(self) -> str:
        return f"{self.at(0):.0f}-{self.at(1):.0f} s, median {self.at(0.5):.0f} s"


@dataclass(frozen=True)
class Profile:
    """The delays of one rehearsal."""

    name: str
    machine_start: Distribution
    """From the bootstrap data of a Machine until its Node is registered and ready."""
    node_ready: Distribution
    """From a registered Node until it is Ready."""
    pod_start: Distribution
    """From the binding of a pod until it is Ready: image pull and start."""
    longest_termination: float = inf
    """Bound on the seconds that a pod takes to end. Otherwise it takes its whole grace period."""
    node_lost: Distribution = field(default_factory=lambda: Distribution.between(40, 50))
    """Until Ready is Unknown: --node-monitor-grace-period is 50 s, and the last heartbeat is up to 10 s old."""
    calibrated: Mapping[str, int] = field(default_factory=dict)
    """The number of observations, by name of the delay that they replaced."""

    @property
    def description(self) -> str:
        if not self.calibrated:
            return self.name
        counts = ", ".join(f"{name} from {count}" for name, count in sorted(self.calibrated.items()))
        return f"{self.name}, calibrated: {counts} observations"

    def delays(self) -> dict[str, Delay]:
        """Return the delays by name of the stage."""
        return {
            "node-ready": self.node_ready.delay,
            "node-lost": self.node_lost.delay,
            "pod-start": self.pod_start.delay,
            "pod-end": self._termination,
            **dict.fromkeys(MACHINE_STAGES, self.machine_start.delay),
        }

    def _termination(self, pod: Object, _random: SeededRandom, _what: str, _times: int) -> float:
        grace = pod["metadata"].get("deletionGracePeriodSeconds")
        return float(min(30 if grace is None else grace, self.longest_termination))


PROFILES: Final = {
    profile.name: profile
    for profile in (
        Profile(
            "fast",
            machine_start=Distribution.between(0.2, 0.8),
            node_ready=Distribution.between(1, 4),
            pod_start=Distribution.between(0.5, 2.5),
            longest_termination=1.0,
        ),
        Profile(
            "typical",
            machine_start=Distribution(((0, 60), (0.5, 120), (0.95, 300), (1, 600))),
            node_ready=Distribution(((0, 5), (0.5, 15), (1, 40))),
            pod_start=Distribution(((0, 2), (0.5, 25), (0.95, 90), (1, 180))),
        ),
    )
}


def calibrate(profile: Profile, nodes: Iterable[Object], pods: Iterable[Object], machines: Iterable[Object]) -> Profile:
    """Replace the delays of which the cluster's objects show enough observations."""
    observed = {
        "machine_start": [_seconds(_transition(each, "BootstrapConfigReady") or _created(each), each, "NodeReady")
                          for each in machines],
        "node_ready": [_seconds(_created(each), each, "Ready") for each in nodes],
        "pod_start": [_seconds(_transition(each, "PodScheduled"), each, "Ready") for each in pods
                      if not _is_restarted(each)],
    }  # fmt: skip
    found = {name: [each for each in samples if each is not None] for name, samples in observed.items()}
    enough = {name: samples for name, samples in found.items() if len(samples) >= FEWEST_SAMPLES}
    changes = {name: Distribution.of(samples) for name, samples in enough.items()}
    counts = {name: len(samples) for name, samples in enough.items()}
    return replace(profile, calibrated=counts, **changes)  # type: ignore[arg-type]


def _seconds(begin: datetime | None, obj: Object, condition: str) -> float | None:
    """Return the seconds until a condition became True. A much later transition is a recovery, not a start."""
    end = _transition(obj, condition)
    if begin is None or end is None or not 0 <= (seconds := (end - begin).total_seconds()) <= LONGEST_START:
        return None
    return seconds


def _created(obj: Object) -> datetime | None:
    at = obj["metadata"].get("creationTimestamp")
    return parse_rfc3339(at) if at else None


def _transition(obj: Object, kind: str) -> datetime | None:
    conditions = (obj.get("status") or {}).get("conditions") or ()
    found = next((each for each in conditions if each.get("type") == kind and each.get("status") == "True"), None)
    at = (found or {}).get("lastTransitionTime")
    return parse_rfc3339(at) if at else None


def _is_restarted(pod: Object) -> bool:
    return any(each.get("restartCount") for each in (pod.get("status") or {}).get("containerStatuses") or ())
