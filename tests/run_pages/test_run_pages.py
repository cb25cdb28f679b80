"""The pages about runs: what they show, live and from what was last seen."""

import os
import shutil
import time
from dataclasses import replace

from tests.node.made_runs import begin_job, end_job

from rabaska.records import run_index


def test_the_list_shows_every_run_and_chooses_among_them(desk):
    desk.add("cats-7f3a", tags=("paper",), note="first try")
    desk.add("dogs-1234")
    browser = desk.opens()

    everything, tagged, words = (
        browser.get(address).text
        for address in ("/", "/part/runs?filter=tag%3Dpaper", "/part/runs?filter=dogs")
    )

    assert "/run/cats-7f3a" in everything
    assert everything.index("/run/dogs-1234") < everything.index("/run/cats-7f3a")  # newest first
    assert "#paper" in everything
    assert ("cats-7f3a" in tagged, "dogs-1234" in tagged) == (True, False)
    assert ("cats-7f3a" in words, "dogs-1234" in words) == (False, True)
    by_name = browser.get("/part/runs?sort=name").text
    assert by_name.index("cats-7f3a") < by_name.index("dogs-1234")


def test_a_run_that_is_submitted_meanwhile_is_in_the_list_at_once(desk):
    browser = desk.opens()
    before = desk.shown.version
    desk.add("dogs-1234")

    assert "dogs-1234" in browser.get("/part/runs").text
    assert desk.shown.version > before


def test_a_run_that_is_resumed_by_another_command_is_asked_after_at_once(desk):
    run, record = desk.add()
    end_job(run, 1, how="out of memory", exit_code=1)
    browser = desk.opens()
    desk.shown.start()
    try:
        _until(lambda: desk.shown.find("cats-7f3a").status.state.over)
        time.sleep(1)  # until its cluster was asked, and will not be for half a minute

        begin_job(run)
        run_index.remember(desk.home.runs, replace(record, job_id="2"))
        browser.get("/part/run/cats-7f3a/head")

        _until(lambda: not desk.shown.find("cats-7f3a").status.state.over)
    finally:
        desk.shown.stop()


def _until(found, seconds=20.0):
    end = time.monotonic() + seconds
    while not found():
        assert time.monotonic() < end
        time.sleep(0.1)


def test_a_run_has_its_state_its_jobs_its_curves_and_its_buttons(desk):
    run, _ = desk.add()
    desk.tells(run, "train/loss", [2.0, 1.0])
    desk.tells(run, "val/loss", [2.5, 1.5])
    browser = desk.opens()

    page = browser.get("/run/cats-7f3a").text

    assert "running" in page
    charts = browser.get("/part/run/cats-7f3a/charts").text
    assert 'data-title="loss"' in charts
    assert "train/loss" in charts
    for button in ("cancel", "resume", "fetch"):
        assert f'data-do="{button}"' in page
    assert 'data-do="resume" data-run="cats-7f3a" disabled' in page


def test_curves_are_thinned_and_asked_for_again_at_a_zoom(desk):
    run, _ = desk.add()
    values = [1.0] * 5000
    values[2500] = 99.0
    desk.tells(run, "loss", values)
    browser = desk.opens()
    address = "/data/series?run=cats-7f3a&name=loss&points=100"

    (all_of_it,) = browser.get(address).json()["curves"]
    (part,) = browser.get(f"{address}&low=1000&high=1050").json()["curves"]

    assert all_of_it["points"] == 5000
    assert len(all_of_it["x"]) <= 110
    assert max(all_of_it["y"]) == 99.0
    assert part["x"][0] in (999, 1000)
    assert part["x"][-1] in (1050, 1051)
    assert part["during"] == [2000.0, 2050.0]


def test_what_is_no_number_is_a_gap(desk):
    run, _ = desk.add()
    desk.tells(run, "loss", [1.0, float("nan"), float("inf"), 2.0])

    (curve,) = desk.opens().get("/data/series?run=cats-7f3a&name=loss").json()["curves"]

    assert curve["y"] == [1.0, None, None, 2.0]


