"""The MCP server: the composition root and the only importer of `mcp`. Tool names, titles, annotations, schemas (SPEC 2).

Every tool is a thin function: it names its arguments for the client and hands the work to `Guard`, which knows phases, the
ledger and refusals. Tools run on worker threads; the session's own mutex orders what must be ordered.

A client waits for the handshake before it does anything, so nothing here imports what only a call needs: the current project and
the rooms behind `tools` are loaded by `LazyTools`, at the first call or in the background, whichever comes first.
"""

import gc
import logging
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import anyio
from mcp.server import MCPServer
from mcp.server.mcpserver import Context
from mcp.server.mcpserver.exceptions import ToolError, UnexpectedToolError
from mcp.server.stdio import stdio_server
from mcp.shared.exceptions import MCPError
from mcp.shared.message import SessionMessage
from mcp.types import (
    PARSE_ERROR,
    CallToolResult,
    ErrorData,
    InputRequiredResult,
    JSONRPCError,
    TextContent,
    ToolAnnotations,
)
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from code_intel_server import __version__, tools
from code_intel_server.common import lifetime
from code_intel_server.common.printable import printable
from code_intel_server.common.request_id import request_id
from code_intel_server.tools.lazy import LazyTools

if TYPE_CHECKING:
    from code_intel_server.codebase.answers import LookupAnswer, Page
    from code_intel_server.codebase.explorer import Explorer
    from code_intel_server.tools.guard import Reply
    from code_intel_server.tools.services import ToolProgress
    from code_intel_server.tools.session.user_words import Ask
    from code_intel_server.tools.shaping import Fields

INSTRUCTIONS = (
    "code-intel leads coding work through verified phases. The user starts a session (/code, $code, or in words; offer it when "
    "a request is more than a quick edit): call start_session with the request, then follow the `instruction` of every "
    "response and send `expected_payload` with submit_phase until phase is SESSION_COMPLETE. "
    "submit_phase is the only exit of every phase. Lost? get_session_status. Lookups (search_text, find_definitions, "
    "find_references, query ...) also work without a session."
)

READ_ONLY = ToolAnnotations(read_only_hint=True, destructive_hint=False, idempotent_hint=True, open_world_hint=False)
WRITE = ToolAnnotations(read_only_hint=False, destructive_hint=False, idempotent_hint=True, open_world_hint=False)
APPEND = ToolAnnotations(read_only_hint=False, destructive_hint=False, idempotent_hint=False, open_world_hint=False)
ALWAYS = {"anthropic/alwaysLoad": True}
_ANSWER_SECONDS = 300
_MEANT = {"extra_forbidden": "unknown argument"}


class Answer(BaseModel):
    """Any answer; a refusal has success=false, error and message."""

    model_config = ConfigDict(extra="allow")

    success: bool = True


class Listing(BaseModel):
    """Results by file: {path, rows}, a row a line of text ("12: text", "12-15: text") or an object; or a refusal."""

    model_config = ConfigDict(extra="allow")

    results: list[dict[str, Any]] = []
    total: int = 0
    truncated: bool = False


Path_ = Annotated[str, Field(description="File or folder, relative to the project root")]
Limit = Annotated[int, Field(description="Rows at most")]
Offset = Annotated[int, Field(description="next_offset of the last answer")]
Symbol_ = Annotated[str | None, Field(description="A name, Class.method or module.name")]
At = Annotated[str | None, Field(description="path:line[:column] of a name, in place of symbol")]


class _Server(MCPServer):
    """Answers a call whose arguments do not fit as every other refusal: in the contract's words, with the re-instruction."""

    late: LazyTools
    asks = True
    """Whether its client has answered every question so far."""

    async def call_tool(
        self, name: str, arguments: dict[str, Any], context: Context | None = None
    ) -> CallToolResult | InputRequiredResult:
        """Call a tool. Raises ToolError for an unknown one."""
        if name == "submit_phase" and arguments and "data" not in arguments:
            arguments = {"data": arguments}  # every second agent forgets the wrapper, and nothing else can be meant
        try:
            return await super().call_tool(name, arguments, context)
        except ToolError as error:
            if isinstance(error, UnexpectedToolError) or not isinstance(error.__cause__, ValidationError):
                raise
            found = error.__cause__.errors(include_url=False, include_context=False, include_input=False)
        problems = [(".".join(map(str, one["loc"])), _MEANT.get(one["type"], one["msg"])) for one in found]
        return result_of(await anyio.to_thread.run_sync(lambda: self.late.guard.misfit(name, problems)))


