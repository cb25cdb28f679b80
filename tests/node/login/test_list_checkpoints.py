"""The word that lists a run's checkpoints, each with whether it is valid."""

import json
import os

from tests.node.made_runs import begin_job, make_run

from rabaska.node.login import list_checkpoints


def save(run, name, content):
    os.makedirs(run.output(1), exist_ok=True)
    with open(os.path.join(run.output(1), name), "wb") as file:
        file.write(content)


def test_each_checkpoint_is_told_with_its_size_and_what_is_wrong_with_it(tmp_path, capsys):
    run = make_run(tmp_path, patterns=["*.pkl"])
    begin_job(run)
    save(run, "step-1.pkl", b"\x80\x02}q\x00.")
    save(run, "step-2.pkl", b"")

    assert list_checkpoints.main([run.path]) == 0

    newest, older = map(json.loads, capsys.readouterr().out.splitlines())
    assert (newest["path"], newest["problem"]) == ("output/step-2.pkl", "it is empty")
    assert (older["path"], older["size"], older["problem"]) == ("output/step-1.pkl", 6, "")


def test_a_run_that_has_not_begun_has_none_and_a_missing_one_is_an_error(tmp_path, capsys):
    run = make_run(tmp_path)

    assert list_checkpoints.main([run.path]) == 0
    assert list_checkpoints.main([str(tmp_path / "nothing")]) == 9
    assert capsys.readouterr().out == ""
