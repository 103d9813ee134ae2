"""Logs for the operator on call: JSON lines on stderr, or readable ones when someone is looking.

    log = get_logger("reconciler")
    log.info("claiming node", node="n1", reason="MatchesTemplate")

Lines of libraries that log by the standard module come out in the same form.
"""

from __future__ import annotations

import logging
import sys
from typing import Any, Literal, TextIO, cast

import msgspec
import structlog

Form = Literal["auto", "json", "text"]

_LEVELS = {"debug": logging.DEBUG, "info": logging.INFO, "warning": logging.WARNING, "error": logging.ERROR}


def configure(level: str = "info", form: Form = "auto", stream: TextIO | None = None) -> None:
    """Set up the process's logs; `auto` is text on a terminal and JSON elsewhere."""
    if level not in _LEVELS:
        raise ValueError(f'log level "{level}" is none of {", ".join(_LEVELS)}')
    output = stream if stream is not None else sys.stderr
    is_text = form == "text" or (form == "auto" and output.isatty())
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="%H:%M:%S" if is_text else "iso", utc=not is_text, key="time"),
            *_rendering(is_text, output),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(_LEVELS[level]),
        logger_factory=structlog.WriteLoggerFactory(file=output),
        cache_logger_on_first_use=True,
    )
    root = logging.getLogger()
    root.handlers[:] = [_Forward()]
    root.setLevel(max(_LEVELS[level], logging.WARNING))


def get_logger(name: str) -> structlog.typing.FilteringBoundLogger:
    return cast(structlog.typing.FilteringBoundLogger, structlog.get_logger(component=name))


def _rendering(is_text: bool, output: TextIO) -> list[Any]:
    if is_text:
        return [
            _plain,
            structlog.dev.ConsoleRenderer(
                colors=output.isatty(),
                timestamp_key="time",
                pad_event_to=0,
                exception_formatter=structlog.dev.plain_traceback,
            ),
        ]
    return [
        structlog.processors.format_exc_info,
        structlog.processors.EventRenamer("message"),
        structlog.processors.JSONRenderer(serializer=_to_json),
    ]


def _plain(_logger: Any, _method: str, event: structlog.typing.EventDict) -> structlog.typing.EventDict:
    """Structs as what they say: the other form encodes them as they are."""
    return {key: _shown(value) for key, value in event.items()}


def _shown(value: Any) -> Any:
    if isinstance(value, (tuple, list)):
        return [_shown(item) for item in value]
    return msgspec.to_builtins(value) if isinstance(value, msgspec.Struct) else value


def _to_json(event: Any, **_: Any) -> str:
    return msgspec.json.encode(event, enc_hook=str).decode()


class _Forward(logging.Handler):
    """Takes what the standard module was given to our own logger."""

    def emit(self, record: logging.LogRecord) -> None:
        log = get_logger(record.name)
        log.log(record.levelno, record.getMessage(), exc_info=record.exc_info or None)
