"""Tables of names, written as one text of words."""


def word_set(text: str) -> frozenset[str]:
    """The words of a text, which white space parts."""
    return frozenset(text.split())
