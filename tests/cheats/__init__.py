"""Attacks on the flow, one a test: each docstring says what stops it."""
