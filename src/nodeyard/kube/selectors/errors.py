"""What a selector that makes no sense raises."""


class SelectorError(ValueError):
    """The selector means nothing. The text is the message of the 400 that a list answers."""
