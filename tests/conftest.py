"""What holds for all tests."""

from hypothesis import settings

# How long one example takes says how busy the machine is; pytest's own time limit finds what hangs.
settings.register_profile("any machine", deadline=None)
settings.load_profile("any machine")