def test_odd_questions_for_curves_are_answered_with_what_there_is(desk):
    run, _ = desk.add()
    desk.tells(run, "loss", [1.0, 2.0])
    browser = desk.opens()

    for query in ("low=x&high=nan", "points=-5", "points=1e99", "axis=elsewhere", "low=9&high=1"):
        answer = browser.get(f"/data/series?run=cats-7f3a&name=loss&name=none&{query}")
        assert answer.status_code == 200, query
        assert len(answer.json()["curves"]) == 1


def test_the_log_can_be_searched(desk):
    desk.add(log="epoch 1\nloss 0.5\n10%\r100%\nepoch 2\n")
    browser = desk.opens()

    all_of_it = browser.get("/part/run/cats-7f3a/log").text
    found = browser.get("/part/run/cats-7f3a/log?search=EPOCH&job=1").text

    assert "loss 0.5" in all_of_it
    assert "\n100%" in all_of_it
    assert "10%\r" not in all_of_it
    assert "loss" not in found
    assert '<span class="dim">4 </span>epoch 2' in found


def test_what_is_no_text_does_not_end_the_search_in_a_log(desk):
    run, _ = desk.add()
    with open(run.log(1), "wb") as file:
        file.write(b"\x00\xff\xfe binary\nneedle\xff here\n")
    browser = desk.opens()

    assert "needle" in browser.get("/part/run/cats-7f3a/log?search=NEEDLE").text
    assert "no line contains it" in browser.get("/part/run/cats-7f3a/log?search=hay").text


def test_a_log_of_ten_gigabytes_is_shown_and_its_end_searched(desk):
    run, _ = desk.add()
    with open(run.log(1), "wb") as file:
        file.truncate(10 << 30)
        file.seek(0, 2)
        file.write(b"\nneedle here\nthe end\n")
    browser = desk.opens()

    assert "the end" in browser.get("/part/run/cats-7f3a/log").text
    assert "needle here" in browser.get("/part/run/cats-7f3a/log?search=needle").text


def test_checkpoints_have_their_age_and_whether_they_are_valid(desk):
    run, _ = desk.add(patterns=["*.pt"])
    os.makedirs(f"{run.carried(1)}/output", exist_ok=True)
    for name, content in (("good.pt", b"\x80\x02}q\x00."), ("torn.pt", b"")):
        with open(f"{run.carried(1)}/output/{name}", "wb") as file:
            file.write(content)

    page = desk.opens().get("/part/run/cats-7f3a/checkpoints").text

    assert "output/good.pt" in page
    assert "no: it is empty" in page
    assert '<span class="good">yes</span>' in page


def test_a_cluster_that_is_cut_off_is_shown_as_last_seen_and_says_how_old_that_is(desk):
    run, _ = desk.add(log="epoch 1\n")
    desk.tells(run, "loss", [2.0, 1.0])
    browser = desk.opens()
    for part in ("log", "checkpoints", "plan"):
        browser.get(f"/part/run/cats-7f3a/{part}")

    desk.is_cut = True
    browser = desk.opens()  # also after a new start
    page = browser.get("/run/cats-7f3a").text

    assert "away does not answer" in page
    assert 'As last seen <time data-at="' in page
    assert "running" in page
    assert "epoch 1" in browser.get("/part/run/cats-7f3a/log").text
    assert "away does not answer" in browser.get("/part/run/cats-7f3a/log").text
    assert "snapshot" in browser.get("/part/run/cats-7f3a/plan").text
    assert browser.get("/data/series?run=cats-7f3a&name=loss").json()["curves"][0]["points"] == 2
    assert "does not answer" in browser.get("/part/runs").text


def test_a_run_that_was_never_heard_of_has_a_page(desk):
    desk.add()
    desk.is_cut = True

    page = desk.opens().get("/run/cats-7f3a").text

    assert "unknown" in page
    assert "does not answer" in page


