"""`make bench`: run all benchmarks or the named ones; exit 1 if a requirement is missed."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path

from bench.harness import Result
from nodeyard.process import logs

RESULTS = Path(__file__).parent / "results"
BENCHMARKS = ("admission", "apiserver", "clustertree", "pools", "profiles", "spares", "spares_plan")


def main(wanted: list[str]) -> int:
    logs.configure("warning")
    unknown = set(wanted) - set(BENCHMARKS)
    if unknown:
        print(f"no such benchmark: {', '.join(sorted(unknown))}; there are: {', '.join(BENCHMARKS)}", file=sys.stderr)
        return 1
    missed: list[str] = []
    for name in wanted or BENCHMARKS:
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
