"""Hosts that cannot be one are refused before ssh is asked."""

import pytest

from rabaska.errors import WrongUse
from rabaska.journeys.clusters import add
from rabaska.records.home import Home


@pytest.mark.parametrize("host", ["", "-oProxyCommand=x", "a b", "\udcff\udcfe", "a\x1bb", "a\nb"])
def test_a_host_that_is_none_is_refused(tmp_path, host):
    with pytest.raises(WrongUse, match="is no host"):
        add("campus", host, Home(tmp_path))


def test_options_that_no_profile_can_hold_are_refused(tmp_path):
    with pytest.raises(WrongUse, match="is no option"):
        add("campus", "login", Home(tmp_path), options=("-F", "\udcff"))
