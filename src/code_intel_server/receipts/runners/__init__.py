"""Test runners: how each is made to say, while it runs, which test ended how.

`recognised()` names the runner that a verify command starts; every runner writes the same events.
"""
