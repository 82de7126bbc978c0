"""Test runners: how each is made to say, while it runs, which test ended how.

They are reached through the environment, not by what a command says, so that `npm test`, `make test` and `uv run pytest`
report as their runners do. Every runner writes lines of JSON to one file, which `events` reads.
"""
