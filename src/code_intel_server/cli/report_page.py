"""The report of one session as a page: what it did, where it went back, and what its claims rest on (SPEC 12)."""

from collections.abc import Iterator, Sequence

from code_intel_server.cli import timeline
from code_intel_server.cli.page import bar, esc, facts, folded, mark, page, quoted, table, tiles
from code_intel_server.cli.record import (
    LOOP_EVENTS,
    STEP_NAMES,
    Fields,
    Refusal,
    Told,
    Visit,
    duration,
    elapsed,
    mapping,
    moment,
    number,
    rows,
    skipped_by_flags,
    text,
    texts,
    total,
)
from code_intel_server.flow.phases import LAST_STEP

_ENDS = {"SESSION_COMPLETE": ("complete", "good"), "SESSION_ABANDONED": ("abandoned", "bad"), "": ("not over", "warn")}
_PROOFS = {"proven": "good", "failed": "bad", "unproven": "warn", "waived": "warn", "none": "plain"}
_OPEN_FILES = 10


def report_page(told: Told) -> str:
    """The whole page."""
    return page(
        f"Session {told.session_id}",
        _header(told),
        [
            ("counters", "Counters", tiles(told.counters.items())),
            ("course", "Course", timeline.drawn(told.course.visits, told.end) + _loops(told.course.loops)),
            ("steps", "Steps", _steps(told)),
            ("tasks", "Tasks and evidence", _tasks(told)),
            ("proofs", "Verification", _proofs(told)),
            ("submits", "Submits and refusals", _submits(told)),
            ("tools", "Tools per phase", _tools(told)),
            ("diff", "What was committed", _diff(told.diff)),
            ("summaries", "Summaries", _summaries(told)),
        ],
    )


def _header(told: Told) -> str:
    state = told.state
    name, kind = _ENDS.get(told.end, (told.end, "plain"))
    marks = mark(name, kind) + (" " + mark("forced: quality issues unresolved", "bad") if state.get("forced") else "")
    branch, flags = mapping(state, "task_branch"), mapping(state, "flags")
    spent = elapsed(moment(text(state, "started_at")), moment(told.ended_at))
    told_facts = facts(
        [
            ("Intent", esc(text(state, "intent"))),
            (
                "Flags",
                esc(", ".join(_flag(name, value) for name, value in flags.items() if value not in {False, "auto"})),
            ),
            ("Skipped by flags", esc(", ".join(skipped_by_flags(state).values()))),
            ("Started", _day(text(state, "started_at"))),
            ("Ended" if told.end else "Read", f"{_day(told.ended_at)} ({esc(duration(spent))})"),
            ("Branch", esc(f"{text(branch, 'name')} from {text(branch, 'base')}") if branch else ""),
            ("Commits", ", ".join(f"<code>{esc(oid[:12])}</code>" for oid in texts(state, "commits"))),
            ("Unresolved", "<br>".join(map(esc, texts(state, "unresolved_issues")))),
        ]
    )
    notes = "".join(f"<p>{mark('note', 'warn')} {esc(note)}</p>" for note in told.notes)
    query = f'<p class="lead">{esc(text(state, "query"))}</p>'
    return f"<h1>Session {esc(told.session_id)} {marks}</h1>\n{query}\n{told_facts}{notes}"


def _flag(name: str, value: object) -> str:
    return name if value is True else f"{name}={value}"


def _loops(loops: Sequence[Visit]) -> str:
    if not loops:
        return ""
    entries = "".join(
        f"<li>{mark(LOOP_EVENTS[visit.event], 'bad')} step {visit.step} → {visit.next_step}, submit {visit.number}"
        f"{': ' + esc(visit.said) if visit.said else ''}</li>"
        for visit in loops
    )
    return f'<h3>Loops</h3><ol class="list">{entries}</ol>'


def _steps(told: Told) -> str:
    visits = told.course.visits
    spent = {step: total([v.seconds for v in visits if v.step == step]) for step in range(1, LAST_STEP + 1)}
    longest = max((seconds for seconds in spent.values() if seconds), default=1.0)
    return table(
        "The 19 steps: how often a submit was accepted and refused, and how long the session stood there",
        ("Step", "Accepted", "Refused", "Time"),
        (_step_row(told, step, spent[step], longest) for step in range(1, LAST_STEP + 1)),
    )


