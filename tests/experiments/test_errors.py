"""Two errors, and what they do not let a large series hide."""

import numpy as np
import pytest

from unsum.experiments.errors import measure


def test_errors_by_hand():
    truth = np.array([[1.0, 1.0], [100.0, 300.0]])
    values = np.array([[2.0, 1.0], [100.0, 300.0]])
    covered = np.array([[False, True], [True, True]])
    errors = measure(truth, values, covered)
    assert errors.paper == pytest.approx(1 / np.sqrt(2 + 100**2 + 300**2))
    assert errors.normalised == pytest.approx(1 / np.sqrt(2 + 0.5**2 + 1.5**2))
    assert errors.paper_covered == errors.normalised_covered == 0


def test_errors_of_zeros_and_of_huge_values():
    zero = np.zeros((1, 3))
    everywhere = np.ones((1, 3), bool)
    assert measure(zero, zero, everywhere).paper == 0
    assert measure(zero, zero + 1, everywhere).normalised == 1
    huge = np.array([[1e300, 2e300, 3e300]])
    assert measure(huge, huge * 1.1, everywhere).paper == pytest.approx(0.1)