def test_a_run_that_is_deleted_while_it_is_shown_is_gone_and_the_rest_goes_on(desk):
    run, record = desk.add()
    desk.add("dogs-1234")
    browser = desk.opens()
    shutil.rmtree(run.path)
    desk.asks()

    assert "gone" in browser.get("/part/run/cats-7f3a/head").text
    run_index.forget(desk.home.runs, record)
    desk.asks()
    assert browser.get("/part/run/cats-7f3a/head").status_code == 404
    assert "deleted, forgotten" in browser.get("/run/cats-7f3a").text
    assert "cats-7f3a" not in browser.get("/part/runs").text
    assert "dogs-1234" in browser.get("/part/runs").text


def test_two_runs_of_one_name_have_two_pages(desk, tmp_path):
    _, record = desk.add()
    other = run_index.RunRecord(record.name, "away", str(tmp_path / "elsewhere"), "", 5.0)
    run_index.adopt(desk.home.runs, other)
    browser = desk.opens()

    keys = [desk.shown.key(live.record) for live in desk.shown.runs()]

    assert len(set(keys)) == 2
    assert [browser.get(f"/run/{key}").status_code for key in keys] == [200, 200]


def test_runs_are_compared_by_what_differs_and_by_their_curves(desk):
    for name, rate in (("cats-7f3a", "0.1"), ("dogs-1234", "0.2")):
        run, _ = desk.add(name, command=["python", "train.py", "--lr", rate])
        desk.tells(run, "loss", [2.0, 1.0])
    browser = desk.opens()

    page = browser.get("/compare?run=cats-7f3a&run=dogs-1234").text

    assert "--lr 0.1" in page
    assert "--lr 0.2" in page
    assert 'data-title="loss"' in page
    assert (
        len(browser.get("/data/series?run=cats-7f3a&run=dogs-1234&name=loss").json()["curves"]) == 2
    )


def test_a_note_is_written_and_shown(desk):
    desk.add(note="old", tags=("old",))
    browser = desk.opens()

    said = browser.post("/do/note/cats-7f3a", data={"note": "new words", "tags": "#paper, b"})

    assert said.json() == {"said": ["noted on cats-7f3a"]}
    assert "new words #paper #b" in browser.get("/part/runs").text


def test_a_button_that_cannot_do_it_says_why_and_what_to_do(desk):
    desk.add()
    browser = desk.opens()
    desk.is_cut = True

    answer = browser.post("/do/cancel/cats-7f3a")

    assert answer.status_code == 409
    assert answer.json()["problem"] == "away does not answer"
    assert browser.post("/do/nothing/cats-7f3a").status_code == 404
    assert browser.post("/do/cancel/nobody").status_code == 404
    assert browser.get("/do/cancel/cats-7f3a").status_code in (404, 405)


def test_cancel_stops_the_run(desk):
    run, _ = desk.add()
    browser = desk.opens()

    answer = browser.post("/do/cancel/cats-7f3a")

    assert answer.status_code == 200, answer.text
    assert os.path.exists(f"{run.path}/STOP")


def test_a_cluster_has_its_jobs_and_its_storage_also_when_it_is_cut_off(desk):
    desk.add()
    browser = desk.opens()
    first = browser.get("/part/storage/away").text
    desk.is_cut = True

    again = browser.get("/part/storage/away").text

    assert "cats-7f3a" in browser.get("/cluster/away").text
    assert "/cluster/away" in browser.get("/clusters").text
    assert "free on its file system" in first
    assert "free on its file system" in again
    assert "does not answer" in again
    assert browser.get("/cluster/nowhere").status_code == 404


def test_the_report_of_a_run_is_a_file_to_keep(desk):
    desk.add()

    answer = desk.opens().get("/report/cats-7f3a")

    assert answer.headers["content-disposition"] == 'attachment; filename="cats-7f3a.html"'
    assert "What was run" in answer.text


def test_files_of_the_program_itself_are_not_served(desk):
    browser = desk.opens()

    for path in ("/static/../guard.py", "/static/%2e%2e/guard.py", "/static//etc/passwd"):
        assert browser.get(path).status_code == 404
    assert browser.get("/static/uplot/LICENSE").status_code == 200
