"""Receipts: which tests passed before a change and pass after it, seen by running them in clean checkouts.

`Receipt` and `receipt()` compare the runs; see `compare` for what they are.
"""
