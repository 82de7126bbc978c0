"""QUERY_FRAME: the slots of a request, each compared with the user's own words (SPEC 4)."""

import unicodedata
from collections.abc import Mapping

from pydantic import BaseModel, ConfigDict

_ADDS = ("add", "create", "introduce", "implement", "support", "new")
SLOTS = ("target_feature", "trigger_condition", "observed_issue", "desired_action")


def adds(action_type: str) -> bool:
    """Whether what an action speaks of may not be there yet."""
    return action_type.strip().casefold().startswith(_ADDS)


class Slot(BaseModel):
    """A slot's value and the words of the query it rests on."""

    model_config = ConfigDict(frozen=True)

    value: str = ""
    quote: str = ""

    @property
    def filled(self) -> bool:
        """Whether the slot says anything."""
        return bool(self.value.strip() or self.quote.strip())


class QueryFrame(BaseModel):
    """The structured request that the session remembers."""

    model_config = ConfigDict(frozen=True)

    action_type: str
    target_symbols: tuple[str, ...] = ()
    scope: str = ""
    constraints: str = ""
    slots: Mapping[str, Slot] = {}


def fold(text: str) -> str:
    """Text as quotes are compared: Unicode-normalised (NFKC), case-folded, white space collapsed."""
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split())


def quotes(quote: str, query: str) -> bool:
    """Whether `quote` occurs in the query after folding both; an empty quote never does."""
    folded = fold(quote)
    return bool(folded) and folded in fold(query)
