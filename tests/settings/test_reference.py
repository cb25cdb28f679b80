"""The reference page and the JSON Schema say what is accepted, and are up to date."""

import json
from pathlib import Path

from rabaska.settings import reference
from rabaska.settings.project_file import load
from rabaska.settings.project_tables import Settings
from rabaska.settings.reference import schema
from rabaska.settings.validation import inner_table, keys

DOCS = Path(__file__).parents[2] / "docs" / "reference"
AGAIN = "run `python -m rabaska.settings.reference docs/reference`"


def test_the_page_is_up_to_date():
    assert (DOCS / reference.PAGE).read_text("utf-8") == reference.page(), AGAIN


def test_the_schema_is_up_to_date():
    assert json.loads((DOCS / reference.SCHEMA).read_text("utf-8")) == schema(), AGAIN


def test_both_files_are_written(tmp_path):
    reference.write(tmp_path / "new")

    assert (tmp_path / "new" / reference.PAGE).read_text("utf-8") == reference.page()
    assert json.loads((tmp_path / "new" / reference.SCHEMA).read_text("utf-8")) == schema()


def test_the_example_on_the_page_is_accepted(write):
    folder = write(reference.EXAMPLE)

    project = load(folder, cluster="beluga")

    assert project.account == "def-prof"
    assert project.resources.gpu_model == "v100"


def test_every_key_has_a_meaning_on_the_page():
    inner = [inner_table(field.annotation) for field in Settings.model_fields.values()]
    for table in [Settings, *filter(None, inner)]:
        for name, field in table.model_fields.items():
            assert field.description, f"{table.__name__}.{name} has no description"


def test_the_schema_knows_every_key_and_refuses_others():
    made = schema()

    assert set(made["properties"]) == set(keys(Settings))
    assert made["additionalProperties"] is False
    assert made["required"] == ["command"]
    assert "as" in made["$defs"]["DataTable"]["properties"]
