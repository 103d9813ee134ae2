"""JSON that is nested as deeply as one likes: too deep for encoders, so it is made of text."""


def nested(levels: int) -> str:
    return '{"a":' * levels + "1" + "}" * levels


def with_nested(text: bytes, levels: int) -> bytes:
    """JSON in which the string "NESTED" stands for that."""
    return text.replace(b'"NESTED"', nested(levels).encode())
