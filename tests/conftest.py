"""Settings of all tests."""

from __future__ import annotations

import gc

import structlog
from hypothesis import HealthCheck, settings

from nodeyard.process.logs import json_line

# As in production. What is meant for terminals costs more than most of what it tells of.
structlog.configure(processors=[json_line])

# Thousands of tests are collected, and stay: the collector need not walk them again and again.
gc.disable()

# The same examples on every machine and however busy it is: a red run means a change, not bad luck.
settings.register_profile(
    "nodeyard",
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
settings.load_profile("nodeyard")


def pytest_collection_finish() -> None:
    gc.freeze()
    gc.enable()
