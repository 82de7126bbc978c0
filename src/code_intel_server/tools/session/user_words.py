"""What the user said by themselves: as the client's prompt hook heard it, or as the client's form was answered (SPEC 12).

Asked is only where nothing was heard, and what nobody answers is taken as the agent said it: without hooks and forms nothing
gets harder.
"""

import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from code_intel_server.contract import Contract
from code_intel_server.flow.phases import Flags
from code_intel_server.flow.ports import Author
from code_intel_server.workspace.project.trust import Approvals
from code_intel_server.workspace.state import heard
from code_intel_server.workspace.values import CommandRun

if TYPE_CHECKING:
    from code_intel_server.tools.services import ProjectServices

Ask = Callable[[str, Sequence[str]], str]
"""Puts a question to the user: the choice that was made, '' where nobody answered."""

_YES_NO = ("yes", "no")
_WAIVE = "waive"


def nobody(_question: str, _choices: Sequence[str]) -> str:
    """The client has no form."""
    return ""


@dataclass(frozen=True, slots=True)
class SessionUser:
    """The user of one session, as `flow.ports.User` has it; `session_id` is what `heard.since` makes of its id, `heard.NO_SESSION` before there is one."""

    services: "ProjectServices"
    contract: Contract
    session_id: str
    conversation: str
    ask: Ask = nobody

    def decides(self, what: str, choice: str, choices: Sequence[str]) -> tuple[str, Author]:
        """What was heard last of these choices, if it is the agent's; else the user is asked."""
        named = (found for row in reversed(self._rows()) if (found := {*choices}.intersection(row)))
        if next(named, None) == {choice}:
            return choice, Author.HOOK
        answer = self._asked(what, choices, choice=choice)
        return (answer, Author.USER) if answer else (choice, Author.AGENT)

    def waived(self, session_id: str, run: CommandRun) -> Author | None:
        """Whose word a waiver is; one that the user denies is withdrawn."""
        root = self.services.root
        if any(one.argv == run.argv and one.typed for one in Approvals().waivers(root, session_id)):
            return Author.TERMINAL
        if any(_WAIVE in row for row in self._rows()):
            return Author.HOOK
        answer = self._asked("waiver", _YES_NO, command=shlex.join(run.argv), reason=run.reason)
        if answer == "no":
            Approvals().withdraw(root, session_id, run.argv)
            return None
        return Author.USER if answer else Author.AGENT

    def flags(self, given: Flags) -> tuple[Flags, dict[str, str]]:
        """The flags of a call, without those that the user, asked, has not wanted; and whose word each is."""
        typed = {word for row in self._rows() for word in row}
        marks = {name: Author.HOOK if f"--{name}" in typed else Author.AGENT for name in given.set_names()}
        unheard = [name for name, author in marks.items() if author is Author.AGENT]
        answer = self._asked("flags", _YES_NO, flags=", ".join(unheard)) if unheard else ""
        if answer == "no":
            defaults = {name: getattr(Flags(), name) for name in unheard}
            given = replace(given, **defaults)
        elif answer:
            marks |= dict.fromkeys(unheard, Author.USER)
        return given, {f"--{name}": str(marks[name]) for name in given.set_names()}

    def _rows(self) -> heard.HeardRows:
        return heard.rows(self.services.local, self.services.key, self.session_id, self.conversation)

    def _asked(self, what: str, choices: Sequence[str], **params: object) -> str:
        answer = self.ask(self.contract.message(f"questions.{what}", params).text, choices)
        return answer if answer in choices else ""
