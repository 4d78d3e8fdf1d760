"""Settings shared by tests of the population."""

import pytest


@pytest.fixture(scope="module", autouse=True)
def few_populations():
    """Two parts of a long range instead of six, which is quicker."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("unsum.population.stages.MAX_GROUPS", 2)
        yield
