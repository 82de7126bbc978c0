"""What of a session's choices a user's own words name: flags as they are typed, decisions as words (SPEC 3.2, 12).

One function judges, without pydantic or git, because the prompt hook asks it for every prompt and keeps nothing but its
answer: no text of the user's is stored. It errs on the side of not having heard: what it does not find was said by the agent.
"""

import re
from collections.abc import Mapping

from code_intel_server.flow.phases import FLAG_ALIASES, FLAG_NAMES

ANSWER_AT_MOST = 1_000
"""Characters of a prompt that may be an answer: what is longer is a request or a log, and its words decide nothing."""
_SHORT: Mapping[str, str] = {
    "g": "gate_level",
    "v": "only_verify",
    "e": "only_explore",
    "f": "fast",
    "q": "quick",
    "ni": "no_intervention",
    "c": "clean",
    "w": "worktree",
}
_DECISIONS: Mapping[str, str] = {
    "delete": "delete",
    "remove": "delete",
    "merge": "merge",
    "continue": "continue",
    "keep": "continue",
    "stop": "stop",
    "abandon": "stop",
    "waive": "waive",
    "waived": "waive",
}
_EDGE = 4_000
_COMMAND = re.compile(r"(?:^|\s)[/$](?:[\w-]+:)?code(?=\s|$)")
_BEFORE_REQUEST = "\nThe request: "
_BEHIND_REQUEST = "\n\nThe code-intel server leads"
"""Around the request in the skill's own text, which some clients put in place of the command before the prompt hook."""
_TYPED = re.compile(r"--?([A-Za-z][\w-]*)(?:=(\w+))?")
_WORDS = re.compile(r"[^\W\d_]+(?:['\u2019]t)?|[.,;:!?\n]")
_NOT = frozenset({"not", "never", "without", "cannot", "dont"})
_REACH = 3


def names_command(prompt: str) -> bool:
    """Whether a prompt calls for a session by the skill's name, as `/code` or `$code`."""
    return _expanded(prompt) is not None or bool(_COMMAND.search(prompt[:_EDGE]))


def _expanded(prompt: str) -> str | None:
    """The request of a prompt that is the skill's own text; None for any other."""
    begin = f"\n{prompt}".find(_BEFORE_REQUEST)
    end = prompt.find(_BEHIND_REQUEST, begin) if begin >= 0 else -1
    return prompt[begin + len(_BEFORE_REQUEST) - 1 : end] if end >= 0 else None


def words_in(prompt: str) -> tuple[str, ...]:
    """The flags (`--fast`) and decisions (`delete`) that a prompt names, each once, in their order.

    Flags count at its beginning, behind the skill's name, or at its end; a decision that is negated does not.
    """
    expanded = _expanded(prompt)
    start = _COMMAND.search(prompt[:_EDGE]) if expanded is None else None
    request = expanded if expanded is not None else prompt[start.end() :] if start else prompt
    found = [*_flags(request[:_EDGE].split()), *_flags([*reversed(request[-_EDGE:].split())])]
    if len(prompt) <= ANSWER_AT_MOST:
        found += _decisions(prompt)
    return tuple(dict.fromkeys(found))


def _flags(words: list[str]) -> list[str]:
    """The flags that a row of words begins with."""
    found = []
    for word in words:
        typed = _TYPED.fullmatch(word)
        if typed is None:
            break
        name = typed[1].replace("-", "_").lower()
        name = FLAG_ALIASES.get(name, name) if word.startswith("--") else _SHORT.get(name, "")
        if name in FLAG_NAMES and (name != "gate_level" or (typed[2] or "").lower() in {"f", "full"}):
            found.append(f"--{name}")
    return found


def _decisions(prompt: str) -> list[str]:
    words = [word.casefold().replace("\u2019", "'") for word in _WORDS.findall(prompt)]
    found = []
    for place, word in enumerate(words):
        before = words[max(0, place - _REACH) : place]
        ends = [number for number, one in enumerate(before, 1) if not one[0].isalpha()]
        negated = any(one in _NOT or one.endswith("n't") for one in before[max(ends, default=0) :])
        if word in _DECISIONS and not negated:
            found.append(_DECISIONS[word])
    return found