def build(late: LazyTools) -> MCPServer:
    """The server of one working directory, with every tool and prompt registered."""
    mcp = _Server("code-intel", title="code-intel", version=__version__, instructions=INSTRUCTIONS, log_level="WARNING")
    mcp.late = late

    def call(tool: str, work: "Callable[[], Fields]") -> CallToolResult:
        """Run a tool's work behind the guard; what nobody waits for any more was shown to nobody."""

        def answered() -> "Fields":
            answer = work()
            anyio.from_thread.check_cancelled()
            return answer

        return result_of(late.guard.call(tool, answered))

    def listed(
        tool: str, limit: int, offset: int, ask: "Callable[[Explorer, Page], LookupAnswer[object]]"
    ) -> CallToolResult:
        """Run a lookup that answers a page."""
        return call(tool, lambda: tools.exploration.listed(late.current, limit, offset, ask))

    _start_tool(mcp, late, call)
    _session_tools(mcp, late, call)
    _text_tools(mcp, listed)
    _name_tools(mcp, listed)
    _structure_tools(mcp, late, call)
    _index_tools(mcp, late, call)
    _control_tools(mcp, late, call)
    _prompts(mcp)
    for tool in mcp._tool_manager.list_tools():
        model = tool.fn_metadata.arg_model
        model.model_config["extra"] = "forbid"  # an argument that nobody reads is a mistake, not a wish
        model.model_rebuild(force=True)
    return mcp


RunTool = Callable[[str, "Callable[[], Fields]"], CallToolResult]
AskLookup = Callable[[str, int, int, "Callable[[Explorer, Page], LookupAnswer[object]]"], CallToolResult]
"""A lookup by name, limit and offset, and how it is asked of the project's lookups."""
Reported = Annotated[CallToolResult, Answer]
Listed = Annotated[CallToolResult, Listing]


def result_of(reply: "Reply") -> CallToolResult:
    """A reply as structure and the same as text, because clients show a model only one of them."""
    return CallToolResult(
        content=[TextContent(type="text", text=reply.text)], structured_content=reply.fields, is_error=reply.failed
    )


def _client(ctx: Context) -> str:
    """What the client calls itself; '' where it has not said."""
    said = ctx.request_context.session.client_params
    return said.client_info.name if said else ""


def reporting(ctx: Context) -> "ToolProgress":
    """Progress notifications from a worker thread; also where a cancelled call ends."""

    def report(done: float, total: float, message: str) -> None:
        """Notify, or raise where the call was cancelled."""
        anyio.from_thread.check_cancelled()
        anyio.from_thread.run(ctx.report_progress, done, total, message)

    return report


def asking(ctx: Context, mcp: _Server) -> "Ask":
    """Questions to the user, from a worker thread: '' where the client has no form, or nobody answers it.

    A client that once gave no proper answer in time is not asked again.
    """
    session = ctx.request_context.session

    async def answer(question: str, choices: Sequence[str]) -> str:
        """The choice made in the client's form, '' for none."""
        choice = {"type": "string", "title": "Your choice", "enum": [*choices]}
        schema: dict[str, Any] = {"type": "object", "properties": {"choice": choice}, "required": ["choice"]}
        mcp.asks = False
        with anyio.move_on_after(_ANSWER_SECONDS):
            said = await session.elicit_form(question, schema, ctx.request_id)
            mcp.asks = True
            return str((said.content or {}).get("choice", "")) if said.action == "accept" else ""
        return ""

    def ask(question: str, choices: Sequence[str]) -> str:
        """As `answer`, from a worker thread."""
        params = session.client_params
        if not mcp.asks or params is None or params.capabilities.elicitation is None:
            return ""
        try:
            return anyio.from_thread.run(answer, question, choices)
        except (MCPError, ValueError, RuntimeError):
            return ""

    return ask


def _start_tool(mcp: _Server, late: LazyTools, call: RunTool) -> None:
    @mcp.tool(title="Start session", annotations=WRITE, meta=ALWAYS)
    def start_session(
        ctx: Context,
        query: Annotated[str, Field(description="The user's request, word for word")] = "",
        intent: Annotated[
            Literal["IMPLEMENT", "MODIFY", "INVESTIGATE", "QUESTION"],
            Field(description="INVESTIGATE and QUESTION change nothing"),
        ] = "IMPLEMENT",
        flags: Annotated[
            dict[str, bool | str],
            Field(
                description="gate_level ('auto'|'full') and booleans: no_verify, no_quality, only_verify, only_explore, "
                "fast, quick, no_doc, no_intervention, clean, rebuild, worktree"
            ),
        ] = {},  # noqa: B006 - read only
        repo_path: Annotated[str, Field(description="The project")] = ".",
    ) -> Reported:
        """Begin a task: returns the first phase with its instruction. Only where no session is active, or with clean."""

        def work() -> "Fields":
            sessions = late.current.take_up(repo_path)
            note = tools.caller.caller_note(sessions)
            sessions.hooked = note is not None
            sessions.conversation = str(note.get("conversation") or "") if note else ""
            answer = late.current.start(sessions, query, intent, flags, reporting(ctx), asking(ctx, mcp))
            return tools.caller.with_warnings(
                late.current.sessions, answer, note, _client(ctx) if repo_path in {"", "."} else ""
            )

        return call("start_session", work)


