"""Logs are JSON for machines and lines for people."""

import asyncio
import io
import json
import logging

import pytest
import structlog

from nodeyard.process import logs


@pytest.fixture(autouse=True)
def _restored():
    root = logging.getLogger()
    handlers, level, configuration = root.handlers[:], root.level, structlog.get_config()
    yield
    root.handlers[:] = handlers
    root.setLevel(level)
    structlog.configure(**configuration)


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_away_from_a_terminal_a_line_is_json():
    stream = io.StringIO()
    logs.configure(stream=stream)
    logs.get_logger("spares").info("claiming node", node="n1", count=2)
    line = json.loads(stream.getvalue())
    assert (line["message"], line["level"], line["component"], line["node"], line["count"]) == (
        "claiming node", "info", "spares", "n1", 2,
    )  # fmt: skip
    assert line["time"].endswith("Z")


def test_on_a_terminal_a_line_reads_well():
    stream = Terminal()
    logs.configure(stream=stream)
    logs.get_logger("spares").info("claiming node", node="n1")
    assert "claiming node" in stream.getvalue()
    assert not stream.getvalue().startswith("{")


def test_lines_below_the_level_are_left_out():
    stream = io.StringIO()
    logs.configure(level="warning", stream=stream)
    logs.get_logger("x").info("no")
    logs.get_logger("x").warning("yes")
    assert [json.loads(line)["message"] for line in stream.getvalue().splitlines()] == ["yes"]


def test_an_exception_is_in_the_line():
    stream = io.StringIO()
    logs.configure(stream=stream)
    try:
        raise RuntimeError("boom")
    except RuntimeError:
        logs.get_logger("x").exception("failed")
    assert "RuntimeError: boom" in json.loads(stream.getvalue())["exception"]


def test_libraries_that_use_the_standard_module_come_out_alike():
    stream = io.StringIO()
    logs.configure(stream=stream)
    logging.getLogger("aiohttp.server").error("broken %s", "pipe")
    line = json.loads(stream.getvalue())
    assert (line["message"], line["level"], line["component"]) == ("broken pipe", "error", "aiohttp.server")


async def test_bound_keys_are_on_every_line_until_the_block_ends_also_in_its_tasks():
    stream = io.StringIO()
    logs.configure(stream=stream)
    log = logs.get_logger("x")

    async def another():
        logs.bind(cluster="leaf-1")
        log.info("in a task")

    with logs.bound(key="a", reconcile="1"):
        with logs.bound(key="b"):
            log.info("inner")
        log.info("outer", reconcile="own")
        await asyncio.create_task(another())
    log.info("after")
    lines = {line["message"]: line for line in map(json.loads, stream.getvalue().splitlines())}
    said = {name: (line.get("key"), line.get("reconcile"), line.get("cluster")) for name, line in lines.items()}
    assert said == {
        "inner": ("b", "1", None),
        "outer": ("a", "own", None),
        "in a task": ("a", "1", "leaf-1"),
        "after": (None, None, None),
    }


def test_the_time_is_utc_to_the_microsecond(monkeypatch):
    monkeypatch.setattr(logs.time, "time_ns", lambda: 1_794_779_849_000_042_999)
    stream = io.StringIO()
    logs.configure(stream=stream)
    logs.get_logger("x").info("now")
    assert json.loads(stream.getvalue())["time"] == "2026-11-15T21:57:29.000042Z"


def test_an_unknown_level_is_refused():
    with pytest.raises(ValueError, match='log level "loud" is not one of debug, info, warning, error'):
        logs.configure(level="loud")
