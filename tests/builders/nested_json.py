"""JSON of any nesting depth, built as text because encoders refuse deep values."""


def nested(levels: int) -> str:
    return '{"a":' * levels + "1" + "}" * levels


def with_nested(text: bytes, levels: int) -> bytes:
    """Encode a value and replace the string "NESTED" in it by nested JSON."""
    return text.replace(b'"NESTED"', nested(levels).encode())