def _session_tools(mcp: _Server, late: LazyTools, call: RunTool) -> None:
    @mcp.tool(title="Submit phase", annotations=WRITE, meta=ALWAYS)
    def submit_phase(
        ctx: Context,
        data: Annotated[
            dict[str, Any] | list[Any] | str,
            Field(
                description="The current phase's expected_payload, as an object; a list where the instruction says so"
            ),
        ],
    ) -> Reported:
        """The only exit of every phase: send expected_payload, get the next phase. Refusals say what is missing."""

        def work() -> "Fields":
            current = late.current
            answer = current.submit(data, reporting(ctx), asking(ctx, mcp))
            return tools.writing.with_review(current, answer, anyio.from_thread.check_cancelled)

        return call("submit_phase", work)

    @mcp.tool(title="Session status", annotations=WRITE, meta=ALWAYS)
    def get_session_status(
        repo_path: Annotated[str, Field(description="The project")] = ".",
        discard_active: Annotated[bool, Field(description="Drop the fresh session, restore the checkpoint")] = False,
        session_id: Annotated[str | None, Field(description="Which checkpoint; the newest if not given")] = None,
    ) -> Reported:
        """Where am I, what next, all summaries, what is changed. Restores an interrupted session where none is active."""

        def work() -> "Fields":
            sessions = late.current.take_up(repo_path)
            return late.current.status(sessions, discard_active=discard_active, session_id=session_id)

        return call("get_session_status", work)


def _text_tools(mcp: MCPServer, listed: AskLookup) -> None:
    @mcp.tool(title="Search text", annotations=READ_ONLY)
    def search_text(
        patterns: Annotated[str | list[str], Field(description="One pattern, or several in one pass")],
        path: Path_ = ".",
        regex: Annotated[bool, Field(description="false: literal text")] = True,
        word: Annotated[bool, Field(description="Whole words only")] = False,
        ignore_case: bool = False,
        globs: Annotated[list[str], Field(description="Like .gitignore lines, at most 50; a leading ! excludes")] = [],  # noqa: B006
        context_lines: int = 0,
        limit: Limit = 50,
        offset: Offset = 0,
    ) -> Listed:
        """Find text with ripgrep: matches by file, definitions first, with a count for each pattern."""
        return listed(
            "search_text",
            limit,
            offset,
            lambda lookups, page: lookups.search_text(
                patterns,
                path,
                page=page,
                regex=regex,
                word=word,
                ignore_case=ignore_case,
                globs=globs,
                context_lines=context_lines,
            ),
        )

    @mcp.tool(title="Search files", annotations=READ_ONLY)
    def search_files(
        pattern: Annotated[str, Field(description="A glob, or part of a name for a fuzzy search")],
        path: Path_ = ".",
        limit: Limit = 50,
        offset: Offset = 0,
    ) -> Listed:
        """Find files by name."""
        return listed(
            "search_files", limit, offset, lambda lookups, page: lookups.search_files(pattern, path, page=page)
        )


def _name_tools(mcp: MCPServer, listed: AskLookup) -> None:
    @mcp.tool(title="Find definitions", annotations=READ_ONLY)
    def find_definitions(
        symbol: Symbol_ = None,
        at: At = None,
        kind: Annotated[str | None, Field(description="function, class, method, ...")] = None,
        path: Path_ = ".",
        match: Literal["exact", "prefix", "fuzzy"] = "exact",
        limit: Limit = 50,
        offset: Offset = 0,
    ) -> Listed:
        """Where a symbol is defined, with signature and scope; with `at`, what the name there means."""
        return listed(
            "find_definitions",
            limit,
            offset,
            lambda lookups, page: lookups.find_definitions(symbol, at=at, kind=kind, path=path, match=match, page=page),
        )

    @mcp.tool(title="Find references", annotations=READ_ONLY)
    def find_references(
        symbol: Symbol_ = None,
        at: At = None,
        path: Path_ = ".",
        kinds: Annotated[
            list[str], Field(description="Of definition, call, import, attribute, type, other; all if empty")
        ] = [],  # noqa: B006
        include_comments: Annotated[bool, Field(description="Comments, strings and documents too")] = False,
        limit: Limit = 50,
        offset: Offset = 0,
    ) -> Listed:
        """Where a symbol is used: what certainly means it, then what may, each with its kind and the function around it."""
        return listed(
            "find_references",
            limit,
            offset,
            lambda lookups, page: lookups.find_references(
                symbol, at=at, path=path, kinds=kinds, include_comments=include_comments, page=page
            ),
        )


