"""Honest but awkward sessions: none may be blocked, and every refusal names a way out that works."""
