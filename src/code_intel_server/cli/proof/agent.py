"""The scripted agent over a real server process: the SDK's client on standard input and output (SPEC 12, proof of set-up)."""

import contextlib
import os
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO, cast

import anyio
from mcp import Client, MCPError, StdioServerParameters
from mcp.client.stdio import stdio_client

from code_intel_server.cli.proof.script import Actions, Edit, Fields, Script, Stuck, ToolCall, Work

CALL_SECONDS = 600.0
HANDSHAKE_SECONDS = 60.0
_TAIL_LINES = 15


@dataclass(frozen=True, slots=True)
class SubmitStep:
    """One submit as the agent saw it: what it left, how long it took (seconds), and whether it was accepted."""

    number: int
    phase: str
    next: str
    tools: tuple[str, ...]
    seconds: float
    accepted: bool


def serve_command(project: Path) -> tuple[str, ...]:
    """The server of this very installation for a project."""
    return (sys.executable, "-m", "code_intel_server", "serve", "--project", str(project))


def run_session(
    work: Work,
    project: Path,
    *,
    command: tuple[str, ...] = (),
    environment: Mapping[str, str] | None = None,
    on_step: Callable[[SubmitStep], None] = lambda _step: None,
) -> Script:
    """Lead `work` through a whole session of a server process over `project`; the script with all responses.

    Raises Stuck where the responses lead no further or a tool fails.
    """
    script = Script(work)
    parameters = _parameters(project, command, environment)
    with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as log:
        try:
            anyio.run(_session, script, parameters, log, project, on_step)
        except (BaseExceptionGroup, OSError, Stuck) as error:
            raise Stuck(_innermost(error) + _tail(log)) from error
    return script


def handshake(project: Path, command: tuple[str, ...] = (), environment: Mapping[str, str] | None = None) -> list[str]:
    """Start the server, ask for its tools, end it; their names. Raises Stuck where it does not answer."""
    names: list[str] = []
    parameters = _parameters(project, command, environment)

    async def ask(log: TextIO) -> None:
        """Fill `names`; the server ends with the block."""
        with anyio.fail_after(HANDSHAKE_SECONDS):
            async with Client(stdio_client(parameters, errlog=log)) as client:
                names.extend(tool.name for tool in (await client.list_tools()).tools)

    with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as log:
        try:
            anyio.run(ask, log)
        except (BaseExceptionGroup, OSError, MCPError) as error:
            raise Stuck(_innermost(error) + _tail(log)) from error
    return names


def _tail(log: TextIO) -> str:
    """The last lines the server logged."""
    log.seek(0)
    lines = log.read().splitlines()[-_TAIL_LINES:]
    return "\n".join(["", *lines]) if lines else ""


def _innermost(error: BaseException) -> str:
    """What went wrong, without the groups around it. An interrupt by the user stays one."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    if isinstance(error, KeyboardInterrupt):
        raise error
    return str(error) if isinstance(error, Stuck) else f"{type(error).__name__}: {error}"


def _parameters(
    project: Path, command: tuple[str, ...], environment: Mapping[str, str] | None
) -> StdioServerParameters:
    words = command or serve_command(project)
    return StdioServerParameters(
        command=words[0], args=[*words[1:]], cwd=str(project), env={**os.environ, **(environment or {})}
    )


async def _session(
    script: Script, parameters: StdioServerParameters, log: TextIO, project: Path, on_step: Callable[[SubmitStep], None]
) -> None:
    async with Client(stdio_client(parameters, errlog=log)) as client:
        await _drive(client, script.run(), project, on_step)


async def _drive(client: Client, actions: Actions, project: Path, on_step: Callable[[SubmitStep], None]) -> None:
    before: Fields = {}
    tools: list[str] = []
    began = time.monotonic()
    wanted = next(actions, ())
    with contextlib.suppress(StopIteration):
        while True:
            results: list[Fields] = [{} for _ in wanted]
            async with anyio.create_task_group() as group:
                for index, action in enumerate(wanted):
                    group.start_soon(_act, client, action, project, results, index)
            for action, result in zip(wanted, results, strict=True):
                if isinstance(action, ToolCall) and action.tool in {"start_session", "submit_phase"}:
                    on_step(_step(before, result, tools, time.monotonic() - began))
                    before, tools, began = result, [], time.monotonic()
                elif result.get("success", True):
                    tools.append(action.tool if isinstance(action, ToolCall) else f"edit {action.path}")
            wanted = actions.send(results)


async def _act(client: Client, action: ToolCall | Edit, project: Path, results: list[Fields], index: int) -> None:
    if isinstance(action, Edit):
        await anyio.Path(project / action.path).write_text(action.after, encoding="utf-8")
        return
    with anyio.fail_after(CALL_SECONDS):
        answer = await client.call_tool(action.tool, action.arguments)
    if answer.structured_content is None:
        texts = [part.text for part in answer.content if part.type == "text"]
        raise Stuck(f"{action.tool}: {' '.join(texts)}")
    results[index] = cast("Fields", answer.structured_content)


def _step(before: Fields, after: Fields, tools: list[str], seconds: float) -> SubmitStep:
    accepted = bool(after.get("success"))
    if not before:
        return SubmitStep(1, "start_session", str(after.get("phase", "")), (), seconds, accepted)
    return SubmitStep(
        int(before.get("step", 0)), str(before["phase"]), str(after.get("phase", "")), tuple(tools), seconds, accepted
    )
