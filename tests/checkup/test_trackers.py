"""W&B runs offline where nodes have no internet access, unless a program insists."""

import pytest
from small_projects import Small

from rabaska.checkup.check_network import checks
from rabaska.checkup.subject import read_subject
from rabaska.settings.profiles import load_cluster
from rabaska.settings.project_file import load

REQUIREMENTS = "torch==2.5.1\ntorchvision\nwandb\n"


@pytest.mark.parametrize(
    ("more", "told"), [("", 0), (", mode='offline'", 0), (", mode='online'", 1)]
)
def test_only_a_program_that_insists_is_warned_of(tmp_path, more, told):
    top = f"import wandb\nwandb.init(project='x'{more})"
    small = Small(on="sdumont", top=top, requirements=REQUIREMENTS, cluster='queue = "gdl"')
    subject = read_subject(load(small.write(tmp_path), cluster="sdumont"), load_cluster("sdumont"))

    found = [one for one in checks(subject) if one.id == "code.tracker"]

    assert len(found) == told
    assert all("rabaska fetch --sync" in one.fix for one in found)
