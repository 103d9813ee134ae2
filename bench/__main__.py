"""`make bench`: run every benchmark, or those named; exit 1 when a required ratio is missed."""

from __future__ import annotations

import importlib
import pkgutil
import sys
from collections.abc import Iterator
from pathlib import Path

import bench
from bench.harness import Result
from nodeyard.process import logs

RESULTS = Path(__file__).parent / "results"
_INFRASTRUCTURE = {
    "__main__",
    "admission_fleet",
    "admission_operator",
    "asking",
    "clustertree_churn",
    "clustertree_fleet",
    "clustertree_leases",
    "harness",
    "hostile_leaves",
    "load",
    "operator",
    "peer",
    "pools_fleet",
    "profiles_fleet",
    "recorder",
    "replay",
    "servers",
    "sightings",
    "spares_fleet",
}


def main(wanted: list[str]) -> int:
    logs.configure("warning")
    names = [module.name for module in pkgutil.iter_modules(bench.__path__) if module.name not in _INFRASTRUCTURE]
    unknown = set(wanted) - set(names)
    if unknown:
        print(f"no such benchmark: {', '.join(sorted(unknown))}; there are: {', '.join(names)}", file=sys.stderr)
        return 1
    missed: list[str] = []
    for name in wanted or names:
        results: Iterator[Result] = importlib.import_module(f"bench.{name}").run()
        for result in results:
            result.save(RESULTS)
            print(f"\n{result.markdown()}")
            missed += [f"{result.name}: {line}" for line in result.missed()]
    for line in missed:
        print(f"MISSED {line}", file=sys.stderr)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
