"""Approvals: what the user allowed, kept out of reach of every repository, ended by the smallest edit."""

import json
import stat
from pathlib import Path

import pytest

from code_intel_server.errors import Rejected, Unavailable
from code_intel_server.workspace.project import trust
from code_intel_server.workspace.project.config import ConfigFile
from code_intel_server.workspace.project.trust import Approvals
from tests.e2e.driver import git, repository

SESSION = "20260201_123456"


@pytest.fixture
def approvals(tmp_path: Path) -> Approvals:
    """The approvals of a user who has given none yet."""
    return Approvals(tmp_path / "state")


def config(tmp_path: Path, text: str = '{"verify_commands": [["true"]]}') -> Path:
    """A configuration file."""
    path = tmp_path / "config.json"
    path.write_text(text)
    return path


def test_a_file_is_trusted_with_its_present_content_only(tmp_path: Path, approvals: Approvals) -> None:
    path = config(tmp_path)
    assert not approvals.trusted(path, ConfigFile.load(path).digest)
    digest = approvals.trust(path)
    assert digest == ConfigFile.load(path).digest
    assert approvals.trusted(path, digest)
    config(tmp_path, '{"verify_commands": [["false"]]}')
    assert not approvals.trusted(path, ConfigFile.load(path).digest)
    assert approvals.trusted(path, digest), "a session that read the trusted content may go on with it"


def test_contents_trusted_before_stay_so_for_those_who_change_branches(tmp_path: Path, approvals: Approvals) -> None:
    digests = [approvals.trust(config(tmp_path, f'{{"version": "{number}"}}')) for number in range(10)]
    again = Approvals(tmp_path / "state")
    assert [again.trusted(tmp_path / "config.json", digest) for digest in digests] == [False] * 2 + [True] * 8


def test_trust_is_for_the_real_path_and_not_for_a_copy(tmp_path: Path, approvals: Approvals) -> None:
    path = config(tmp_path)
    digest = approvals.trust(path)
    (tmp_path / "alias").symlink_to(".")
    assert approvals.trusted(tmp_path / "alias" / "config.json", digest)
    (tmp_path / "copy").mkdir()
    assert not approvals.trusted(config(tmp_path / "copy"), digest)


def test_revoked_trust_is_gone(tmp_path: Path, approvals: Approvals) -> None:
    path = config(tmp_path)
    digest = approvals.trust(path)
    assert approvals.revoke(path) is True
    assert not approvals.trusted(path, digest)
    assert approvals.revoke(path) is False


def test_no_digest_is_never_trusted(tmp_path: Path, approvals: Approvals) -> None:
    approvals.trust(config(tmp_path))
    assert not approvals.trusted(tmp_path / "config.json", "")
    with pytest.raises(FileNotFoundError):
        approvals.trust(tmp_path / "missing.json")


def test_everything_kept_is_for_the_user_alone(tmp_path: Path, approvals: Approvals) -> None:
    approvals.trust(config(tmp_path))
    approvals.waive(tmp_path, SESSION, ["pytest"], "flaky on this machine")
    for path in (tmp_path / "state").rglob("*"):
        assert stat.S_IMODE(path.stat().st_mode) == (0o700 if path.is_dir() else 0o600), path


@pytest.mark.parametrize(
    "forge",
    [
        lambda data: data.replace(b'\\"digests\\"', b'\\"Digests\\"'),
        lambda data: json.dumps({"mac": "0" * 64, "content": json.loads(data)["content"]}).encode(),
        lambda data: json.dumps({"content": json.loads(data)["content"]}).encode(),
        lambda data: data[:-1],
        lambda data: b"",
        lambda data: b"[]",
        lambda data: b'{"mac": 1, "content": 2}',
        lambda data: b'{"mac": "\xc3\xa9", "content": "{}"}',
        lambda data: b"[" * 100_000,
    ],
)
def test_a_record_that_this_user_did_not_sign_counts_for_nothing(
    tmp_path: Path, approvals: Approvals, forge: object
) -> None:
    assert callable(forge)
    digest = approvals.trust(config(tmp_path))
    (record,) = (tmp_path / "state" / "trust").iterdir()
    record.write_bytes(forge(record.read_bytes()))
    assert not Approvals(tmp_path / "state").trusted(tmp_path / "config.json", digest)


def test_a_record_cannot_be_renamed_into_another_or_brought_from_another_machine(
    tmp_path: Path, approvals: Approvals
) -> None:
    digest = approvals.trust(config(tmp_path))
    (record,) = (tmp_path / "state" / "trust").iterdir()
    (tmp_path / "other").mkdir()
    other = config(tmp_path / "other")
    record.rename(approvals._trust_file(other))
    assert not approvals.trusted(other, digest)
    elsewhere = Approvals(tmp_path / "elsewhere")
    elsewhere.trust(tmp_path / "config.json")
    approvals._trust_file(other).write_bytes(elsewhere._trust_file(tmp_path / "config.json").read_bytes())
    assert not approvals.trusted(tmp_path / "config.json", digest)


def test_a_waiver_is_for_one_command_of_one_session_of_one_project(tmp_path: Path, approvals: Approvals) -> None:
    approvals.waive(tmp_path, SESSION, ["pytest", "-q"], "  red before\nthis session ")
    (waiver,) = Approvals(tmp_path / "state").waivers(tmp_path, SESSION)
    assert (waiver.argv, waiver.reason) == (("pytest", "-q"), "red before this session")
    assert approvals.waivers(tmp_path, "20260201_123457") == ()
    assert approvals.waivers(tmp_path / "other", SESSION) == ()


