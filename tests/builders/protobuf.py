"""Objects in both of the API server's formats, as a real one answered them, and messages written by hand.

The objects stand in `samples.yaml`; `recorded.json` beside it holds the answers.
"""

from __future__ import annotations

import base64
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

FOLDER = Path(__file__).parent.parent / "unit" / "apiserver" / "kinds" / "protobuf_samples"
RECORDED = FOLDER / "recorded.json"
MAGIC = b"k8s\x00"


@dataclass(frozen=True)
class Sample:
    name: str
    path: str
    sent: dict[str, Any]
    protobuf: bytes
    json: dict[str, Any]


def samples() -> list[Sample]:
    recorded = json.loads(RECORDED.read_text()) if RECORDED.exists() else {}
    written = yaml.safe_load((FOLDER / "samples.yaml").read_text())
    nothing = {"protobuf": "", "json": {}}
    return [
        Sample(name, each["path"], each["sent"], base64.b64decode(answer["protobuf"]), answer["json"])
        for name, each in written.items()
        for answer in [recorded.get(name, nothing)]
    ]


def record(answers: dict[str, tuple[bytes, dict[str, Any]]]) -> None:
    """Both formats of each sample, as a server answered them; a line for each."""
    lines = []
    for name, (raw, shown) in answers.items():
        answer = {"protobuf": base64.b64encode(raw).decode(), "json": shown}
        lines.append(f'"{name}": {json.dumps(answer, ensure_ascii=False)}')
    RECORDED.write_text("{\n" + ",\n".join(lines) + "\n}\n")


def varint(value: int) -> bytes:
    """Negative numbers in two's complement, as ten bytes."""
    value &= (1 << 64) - 1
    written = bytearray()
    while value > 0x7F:
        written.append(value & 0x7F | 0x80)
        value >>= 7
    written.append(value)
    return bytes(written)


def tag(number: int, wire: int) -> bytes:
    return varint(number << 3 | wire)


def field(number: int, value: int | str | bytes) -> bytes:
    """An integer, or something with a length."""
    if isinstance(value, int):
        return tag(number, 0) + varint(value)
    data = value.encode() if isinstance(value, str) else value
    return tag(number, 2) + varint(len(data)) + data


def envelope(api_version: str, kind: str, raw: bytes) -> bytes:
    return MAGIC + field(1, field(1, api_version) + field(2, kind)) + field(2, raw) + field(3, "") + field(4, "")
