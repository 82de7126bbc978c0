"""Messages with placeholders: `{name}` is replaced by a value, `{{` and `}}` by braces, and nothing else is understood.

No attribute, index, conversion or format specification can be written, so a contract that came with a repository can
show only the values that the message is given (SPEC 5). Values are put in once: braces inside them stay as they are.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from code_intel_server.common.printable import printable

MAX_VALUE_CHARACTERS = 4000
MAX_LISTED = 20

_TOKEN = re.compile(r"\{\{|\}\}|\{([A-Za-z_][A-Za-z0-9_]*)\}|\{[^{}]*\}?")


@dataclass(frozen=True, slots=True)
class Message:
    """What an agent reads: the `error` code ('' where it is none), the text, what to do, and whether the user must."""

    error: str = ""
    text: str = ""
    instruction: str | None = None
    requires_user_intervention: bool = False

    def names(self) -> frozenset[str]:
        """The placeholders of all its texts."""
        return frozenset().union(*(placeholders(text) for text in (self.error, self.text, self.instruction or "")))

    def render(self, params: Mapping[str, object]) -> "Message":
        """The message with `params` put in; a placeholder without a value stays visible."""
        instruction = None if self.instruction is None else substitute(self.instruction, params)
        error, text = substitute(self.error, params), substitute(self.text, params)
        return replace(self, error=error, text=text, instruction=instruction)


def placeholders(text: str) -> frozenset[str]:
    """The names that `text` uses."""
    return frozenset(match[1] for match in _TOKEN.finditer(text) if match[1])


def misused_brace(text: str) -> str | None:
    """The first `{...}` of `text` that is neither `{name}` nor a doubled brace, None where there is none."""
    for match in _TOKEN.finditer(text) if "{" in text else ():
        if not match[1] and match[0] not in {"{{", "}}"}:
            return match[0]
    return None


def substitute(text: str, params: Mapping[str, object]) -> str:
    """Put the values in by plain name, in one pass."""

    def value(match: re.Match[str]) -> str:
        """The replacement of a placeholder: its value, itself where there is none, one brace for two."""
        name = match[1]
        if name is None:
            return {"{{": "{", "}}": "}"}.get(match[0], match[0])
        return shown_value(params[name]) if name in params else match[0]

    return _TOKEN.sub(value, text)


def shown_value(value: object) -> str:
    """A value as text: lists joined by commas and cut after 20, everything cut after 4,000 characters, nothing hidden."""
    text = printable(", ".join(_some(value)) if isinstance(value, list | tuple | set | frozenset) else str(value))
    return text if len(text) <= MAX_VALUE_CHARACTERS else f"{text[:MAX_VALUE_CHARACTERS]}…"


def _some(values: Iterable[object]) -> list[str]:
    texts = [str(value) for value in values]
    rest = len(texts) - MAX_LISTED
    return texts if rest <= 0 else [*texts[:MAX_LISTED], f"… and {rest} more"]
