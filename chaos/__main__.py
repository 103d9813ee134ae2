"""`make chaos`: run seeds until the time is over, or one seed; exit 1 if an invariant was violated."""

from __future__ import annotations

import argparse
import sys
import time

from chaos.run import run

SECONDS = 20.0


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m chaos", description=__doc__)
    parser.add_argument("--seed", type=int, help="run this seed alone")
    parser.add_argument("--first-seed", type=int, default=int(time.time()) % 1_000_000)
    parser.add_argument("--minutes", type=float, default=20, help="begin no further seed after this time")
    parser.add_argument("--real", action="store_true", help="on etcd and kube-apiserver instead of the embedded server")
    options = parser.parse_args(arguments)
    ends = time.monotonic() + options.minutes * 60
    seed = options.first_seed if options.seed is None else options.seed
    where = "the real control plane" if options.real else "the embedded server"
    failed: list[int] = []
    while True:
        began = time.monotonic()
        faults = run(seed, SECONDS, real=options.real)
        print(f"seed {seed} on {where}: {'FAILED' if faults else 'ok'} in {time.monotonic() - began:.0f} s", flush=True)
        for fault in faults:
            print(f"    {fault}")
        if faults:
            failed.append(seed)
        if options.seed is not None or time.monotonic() >= ends:
            break
        seed += 1
    for seed in failed:
        print(f"again: make chaos SEED={seed}{' REAL=1' if options.real else ''}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