def _structure_tools(mcp: MCPServer, late: LazyTools, call: RunTool) -> None:
    @mcp.tool(title="Outline", annotations=READ_ONLY)
    def get_symbols(path: Path_, offset: Offset = 0) -> Listed:
        """The symbols of one file."""
        return call("get_symbols", lambda: tools.exploration.get_symbols(late.current, path, offset))

    @mcp.tool(title="Function at line", annotations=READ_ONLY)
    def get_function_at_line(path: Path_, line: Annotated[int, Field(description="1-based")]) -> Listed:
        """The innermost function or class around a line, with its source."""
        return call("get_function_at_line", lambda: tools.exploration.get_function_at_line(late.current, path, line))

    @mcp.tool(title="Analyze structure", annotations=READ_ONLY)
    def analyze_structure(path: Path_, offset: Offset = 0) -> Listed:
        """Classes, functions, imports and calls of a file or folder."""
        return call("analyze_structure", lambda: tools.exploration.analyze_structure(late.current, path, offset))

    @mcp.tool(title="Query", annotations=READ_ONLY)
    def query(
        question: Annotated[str, Field(description="What you want to know, in words")], limit: Limit = 20
    ) -> Listed:
        """One question, routed to the fitting lookup; says which and why."""
        return call("query", lambda: tools.exploration.query(late.current, question, limit))


def _index_tools(mcp: MCPServer, late: LazyTools, call: RunTool) -> None:
    @mcp.tool(title="Semantic search", annotations=READ_ONLY)
    def semantic_search(
        query: str,
        limit: Limit = 10,
        path: Path_ = ".",
        language: str | None = None,
        collection: Annotated[
            Literal["auto", "map", "forest"], Field(description="auto: map (past successes) first")
        ] = "auto",
    ) -> Listed:
        """Find code by meaning. In a session: phase SEMANTIC only."""
        return call(
            "semantic_search",
            lambda: tools.exploration.semantic_search(late.current, query, limit, path, language, collection),
        )

    @mcp.tool(title="Chunk detail", annotations=READ_ONLY)
    def fetch_chunk_detail(chunk_id: str, neighbours: int = 1) -> Listed:
        """One chunk of a semantic search whole, with its neighbours."""
        return call(
            "fetch_chunk_detail", lambda: tools.exploration.fetch_chunk_detail(late.current, chunk_id, neighbours)
        )

    @mcp.tool(title="Analyze impact", annotations=READ_ONLY)
    def analyze_impact(
        targets: Annotated[list[str], Field(description="Symbols or paths that are to change")],
        depth: int = 2,
        limit: Limit = 20,
        offset: Offset = 0,
    ) -> Listed:
        """What a change touches, the likeliest to change too first; each entry of must_verify has an id."""
        return call(
            "analyze_impact", lambda: tools.exploration.analyze_impact(late.current, targets, depth, limit, offset)
        )

    @mcp.tool(title="Sync index", annotations=WRITE)
    def sync_index(ctx: Context, rebuild: Annotated[bool, Field(description="From nothing")] = False) -> Reported:
        """Bring the semantic index up to date."""
        return call(
            "sync_index", lambda: tools.maintenance.sync_index(late.current, rebuild=rebuild, progress=reporting(ctx))
        )

    @mcp.tool(title="Update context", annotations=WRITE)
    def update_context(
        summary: Annotated[str, Field(description="The project's rules as a short DO/DON'T list")],
    ) -> Reported:
        """Store a new summary of the project rules."""
        return call("update_context", lambda: tools.maintenance.update_context(late.current, summary))


