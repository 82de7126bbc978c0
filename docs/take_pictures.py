"""Lead real sessions (proven, a verification loop, a quality loop, forced, given up, interrupted) and take pictures of their pages.

python docs/take_pictures.py [FOLDER]

Needs Chromium; Pillow, where it is installed, makes the pictures small. Without FOLDER the pictures of the documentation are taken
anew; with one, every page goes there with its HTML: 400 and 1,200 pixels wide, light and dark.
"""

import contextlib
import difflib
import itertools
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "src"), str(ROOT)]

from tests.e2e.driver import ENVIRONMENT, repository  # noqa: E402

from code_intel_server.cli import init, trust  # noqa: E402
from code_intel_server.cli.proof.agent import SubmitStep, run_session  # noqa: E402
from code_intel_server.cli.proof.script import Edit, Fields, Stuck, TaskEdits  # noqa: E402

SIZES = {1200: 1500, 400: 2400}
LIGHT, DARK = 1, 0  # as Chromium numbers them
NAMES = {LIGHT: "light", DARK: "dark"}
SHOWN = {
    ("report-verification-loop", 1200, LIGHT),
    ("report-verification-loop", 1200, DARK),
    ("report-verification-loop", 400, LIGHT),
    ("report-forced", 1200, DARK),
    ("insights", 1200, LIGHT),
}
FILE = "app.py"
FILES = {
    FILE: 'def main() -> int:\n    """The answer."""\n    return 1\n',
    "check.py": "import app\n\nassert app.main() != 3, f'main() returns {app.main()}'\nprint('1 passed')\n",
    "README.md": "# A project\n",
}
HALF = 'def half(value: int) -> int:\n    """Half the value, rounded down."""\n    return value // 2\n'
DOUBLE = 'def double{n}(value: int) -> int:\n    """Twice the value."""\n    return 2 * value\n'
TRIPLE = 'def triple{n}(value: int) -> int:\n    """Three times the value."""\n    return 3 * value\n'


class Story:
    """A piece of work in rounds: `versions` of one file, the rounds that fail, what review finds in which round.

    With `careless` the first claim names a line that did not change.
    """

    intent = "MODIFY"

    def __init__(
        self,
        root: Path,
        query: str,
        flags: Mapping[str, bool | str],
        versions: Sequence[str],
        *,
        failing: Sequence[int] = (),
        problems: Sequence[str] = (),
        careless: bool = False,
    ) -> None:
        self.query, self.flags = query, flags
        self.words, self.symbol, self.files = ("main",), "main", (FILE,)
        self._file = root / FILE
        self._versions, self._failing, self._problems = versions, failing, problems
        self._careless = careless
        self._round = 0
        self._lines = ""

    def tasks(self, _response: Fields) -> list[Fields]:
        """One task a round."""
        item = {"item": f"{FILE} says so", "status": "pending"}
        number = self._round + 1
        return [{"id": f"t{number}", "description": self.query, "status": "pending", "checklist": [item]}]

    def implement(self, task: Fields) -> TaskEdits:
        """The next version, and the lines in which it differs."""
        self._round = int(task["id"][1:])
        before, after = self._file.read_text(encoding="utf-8"), self._versions[self._round - 1]
        blocks = difflib.SequenceMatcher(None, before.splitlines(), after.splitlines()).get_opcodes()
        lines = [number for kind, _, _, low, high in blocks if kind != "equal" for number in range(low + 1, high + 1)]
        span = f"{lines[0]}-{lines[-1]}" if lines[1:] else str(*lines)
        self._lines = f"{FILE}:{span}" if lines else self._lines
        claimed, self._careless = (f"{FILE}:1" if self._careless else self._lines), False
        return TaskEdits((Edit(FILE, before, after),), dict.fromkeys(task["checklist"], claimed))

    def passed(self) -> bool:
        """What verification shows in this round."""
        return self._round not in self._failing

    def issues(self) -> list[str]:
        """What review finds in this round."""
        return [*self._problems[self._round - 1 : self._round]]


