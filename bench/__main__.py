"""`make bench`: run all benchmarks or the named ones; exit 1 if a requirement is missed."""

from __future__ import annotations

import argparse
import importlib
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from bench import measurements
from bench.harness import Result
from nodeyard.process import logs

RESULTS = Path(__file__).parent / "results"
BENCHMARKS = ("admission", "apiserver", "clustertree", "pools", "profiles", "spares", "spares_plan")


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("benchmarks", nargs="*", metavar="BENCHMARK", help=", ".join(BENCHMARKS))
    parser.add_argument("--results", type=Path, default=measurements.PATH, help="merge the results into this file")
    options = parser.parse_args(arguments)
    logs.configure("warning")
    unknown = set(options.benchmarks) - set(BENCHMARKS)
    if unknown:
        print(f"no such benchmark: {', '.join(sorted(unknown))}; there are: {', '.join(BENCHMARKS)}", file=sys.stderr)
        return 1
    missed: list[str] = []
    machine = measurements.this_machine()
    for name in options.benchmarks or BENCHMARKS:
        results: Iterator[Result] = importlib.import_module(f"bench.{name}").run()
        for result in results:
            result.save(RESULTS)
            today = datetime.now(UTC).date().isoformat()
            measurements.merge(options.results, measurements.measured(name, result, today, machine))
            print(f"\n{result.markdown()}")
            missed += [f"{result.name}: {line}" for line in result.missed()]
    for line in missed:
        print(f"MISSED {line}", file=sys.stderr)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
