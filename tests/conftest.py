"""Settings shared by all tests: reproducible, and without a clock."""

from hypothesis import settings

from tests.browser import chromium, visit  # noqa: F401

settings.register_profile("unsum", deadline=None, derandomize=True, max_examples=60)
settings.load_profile("unsum")