def stories(root: Path) -> dict[str, Story]:
    """The sessions by the name of their picture; each begins where the one before ended."""
    halved = FILES[FILE] + "\n\n" + HALF
    two, three = halved.replace("return 1", "return 2"), halved.replace("return 1", "return 3")
    doubled = [two + "\n\n" + DOUBLE.format(n="_1"), two + "\n\n" + DOUBLE.format(n="")]
    tripled = [doubled[1] + "\n\n" + TRIPLE.format(n=n) for n in ("_1", "_2", "_3")]
    four, five = (tripled[-1].replace("return 2\n\n", f"return {n}\n\n") for n in (4, 5))
    vague = [f"{FILE}: {name} needs a better name" for name in ("double_1", "triple_1", "triple_2", "triple_3")]
    return {
        "report-proven": Story(root, "Add a halving helper to app\n\nIt rounds down.", {}, [halved]),
        "report-verification-loop": Story(
            root, "Make main return two", {"gate_level": "full"}, [three, two], failing=[1], careless=True
        ),
        "report-quality-loop": Story(root, "Add a doubling helper to app", {}, doubled, problems=vague[:1]),
        "report-forced": Story(root, "Add a tripling helper to app", {}, tripled, problems=vague[1:]),
        "report-given-up": Story(root, "Make main return four", {"fast": True}, [four]),
        "report-interrupted": Story(root, "Make main return five", {}, [five]),
    }


class Gone(Exception):
    """The client is."""


def main() -> None:
    """Lead the sessions, write the pages, take the pictures."""
    given = Path(sys.argv[1]).resolve() if len(sys.argv) > 1 else None
    out = given or ROOT / "docs" / "pictures"
    out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        os.environ |= ENVIRONMENT | {"XDG_STATE_HOME": f"{folder}/state"}
        root = repository(Path(folder) / "shop", FILES)
        assert init.main([str(root), "--no-proof", "--no-index", "--yes"]) == 0
        _let_it_verify(root)
        pages = Path(folder)
        for name, story in stories(root).items():
            _lead(name, story, root)
            _command("report", "--project", str(root), "--out", str(pages / f"{name}.html"))
        _command("insights", "--project", str(root), "--html", "--out", str(pages / "insights.html"))
        for page in sorted(pages.glob("*.html")):
            for size, (scheme, name) in itertools.product(SIZES, NAMES.items()):
                if given or (page.stem, size, scheme) in SHOWN:
                    _picture(page, out / f"{page.stem}-{size}-{name}.png", scheme, size)
            if given:
                shutil.copy(page, out)


def _lead(name: str, story: Story, root: Path) -> None:
    """Lead a session to its end, or to where the client goes away."""

    def look(step: SubmitStep) -> None:
        """Go away in the middle of the implementation."""
        if name in {"report-given-up", "report-interrupted"} and step.next == "POST_IMPL_VERIFY":
            raise Gone

    with contextlib.suppress(Stuck) if name in {"report-given-up", "report-interrupted"} else contextlib.nullcontext():
        last = run_session(story, root, on_step=look).responses[-1]
        assert last["phase"] == "SESSION_COMPLETE", last
    if name == "report-given-up":
        _command("abandon", "--project", str(root), "--yes")


def _let_it_verify(root: Path) -> None:
    config = root / ".code-intel" / "config.json"
    text = config.read_text(encoding="utf-8")
    assert '"verify_commands": []' in text
    config.write_text(text.replace('"verify_commands": []', '"verify_commands": [["python3", "check.py"]]'))
    subprocess.run(["git", "commit", "-qam", "Verify"], cwd=root, check=True)
    assert trust.main(["--project", str(root), "--yes"]) == 0


def _command(*words: str) -> None:
    subprocess.run([sys.executable, "-m", "code_intel_server", *words], check=True)


def _picture(page: Path, out: Path, scheme: int, width: int) -> None:
    """In a frame, because the window of a browser cannot be as narrow as a telephone."""
    browser = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))))
    frame = page.with_name("frame.htm")
    frame.write_text(
        f"<style>* {{margin: 0; border: 0}}</style><iframe src={page.name} width={width} height={SIZES[width]}>"
    )
    looks = [f"--blink-settings=preferredColorScheme={scheme}", "--hide-scrollbars"]
    size = f"--window-size={max(width, 500)},{SIZES[width]}"
    command = [browser, "--headless", "--no-sandbox", "--disable-gpu", "--allow-file-access-from-files", *looks, size]
    subprocess.run([*command, f"--screenshot={out}", frame.as_uri()], check=True, capture_output=True, timeout=120)
    with contextlib.suppress(ImportError):
        from PIL import Image

        taken = Image.open(out).convert("RGB").crop((0, 0, width, SIZES[width]))
        taken.quantize(128).save(out, optimize=True)


if __name__ == "__main__":
    main()
