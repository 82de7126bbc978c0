"""Real agents on real commits, with the server and without.

python -m benchmarks.agents prepare TASK ARM NAME    lay a run out; prints the brief to give to a fresh agent
python -m benchmarks.agents begin|finish NAME        the agent says when it began and when it was done
python -m benchmarks.agents tools NAME               what a client tells its model of the server
python -m benchmarks.agents call NAME TOOL JSON      one call; prints the text that a model would see
python -m benchmarks.agents stop NAME                end the server (the next call starts it again, as a client would)
python -m benchmarks.agents run NAME CLIENT          give the brief to `claude` or `codex`, with the user's own account
python -m benchmarks.agents score NAME MODEL REPORT  hidden tests and obligations; keeps the run in runs/
python -m benchmarks.agents order                    the planned runs (PLAN.md), in the order that the seed gives
python -m benchmarks.agents check [TASK ...]         see that tasks fail before the real commit and hold after it
python -m benchmarks.agents table                    write benchmarks/agents.md from runs/

ARM is bare, lookups (the tools, no skill and no session), quick, fast, auto or full. Runs are laid out in $AGENTS_HOME; $AGENTS_SERVER names the server's command.
"""

import json
import os
import shutil
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

from benchmarks.agents import bridge, check, page, tasks
from benchmarks.agents.tasks import HERE, HOME, Task

RUNS = HERE / "runs"


def prepare(task: Task, arm: str, name: str) -> str:
    """Lay a run out and return the brief for its agent."""
    server = os.environ.get("AGENTS_SERVER") or shutil.which("code-intel-server") or sys.exit("no code-intel-server")
    project = tasks.lay_out(task, arm, name, server)
    agents = HOME / "agents"
    agents.write_text(
        f'#!/bin/sh\ncd "{HERE.parents[1]}" && AGENTS_HOME="{HOME}" exec "{sys.executable}" -m benchmarks.agents "$@"\n'
    )
    agents.chmod(0o755)
    form = HERE / "forms" / {"bare": "without.md", "lookups": "lookups.md"}.get(arm, "with.md")
    brief = form.read_text(encoding="utf-8").format(
        project=project,
        tests=task.tests,
        agents=agents,
        name=name,
        request=task.request,
        flags=tasks.FLAGS.get(arm, ""),
        base="main",
    )
    if arm == "bare":
        return brief
    skill = project / ".claude/skills/code/SKILL.md"
    loaded = [brief, f"# {skill}\n\n{skill.read_text(encoding='utf-8')}"] if skill.exists() else [brief]
    try:
        return "\n".join([*loaded, "# The server's tools", *tools(name)])
    finally:
        bridge.ask(HOME / name, "stop")


def tools(name: str) -> list[str]:
    """What a client tells its model of the server's tools."""
    listed = bridge.ask(connect(name), "tools/list")["tools"]
    return [f"\n## {tool['name']}\n{tool.get('description', '')}\n{json.dumps(tool['inputSchema'])}" for tool in listed]


def connect(name: str) -> Path:
    """The folder of a run's server, started where it is not running."""
    folder = HOME / name
    run = json.loads((folder / "run.json").read_text())
    if not (folder / "socket").exists():
        bridge.start(folder, folder / "project", [run["server"], "serve"])
    return folder


def run(name: str, client: str) -> None:
    """Let the user's own client do the work, with the permissions it needs to do so unasked."""
    folder = HOME / name
    data = json.loads((folder / "run.json").read_text())
    task = tasks.load()[data["task"]]
    flags = tasks.FLAGS.get(data["arm"])
    call = "" if flags is None else {"claude": "/code ", "codex": "$code "}[client] + flags
    command = {
        "claude": ["claude", "-p", "--permission-mode", "acceptEdits", "--output-format", "stream-json", "--verbose"],
        "codex": ["codex", "exec", "--json", "--full-auto"],
    }[client]
    tasks.stamp(name, "begin")
    with (folder / "transcript.jsonl").open("w") as out:
        subprocess.run([*command, call + task.request], cwd=folder / "project", stdout=out, check=False)
    tasks.stamp(name, "finish")


def keep(name: str, model: str, report: str) -> Path:
    """Score a run and keep it with what its agent reported."""
    folder = HOME / name
    data = json.loads((folder / "run.json").read_text())
    row = {
        "task": data["task"],
        "arm": data["arm"],
        "model": model,
        "date": datetime.now(UTC).date().isoformat(),
        "minutes": round((data["finish"] - data["begin"]) / 60, 1),
        **bridge.count(folder),
        **tasks.score(name),
        "report": report,
    }
    RUNS.mkdir(exist_ok=True)
    file = RUNS / f"{name}.json"
    file.write_text(json.dumps(row, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    return file


def main(argv: list[str]) -> None:
    """One command of the list above."""
    match argv:
        case ["prepare", task, arm, name] if arm in tasks.ARMS:
            print(prepare(tasks.load()[task], arm, name))
        case ["begin" | "finish" as key, name]:
            tasks.stamp(name, key)
        case ["tools", name]:
            print("\n".join(tools(name)))
        case ["call", name, tool, *rest]:
            given = json.loads(sys.stdin.read() if rest == ["-"] else (rest or ["{}"])[0])
            if not isinstance(given, dict):  # as a client's schema would say before the server is asked
                sys.exit('JSON is the object of the arguments, as {"data": [...]} for submit_phase')
            print(bridge.shown(bridge.ask(connect(name), "tools/call", name=tool, arguments=given)))
        case ["stop", name]:
            bridge.ask(HOME / name, "stop")
        case ["run", name, ("claude" | "codex") as client]:
            run(name, client)
        case ["score", name, model, report]:
            print(keep(name, model, Path(report).read_text(encoding="utf-8")))
        case ["order"]:
            print("\n".join(page.order(list(tasks.load(tasks.FIRST)))))
        case ["check", *names]:
            for task in [tasks.load()[name] for name in names] or tasks.load().values():
                print(check.check(task), flush=True)
        case ["table"]:
            page.draw(RUNS, HERE.parent)
            (HERE.parent / "agents.md").write_text(page.page(RUNS), encoding="utf-8")
        case ["_serve", folder, project, *command]:
            bridge.serve(Path(folder), Path(project), command)
        case _:
            sys.exit(__doc__)


main(sys.argv[1:])
