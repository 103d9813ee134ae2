"""The data directory of `--data-dir`: a journal and snapshots that survive a killed process.

    store ──record──▶ Journal ──one frame per group commit──▶ 00000002.journal ──┐
                         │ every doubling                                        ├─▶ recovery
                         └─────────────▶ 00000002.snapshot ──────────────────────┘

Measured against SQLite in WAL mode: a batch of SQLite calls in a thread takes the GIL for every row, which is 1.5 to 4
times the latency beside a busy event loop. A frame is one system call.
"""
