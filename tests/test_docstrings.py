"""Every example in a docstring runs and prints what it says."""

import doctest
import importlib
import pkgutil

import pytest

import discreet

MODULES = [module.name for module in pkgutil.walk_packages(discreet.__path__, "discreet.")]


@pytest.mark.parametrize("name", MODULES)
def test_docstring_examples(name: str) -> None:
    module = importlib.import_module(name)
    failed, _ = doctest.testmod(module, optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
    assert failed == 0


def test_the_accountant_has_examples() -> None:
    modules = [
        importlib.import_module(f"discreet.privacy.{name}") for name in ("constructors", "barker_chains")
    ]
    assert sum(len(test.examples) for m in modules for test in doctest.DocTestFinder().find(m)) >= 5
