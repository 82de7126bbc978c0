"""`code-intel-server <command>`: imports only the command asked for, so that `hook` and `status` start in under 100 ms."""

import sys

COMMANDS = {
    "init": "set a project up: scaffold, clients, index, proof",
    "doctor": "check the installation and a project's set-up, with a remedy for each finding",
    "status": "where the session of a project stands",
    "report": "one session as an HTML page: course, loops, tasks, evidence, diff",
    "insights": "what fails most and where time goes, over all sessions",
    "find": "look code up: text, def, refs, symbols, impact",
    "sync": "bring the index up to date",
    "resume": "what an interrupted session needs to go on",
    "abandon": "give a session up; its work is kept recoverably",
    "trash": "list, restore or purge what sessions have put away",
    "trust": "let the project's verify commands run",
    "verify-commit": "run a commit's tests before and after it, test by test",
    "waive": "take a verify command out of the running session's proof",
    "hook": "answer a client's hook event (used by the clients)",
    "serve": "run the MCP server over stdin and stdout (used by the clients)",
}


def main() -> int:
    """Run the command named on the command line; its exit status."""
    arguments = sys.argv[1:]
    if not arguments or arguments[0] in {"-h", "--help", "help"}:
        _usage()
        return 0
    if arguments[0] in {"-V", "--version", "version"}:
        from code_intel_server import __version__

        print(__version__)
        return 0
    if arguments[0] not in COMMANDS:
        return _unknown(arguments[0])
    try:
        # `__import__`: importlib and what it loads cost half a millisecond of the hook's time.
        command = __import__(f"code_intel_server.cli.{arguments[0].replace('-', '_')}", fromlist=["main"])
        status: int = command.main(arguments[1:])
    except KeyboardInterrupt:
        print("\ncode-intel-server: interrupted", file=sys.stderr)
        return 130
    return status


def _unknown(word: str) -> int:
    from code_intel_server.cli.console import did_you_mean, show, show_anything
    from code_intel_server.common.printable import printable

    show_anything()
    show(f"code-intel-server: no command '{printable(word)}'{did_you_mean(word, COMMANDS)}", error=True)
    show("code-intel-server --help lists them all", error=True)
    return 2


def _usage() -> None:
    from code_intel_server.cli.console import show

    show("usage: code-intel-server <command> [options]\n\ncommands:")
    for name, what in COMMANDS.items():
        show(f"  {name:<13} {what}", indent=16)
    show("\ncode-intel-server <command> --help explains one.")


if __name__ == "__main__":
    sys.exit(main())
