"""The page of concepts says what the code does."""

import re

from pages import REPOSITORY

from rabaska.node.checkpoints import order
from rabaska.node.job import program_command
from rabaska.node.record import chain_rule, run_folder

NODE = REPOSITORY / "src" / "rabaska" / "node"
CONCEPTS = (REPOSITORY / "docs" / "concepts.md").read_text("utf-8")


def one_line(text: str) -> str:
    return re.sub(r"\s+", " ", text)


def test_the_rule_that_chooses_a_checkpoint_stands_on_the_page_word_for_word():
    rule = re.search(r"^1\. .*?(?=\n\n)", order.__doc__ or "", re.MULTILINE | re.DOTALL)

    assert rule is not None
    assert one_line(rule[0]) in one_line(CONCEPTS)


def test_every_way_a_job_can_end_has_its_row():
    ends = (
        chain_rule.FINISHED,
        chain_rule.TIME_LIMIT,
        chain_rule.CRASHED,
        chain_rule.KILLED,
        chain_rule.CANCELLED,
        chain_rule.LOST,
        chain_rule.ASKED_TO_GO_ON,
        chain_rule.SUPERSEDED,
        chain_rule.STAGING_FAILED,
        chain_rule.NO_TIME_LEFT,
        chain_rule.DAMAGED_DATA,
    )

    for how in ends:
        assert f"\n| {how} | " in CONCEPTS


def test_the_chain_rule_names_what_a_job_is_blamed_for_and_how_patient_it_is():
    blamed = re.search(r"ended by its own fault \(([^)]*)\)", one_line(CONCEPTS))

    assert blamed is not None
    assert set(re.findall(r"`([^`]+)`", blamed[1])) == set(chain_rule.ITS_OWN_FAULT)
    assert chain_rule.PATIENCE == 3
    assert "give up when three jobs in a row saved nothing" in one_line(CONCEPTS)
    assert f"{chain_rule.GO_ON_EXIT_CODE} means" in CONCEPTS


def test_every_placeholder_and_variable_of_the_contract_is_on_the_page():
    places = program_command.Places({"cats": "/d"}, "/o", "/c", "/c/last.pt")
    told = program_command.environment(places, given={}, extra={})
    agents = "".join(path.read_text("utf-8") for path in NODE.rglob("*.py"))
    of_the_job = re.findall(r'"(RABASKA_(?:RUN|JOB|DEADLINE|LOCAL))": ', agents)

    assert len(set(of_the_job)) >= 3
    for name in [*told, *of_the_job]:
        assert f"`{name.replace('_CATS', '_<NAME>')}`" in CONCEPTS, name
    for placeholder in ("{data}", "{data.NAME}", "{output}", "{checkpoints}", "{checkpoint}"):
        assert f"| `{placeholder}` | " in CONCEPTS


def test_every_file_of_the_run_folder_is_on_the_page():
    listed = re.findall(r"^  ([\w./<>-]+)  ", run_folder.__doc__ or "", re.MULTILINE)

    assert {"run.json", "DONE", "STOP"} <= set(listed)
    for name in listed:
        assert f"\n  {name} " in CONCEPTS, name
