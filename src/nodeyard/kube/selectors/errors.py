"""The error of an invalid selector."""


class SelectorError(ValueError):
    """The selector is invalid. The text is the message of the 400 with which the API server answers a list."""
