"""How the tests of laws search for inputs: the same on every run, with no time limit that a busy machine breaks."""

from hypothesis import settings

settings.register_profile("laws", deadline=None, derandomize=True)
settings.load_profile("laws")
