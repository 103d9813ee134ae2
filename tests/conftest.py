"""Settings of all tests."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

# The same examples on every machine and however busy it is: a red run means a change, not bad luck.
settings.register_profile(
    "nodeyard",
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
settings.load_profile("nodeyard")