def _control_tools(mcp: MCPServer, late: LazyTools, call: RunTool) -> None:
    @mcp.tool(title="Check write target", annotations=READ_ONLY)
    def check_write_target(
        paths: Annotated[str | list[str], Field(description="Files, relative to the project root")] = [],  # noqa: B006
        path: Annotated[str, Field(description="One file")] = "",
    ) -> Reported:
        """May these files be written? Call before the first edit of a file; what is allowed stays so for the session."""
        wanted = [*([paths] if isinstance(paths, str) else paths), path]
        return call("check_write_target", lambda: tools.writing.check_write_target(late.current, wanted))

    @mcp.tool(title="Add explored files", annotations=WRITE)
    def add_explored_files(
        paths: list[str], reason: Annotated[str, Field(description="Why they belong to the task")]
    ) -> Reported:
        """Make more files writable, with a reason that is logged."""
        return call("add_explored_files", lambda: tools.writing.add_explored_files(late.current, paths, reason))

    @mcp.tool(title="Review changes", annotations=READ_ONLY)
    def review_changes(
        path: Annotated[str | None, Field(description="One file, for its whole diff")] = None,
        limit: Limit = 1_000,
        offset: Offset = 0,
    ) -> Listed:
        """Every change of this session with its diff."""
        return call("review_changes", lambda: tools.writing.review_changes(late.current, path, limit, offset))

    @mcp.tool(title="Clean up task branches", annotations=WRITE)
    def cleanup_stale_branches(dry_run: bool = False) -> Reported:
        """Remove left-over llm_task_* branches (recoverably) and their checkpoints."""
        return call(
            "cleanup_stale_branches", lambda: tools.maintenance.cleanup_stale_branches(late.current, dry_run=dry_run)
        )

    @mcp.tool(title="Record outcome", annotations=APPEND)
    def record_outcome(
        outcome: Literal["success", "partial", "failure"],
        notes: str = "",
        session_id: Annotated[str | None, Field(description="The last finished one if not given")] = None,
    ) -> Reported:
        """What the user thought of a finished session."""
        return call(
            "record_outcome",
            lambda: tools.learning.record_outcome(
                late.current.services, late.current.contract, outcome, notes, session_id, tools.services.now()
            ),
        )


def _prompts(mcp: MCPServer) -> None:
    @mcp.prompt(title="Code")
    def code(request: Annotated[str, Field(description="What is to be done, with flags if any")]) -> str:
        """Work on a request through code-intel's verified phases."""
        from code_intel_server.contract import Skill, prompt

        return prompt(Skill.CODE, request)

    @mcp.prompt(title="Outcome")
    def outcome(verdict: Annotated[str, Field(description="success, partial or failure, and why")]) -> str:
        """Record how the last session turned out."""
        from code_intel_server.contract import Skill, prompt

        return prompt(Skill.OUTCOME, verdict)


def serve(start: Path, override: Path | None = None) -> None:
    """Serve over stdin and stdout until the client is gone (SPEC 7: EOF, signals, lost parent)."""
    logging.basicConfig(stream=sys.stderr, level=logging.WARNING)
    late = LazyTools(start, override)
    lifetime.end_with_the_client(os.dup(0))
    mcp = build(late)
    late.load_soon()
    gc.freeze()  # what is imported by now lives as long as we do: no collection needs to look at it
    gc.enable()
    anyio.run(_run, mcp)
    late.close()
    lifetime.end_now()


async def _run(mcp: MCPServer) -> None:
    """Serve over stdio, and answer also the request that the SDK cannot read and would drop: nobody waits for nothing."""
    async with stdio_server() as (read, write), anyio.create_task_group() as tasks:
        forward, readable = anyio.create_memory_object_stream[SessionMessage | Exception]()

        async def sort() -> None:
            """Hand messages on; what is none is refused on the wire and goes no further."""
            async with forward:
                async for item in read:
                    refusal = _refusal(item) if isinstance(item, Exception) else None
                    if refusal is None:
                        await forward.send(item)
                    else:
                        await write.send(SessionMessage(refusal))

        tasks.start_soon(sort)
        server = mcp._lowlevel_server
        await server.run(readable, write, server.create_initialization_options())
        tasks.cancel_scope.cancel()


def _refusal(error: Exception) -> JSONRPCError | None:
    """The answer to a line that is no JSON-RPC message; None where it does not say which request it would answer."""
    found = error.errors(include_url=False)[0] if isinstance(error, ValidationError) else None
    if found is None or found["type"] != "json_invalid" or not isinstance(found["input"], str):
        return None
    number = request_id(found["input"])
    if number is None:
        return None
    said = f"This request cannot be read and nothing was done: {found['msg']}."
    return JSONRPCError(jsonrpc="2.0", id=number, error=ErrorData(code=PARSE_ERROR, message=printable(said)))
