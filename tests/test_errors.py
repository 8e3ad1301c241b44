"""One table maps every error to an exit code and an HTTP status."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from evenhand import errors
from evenhand.errors import EvenhandError, exit_code, http_status


def tree(kind: type[EvenhandError]) -> Iterator[type[EvenhandError]]:
    yield kind
    for sub in kind.__subclasses__():
        yield from tree(sub)


@pytest.mark.parametrize("kind", list(tree(EvenhandError)), ids=lambda kind: kind.__name__)
def test_every_error_has_a_documented_code_and_a_fitting_status(kind: type[EvenhandError]) -> None:
    error = kind("x", "y") if kind is errors.MissingExtra else kind("x")
    of_client = isinstance(error, errors.ServiceError) and not error.retryable
    of_surroundings = (errors.InputError, errors.StoreError, errors.ClusterError)
    blames_caller = isinstance(error, of_surroundings) or (
        of_client and kind is not errors.ServiceError
    )
    assert (exit_code(error) == 2) == blames_caller
    assert exit_code(error) in (2, 3, 4, 5, 130)
    assert (exit_code(error) == 5) == (kind is errors.CapReached)
    assert 400 <= http_status(error) < 600


def test_kinds_are_distinct() -> None:
    kinds = [kind.kind for kind in tree(EvenhandError)]
    assert len(set(kinds)) == len(kinds)
