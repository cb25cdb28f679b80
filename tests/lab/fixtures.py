"""The fixtures that boot labs. A conftest.py that wants them imports them from here."""

import os
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from tests.needs.packages import ACCOUNTING, LAB

from .cluster import Lab
from .install import unavailable
from .site import Site


def skip_or_fail(reason: str | None) -> None:
    """Skip the test when there is a reason; in CI fail it, for nobody reads what was skipped."""
    if reason and os.environ.get("CI") == "true":
        pytest.fail(f"in CI the lab may not be missing: {reason}", pytrace=False)
    if reason:
        pytest.skip(reason)


@pytest.fixture(scope="session")
def lab() -> Iterator[Lab]:
    """A lab with nothing special about it, shared by all tests: leave it as you found it."""
    skip_or_fail(unavailable())
    with Lab() as running:
        yield running


@pytest.fixture
def make_lab() -> Iterator[Callable[..., Lab]]:
    """Boots a lab that differs from the usual one, `make_lab(warp=60)`; it ends with the test."""
    labs: list[Lab] = []

    def boot(**differences: Any) -> Lab:
        site = Site(**differences)
        skip_or_fail(unavailable(LAB | (ACCOUNTING if site.accounting else {})))
        labs.append(Lab(site))
        return labs[-1]

    yield boot
    for running in labs:
        running.end()
