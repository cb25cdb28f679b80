"""Damaged packs under sanitizers, in short; `make sanitize` does many more."""

import random

import pytest
import sanitized


@pytest.mark.slow
def test_no_damage_has_the_compiled_part_read_or_write_what_is_not_its_own():
    ended = sanitized.run(300, random.randrange(10**6))

    assert ended.returncode == 0, ended.stdout + ended.stderr