def test_a_waiver_cannot_be_renamed_into_one_of_another_session(tmp_path: Path, approvals: Approvals) -> None:
    approvals.waive(tmp_path, SESSION, ["pytest"], "red before this session")
    approvals._waiver_file(tmp_path, SESSION).rename(approvals._waiver_file(tmp_path, "20260201_123457"))
    assert approvals.waivers(tmp_path, "20260201_123457") == ()


def test_waivers_add_up_and_a_second_reason_replaces_the_first(tmp_path: Path, approvals: Approvals) -> None:
    approvals.waive(tmp_path, SESSION, ["a"], "first reason given")
    approvals.waive(tmp_path, SESSION, ["b"], "another one entirely")
    approvals.waive(tmp_path, SESSION, ["a"], "second reason given")
    found = {waiver.argv: waiver.reason for waiver in approvals.waivers(tmp_path, SESSION)}
    assert found == {("a",): "second reason given", ("b",): "another one entirely"}
    approvals.forget(tmp_path, SESSION)
    assert approvals.waivers(tmp_path, SESSION) == ()
    approvals.forget(tmp_path, SESSION)


def test_a_waiver_needs_a_reason_and_a_real_session(tmp_path: Path, approvals: Approvals) -> None:
    with pytest.raises(Rejected, match="argument_invalid"):
        approvals.waive(tmp_path, SESSION, ["a"], " no ")
    with pytest.raises(Rejected, match="checkpoint_not_found"):
        approvals.waive(tmp_path, "../../x", ["a"], "a reason long enough")
    assert not (tmp_path / "state").exists()


def test_a_reason_cannot_steer_a_terminal(tmp_path: Path, approvals: Approvals) -> None:
    assert approvals.waive(tmp_path, SESSION, ["a"], "\x1b[2J because of it").reason == "\\x1b[2J because of it"


def test_waivers_of_sessions_that_died_do_not_pile_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trust, "_KEPT_WAIVER_FILES", 3)
    one = Approvals(tmp_path / "state")
    for number in range(8):
        one.waive(tmp_path, f"20260201_12345{number}", ["a"], "a reason long enough")
    assert len(list((tmp_path / "state" / "waivers").iterdir())) == 3
    assert one.waivers(tmp_path, "20260201_123457") != ()


def test_a_folder_that_cannot_be_written_is_told_and_grants_nothing(tmp_path: Path) -> None:
    (tmp_path / "state").write_text("a file in the way")
    one = Approvals(tmp_path / "state")
    path = config(tmp_path)
    with pytest.raises(Unavailable, match="state_unavailable"):
        one.trust(path)
    assert not one.trusted(path, ConfigFile.load(path).digest)


def test_the_worktrees_of_a_repository_share_trust_in_what_they_hold_alike(
    tmp_path: Path, approvals: Approvals
) -> None:
    root = repository(tmp_path / "main", {"sub/config.json": "{}"})
    git(root, "worktree", "add", "-q", "--detach", str(tmp_path / "second"))
    mine, second = root / "sub/config.json", tmp_path / "second/sub/config.json"
    digest = approvals.trust(second)
    assert approvals.trusted(mine, digest)
    git(root, "worktree", "add", "-q", "--detach", str(tmp_path / "third"))
    third = tmp_path / "third/sub/config.json"
    assert approvals.trusted(third, digest)
    third.write_text('{"version": "2"}')
    assert not approvals.trusted(third, ConfigFile.load(third).digest)
    assert approvals.revoke(mine)
    assert not approvals.trusted(second, digest)


def test_a_folder_that_only_claims_to_be_a_worktree_is_not_trusted(tmp_path: Path, approvals: Approvals) -> None:
    root = repository(tmp_path / "main", {"config.json": "{}"})
    git(root, "worktree", "add", "-q", "--detach", str(tmp_path / "second"))
    digest = approvals.trust(root / "config.json")
    (tmp_path / "claims").mkdir()
    for name in (".git", "config.json"):
        (tmp_path / "claims" / name).write_bytes((tmp_path / "second" / name).read_bytes())
    assert not approvals.trusted(tmp_path / "claims" / "config.json", digest)


def test_where_gits_folder_lies_elsewhere_the_main_worktrees_trust_is_that_of_the_linked_ones(
    tmp_path: Path, approvals: Approvals
) -> None:
    root = repository(tmp_path / "main", {"sub/config.json": "{}"})
    git(root, "init", "-q", "--separate-git-dir", str(tmp_path / "store"))
    git(root, "worktree", "add", "-q", "--detach", str(tmp_path / "second"))
    main, second = root / "sub/config.json", tmp_path / "second/sub/config.json"
    digest = approvals.trust(main)
    assert approvals.trusted(second, digest) and approvals.trusted(main, digest)
    (tmp_path / "claims/sub").mkdir(parents=True)
    (tmp_path / "claims/.git").write_bytes((root / ".git").read_bytes())
    claiming = tmp_path / "claims/sub/config.json"
    claiming.write_text("{}")
    assert not approvals.trusted(claiming, digest), "who only claims to be the main worktree asks in vain"
    assert approvals.revoke(main)
    assert not approvals.trusted(second, digest)
