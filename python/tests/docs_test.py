"""The examples of every docstring and of the README run as they stand."""

from __future__ import annotations

import doctest
import re
from pathlib import Path

import pytest

import ropegrad.numpy


@pytest.mark.parametrize("name", ropegrad.numpy.__all__)
def test_example(name: str) -> None:
    function = getattr(ropegrad.numpy, name)
    (test,) = doctest.DocTestFinder().find(function, name, globs={})
    results = doctest.DocTestRunner().run(test)
    assert results.attempted > 0
    assert results.failed == 0


def test_readme(capsys: pytest.CaptureFixture[str]) -> None:
    text = (Path(__file__).parents[2] / "README.md").read_text()
    (example,) = (block for block in re.findall(r"```python\n(.*?)```", text, re.DOTALL) if "ropegrad.numpy" in block)
    exec(example, {})
    assert capsys.readouterr().out == "True\n"