def _step_row(told: Told, step: int, seconds: float | None, longest: float) -> tuple[str, ...]:
    name = f"{step} {esc(STEP_NAMES[step])}"
    if step == 1:
        return name, "started", "", ""
    accepted = sum(visit.step == step for visit in told.course.visits)
    refused = sum(refusal.step == step for refusal in told.course.refusals)
    if not accepted and not refused:
        here = number(mapping(told.state, "phase_state"), "step") == step and not told.end
        untaken = "skipped by a flag" if step in skipped_by_flags(told.state) else "not taken"
        return (
            (name, mark("here now", "warn"), "", "")
            if here
            else (f'<span class="dim">{name}</span>', f'<span class="dim">{untaken}</span>', "", "")
        )
    drawn = bar((seconds or 0.0) / (longest or 1.0), duration(seconds)) if accepted else ""
    return name, str(accepted), mark(str(refused), "warn") if refused else "0", drawn


def _tasks(told: Told) -> str:
    return "\n".join(_task(task, told.evidence) for task in rows(told.state, "tasks"))


def _task(task: Fields, evidence: Sequence[Fields]) -> str:
    done = text(task, "status") == "completed"
    failures = number(task, "failure_count")
    marks = mark("completed" if done else text(task, "status") or "pending", "good" if done else "warn")
    marks += " " + mark(f"failures: {failures}", "bad") if failures else ""
    told = (
        f"<p>{mark('sent back' if failures else 'made for', 'warn')} {esc(text(task, 'revert_reason'))}</p>"
        if text(task, "revert_reason")
        else ""
    )
    items = "".join(f"<li>{_item(item, text(task, 'id'), evidence)}</li>" for item in rows(task, "checklist"))
    heading = f"<h3>{esc(text(task, 'id'))} {marks}</h3><p>{esc(text(task, 'description'))}</p>"
    return f'{heading}{told}<ul class="list">{items}</ul>'


def _item(item: Fields, task_id: str, evidence: Sequence[Fields]) -> str:
    status = text(item, "status")
    kind = {"done": "good", "skipped": "warn"}.get(status, "plain")
    said = f"{mark(status or 'pending', kind)} {esc(text(item, 'item'))}"
    if text(item, "evidence"):
        said += f" <code>{esc(text(item, 'evidence'))}</code>"
    if text(item, "reason"):
        said += f" <span class='soft'>{esc(text(item, 'reason'))}</span>"
    used = [row for row in evidence if text(row, "task_id") == task_id and text(row, "item") == text(item, "item")]
    return said + "".join(map(_code, used))


def _code(used: Fields) -> str:
    """The lines of an evidence, numbered."""
    start, path = number(used, "start"), text(used, "path")
    lines = texts(used, "lines")
    if not lines:
        return ""
    shown = "\n".join(f'<span class="n">{start + n:>5}</span> {esc(line)}' for n, line in enumerate(lines))
    shown += f'\n<span class="n">{number(used, "cut")} more lines</span>' if number(used, "cut") else ""
    before = " as it was before" if text(used, "version") == "before" else ""
    label = esc(f"{path}:{start}{before}")
    name = esc(f"{text(used, 'task_id')}, {text(used, 'item')}: {path}:{start}")
    return folded(label, f'<pre role="region" aria-label="{name}" tabindex="0">{shown}</pre>', opened=True)


def _proofs(told: Told) -> str:
    """The receipt the session ended with, and what every verdict before it was worth."""
    parts = []
    receipt = mapping(told.state, "receipt")
    if receipt:
        commands = (
            "".join(_command(row) for row in rows(receipt, "commands"))
            or "<p>No verify command is configured: the verdict is the agent's word.</p>"
        )
        tree = f" on tree <code>{esc(text(receipt, 'tree')[:12])}</code>" if text(receipt, "tree") else ""
        parts.append(
            f"<h3>Receipt {_proof_mark(text(receipt, 'status'))}</h3><p>By <code>{esc(text(receipt, 'verifier'))}</code>{tree}.</p>{commands}"
        )
    runs = list(_runs(told))
    if runs:
        parts.append("<h3>Every run</h3>" + "".join(runs))
    return "\n".join(parts)


def _runs(told: Told) -> Iterator[str]:
    for visit in told.course.visits:
        for refusal in visit.refusals:
            yield _run(refusal.proof, f"refused at step {refusal.step}", refusal.at)
        if visit.step == _VERIFY and visit.proof is None:
            yield f"<p>{_when(visit.at)} {mark(visit.event, 'bad' if visit.event == 'failed' else 'plain')} {esc(visit.said)}</p>"
        yield _run(visit.proof, f"submit {visit.number}, step {visit.step}", visit.at)
    for refusal in told.course.waiting:
        yield _run(refusal.proof, f"refused at step {refusal.step}", refusal.at)


_VERIFY = 15


