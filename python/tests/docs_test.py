"""The examples of every docstring run as they stand."""

from __future__ import annotations

import doctest

import pytest

import ropegrad.numpy


@pytest.mark.parametrize("name", ropegrad.numpy.__all__)
def test_example(name: str) -> None:
    function = getattr(ropegrad.numpy, name)
    (test,) = doctest.DocTestFinder().find(function, name, globs={})
    results = doctest.DocTestRunner().run(test)
    assert results.attempted > 0
    assert results.failed == 0
