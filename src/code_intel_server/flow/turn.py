"""What a handler is given and what it answers."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from pydantic import JsonValue

from code_intel_server.flow.checks.judgement import WRITE_CHECK
from code_intel_server.flow.payloads import Payload
from code_intel_server.flow.phases import Event
from code_intel_server.flow.ports import Ports
from code_intel_server.flow.session import SessionState
from code_intel_server.workspace.values import LedgerEntry

P_co = TypeVar("P_co", bound=Payload, covariant=True)


@dataclass(frozen=True, slots=True)
class Note:
    """A message of the contract by dotted key, with the values of its placeholders."""

    key: str
    params: Mapping[str, object] = field(default_factory=dict)


@dataclass(slots=True)
class Turn(Generic[P_co]):
    """One submit: a draft of the state that may be changed freely, the typed payload, and the world."""

    state: SessionState
    payload: P_co
    ports: Ports
    _now: str | None = None

    @property
    def now(self) -> str:
        """The tree as it was when this submit first asked: one moment for all that is judged. '' without git."""
        if self._now is None:
            self._now = self.ports.tree.snapshot(of=self._files())
        return self._now

    def _files(self) -> set[str]:
        """The files that this session looked at, may write or has written: they are read again, whatever their stamps say."""
        state = self.state
        asked = (path for call in self.ports.ledger.entries() if call.tool == WRITE_CHECK for path in call.files)
        return {*state.explored_files, *state.added_files, *state.explained_files, *asked}

    def calls(self, since: int = 0) -> tuple[LedgerEntry, ...]:
        """The successful tool calls of this session after position `since`."""
        return tuple(e for e in self.ports.ledger.entries() if e.seq > since and e.outcome == "ok")


@dataclass(frozen=True, slots=True)
class Outcome:
    """What an accepted payload means: the table's event, fields and warnings for the answer, and how an end reads.

    `retired` are sessions whose branches were removed: their checkpoints go too.
    """

    event: Event
    fields: Mapping[str, JsonValue] = field(default_factory=dict)
    warnings: tuple[Note, ...] = ()
    hints: tuple[Note, ...] = ()
    ending: Note | None = None
    retired: tuple[str, ...] = ()