def _run(proof: object, where: str, at: str) -> str:
    if isinstance(proof, str):
        return f"<p>{_when(at)} {_proof_mark(proof)} {esc(where)}</p>"
    if not isinstance(proof, dict):
        return ""
    return f"<p>{_when(at)} {_proof_mark(text(proof, 'status'))} {esc(where)}</p>" + "".join(
        map(_command, rows(proof, "commands"))
    )


def _command(run: Fields) -> str:
    seconds = run.get("seconds")
    spent = duration(float(seconds)) if isinstance(seconds, int | float) else "–"
    code = run.get("returncode")
    status = f", exit status {esc(code)}" if code is not None else ""
    said = f"{_proof_mark(text(run, 'outcome'))} <code>{esc(text(run, 'command'))}</code> <span class='soft'>{spent}{status} {esc(text(run, 'reason'))}</span>"
    output = text(run, "output_tail")
    failed = text(run, "outcome") == "failed"
    return (
        folded(said, quoted(f"Output of {text(run, 'command')}", output), opened=failed) if output else f"<p>{said}</p>"
    )


def _proof_mark(status: str) -> str:
    return mark({"none": "no proof"}.get(status, status), _PROOFS.get(status, "plain"))


def _submits(told: Told) -> str:
    lines: list[tuple[str, ...]] = []
    for visit in told.course.visits:
        lines += map(_refused, visit.refusals)
        last = bool(told.end) and visit is told.course.visits[-1]
        after = "the end" if last else STEP_NAMES.get(visit.next_step, "")
        kind = "bad" if visit.loops else "good"
        lines.append(
            (
                str(visit.number),
                _when(visit.at),
                esc(STEP_NAMES.get(visit.step, visit.step)),
                mark(visit.event or "accepted", kind),
                esc(visit.said) or f"→ {esc(after)}",
                duration(visit.seconds),
            )
        )
    lines += map(_refused, told.course.waiting)
    return table("Every submit in order", ("#", "At", "Step", "Verdict", "Why, or where to", "Time"), lines)


def _refused(refusal: Refusal) -> tuple[str, ...]:
    why = f"<code>{esc(refusal.key)}</code> {esc(refusal.said)}"
    return "–", _when(refusal.at), esc(STEP_NAMES.get(refusal.step, refusal.step)), mark("refused", "warn"), why, ""


def _when(at: str) -> str:
    return f'<time datetime="{esc(at)}">{esc(at[11:19] or at)}</time>'


def _day(at: str) -> str:
    """A moment of the log with its day, as people write it; what is none as it is."""
    said = f"{at[:10]} {at[11:19]} UTC" if at.endswith("+00:00") and moment(at) else at
    return f'<time datetime="{esc(at)}">{esc(said)}</time>' if at else ""


def _tools(told: Told) -> str:
    return table(
        "Calls of each tool in each phase, as the server counted them",
        ("Phase", "Tool", "Calls", "Failed", "Rows"),
        (
            (
                esc(phase),
                f"<code>{esc(tool)}</code>",
                str(number(row, "calls")),
                str(number(row, "failed")),
                str(number(row, "results")),
            )
            for phase, tools in told.tools.items()
            for tool, row in tools.items()
        ),
    )


def _diff(diff: Fields) -> str:
    if not text(diff, "text"):
        return "<p>Nothing was committed, or it is not kept.</p>"
    files = [part for part in ("\n" + text(diff, "text")).split("\ndiff --git ") if part.strip()]
    into = f"<p><code>{esc(text(diff, 'base')[:12])}</code> to <code>{esc(text(diff, 'tip')[:12])}</code>, for {esc(text(diff, 'into'))}</p>"
    shown = "\n".join(_file(part, opened=len(files) <= _OPEN_FILES) for part in files)
    cut = f"<p>{mark('cut', 'warn')} {number(diff, 'cut')} more characters</p>" if number(diff, "cut") else ""
    return into + shown + cut


def _file(part: str, *, opened: bool) -> str:
    head, _, body = part.partition("\n")
    name = esc(head)
    shown = "\n".join(map(_diff_line, body.rstrip("\n").split("\n")))
    return folded(
        f"<code>{name}</code>",
        f'<pre role="region" aria-label="Diff of {name}" tabindex="0">{shown}</pre>',
        opened=opened,
    )


def _diff_line(line: str) -> str:
    if line.startswith(("+++", "---", "@@", "index ", "new file", "deleted file", "similarity", "rename")):
        kind = "h"
    else:
        kind = {"+": "a", "-": "d"}.get(line[:1], "")
    return f'<span class="{kind}">{esc(line)}</span>' if kind else esc(line)


def _summaries(told: Told) -> str:
    return "\n".join(folded(esc(key), f"<p>{esc(said)}</p>") for key, said in told.summaries.items() if said)
