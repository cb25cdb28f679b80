"""People are told of their runs: by a command, by a webhook, each thing once."""

import json
import os
import sys
import threading
import time
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from tests.screen.watched_runs import seen

from rabaska.domain.runs import RunState
from rabaska.errors import CommandFailed, SettingsError
from rabaska.records.home import Home
from rabaska.records.notified import Notified
from rabaska.remote import tell
from rabaska.settings.own_settings import own_notify
from rabaska.steps.notify import notifier


class Hook:
    """What was posted, and what is answered."""

    def __init__(self):
        self.posts, self.answer, self.location = [], 200, ""
        hook = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self):
                length = int(self.headers["Content-Length"])
                hook.posts.append((self.path, dict(self.headers), self.rfile.read(length).decode()))
                self.send_response(hook.answer)
                if hook.location:
                    self.send_header("Location", hook.location)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *words):
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.address = f"http://127.0.0.1:{self.server.server_address[1]}"
        self._thread = threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True)
        self._thread.start()

    def end(self):
        self.server.shutdown()
        self._thread.join()
        self.server.server_close()


@pytest.fixture
def hook():
    found = Hook()
    yield found
    found.end()


def writes_settings(laptop, text, mode=0o600):
    laptop.user.home.mkdir(mode=0o700, exist_ok=True)
    file = laptop.user.home / "settings.toml"
    file.write_text(text)
    file.chmod(mode)
    return file


def test_a_webhook_is_told_once_however_often_somebody_looks(laptop, hook):
    writes_settings(laptop, f'[notify]\nwebhook = "{hook.address}/topic"\n')

    run = laptop.types("run", "--quiet", draws=["0001"])
    laptop.types("wait", run)
    laptop.types("status", run)
    laptop.types("watch", run, "--plain")

    assert [(path, body) for path, _, body in hook.posts] == [
        ("/topic", f"{run} on here: finished")
    ]
    assert hook.posts[0][1]["Title"] == f"{run} on here: finished"


def test_a_command_gets_the_text_without_a_shell(laptop, tmp_path):
    written = tmp_path / "told.json"
    program = tmp_path / "tell.py"
    program.write_text(
        "import json, os, sys\n"
        f"told = [sys.argv[1:], sys.stdin.read(), os.environ['RABASKA_EVENT']]\n"
        f"json.dump(told, open({str(written)!r}, 'w'))\n"
    )
    words = json.dumps([sys.executable, str(program), "{title}; touch x", "{text}"])
    writes_settings(laptop, f"[notify]\ncommand = {words}\n")
    laptop.says("$(id)", command="false")

    run = laptop.types("run", "--quiet", "--no-doctor", draws=["0002"])
    laptop.types("wait", run, both=True)

    arguments, text, event = json.loads(written.read_text())
    assert arguments[0] == f"{run} on here: failed; touch x"
    assert text.startswith(f"{run} on here: failed\n")
    assert event == "fails"


@pytest.fixture
def told(tmp_path, hook):
    """A function that shows a run to a notifier, and gives back its complaints."""
    home = Home(tmp_path / "home")
    home.folder.mkdir(mode=0o700)
    settings = home.folder / "settings.toml"
    settings.write_text(f'[notify]\nwebhook = "{hook.address}/secret-topic"\n')
    settings.chmod(0o600)

    def show(made, *, ago=0.0):
        complaints = []
        teller = notifier(home)
        teller.complain = complaints.append
        run = replace(made.run, jobs=(replace(made.run.jobs[-1], ended=made.run.now - ago),))
        teller(made.record, run, made.curves, made.vitals)
        return complaints

    return show


def test_what_ended_before_anybody_asked_is_told_to_nobody(told, hook):
    told(seen(state=RunState.FINISHED), ago=60)
    assert hook.posts == []

    told(seen(name="dogs-0001", state=RunState.FINISHED))
    assert [body for _, _, body in hook.posts] == ["dogs-0001 on campus: finished\nloss 0.0187"]


def test_a_project_says_what_is_told_of_its_runs(told, hook, tmp_path):
    (tmp_path / "rabaska.toml").write_text('command = "x"\n[notify]\nwhen = ["fails"]\n')
    made = seen(state=RunState.FINISHED)

    told(replace(made, record=replace(made.record, project=str(tmp_path))))

    assert hook.posts == []


def test_a_webhook_that_fails_is_said_without_its_address(told, hook):
    hook.answer = 500

    assert told(seen(state=RunState.FAILED)) == [
        "the webhook at 127.0.0.1 was not told: it answered 500 Internal Server Error"
    ]
    assert told(seen(state=RunState.FAILED)) == []  # for the next minutes


def test_an_address_that_others_can_read_is_not_used(tmp_path):
    (tmp_path / "settings.toml").write_text('[notify]\nwebhook = "https://ntfy.sh/x"\n')
    (tmp_path / "settings.toml").chmod(0o644)

    with pytest.raises(SettingsError, match="others may read"):
        notifier(Home(tmp_path))


def test_a_mistake_in_the_own_settings_stops_no_command(laptop):
    writes_settings(laptop, "[notify]\nwebhok = 'x'")
    laptop.types("run", "--quiet", draws=["0007"])

    assert "did you mean `webhook`?" in laptop.types("status", both=True)


def test_an_address_in_a_project_is_refused_with_where_it_belongs(laptop):
    settings = laptop.project / "rabaska.toml"
    settings.write_text(settings.read_text() + '[notify]\nwebhook = "https://ntfy.sh/x"\n')

    with pytest.raises(SettingsError) as refused:
        laptop.types("run", "--quiet")

    assert "settings.toml" in str(refused.value)


def test_the_mail_of_notify_is_the_mail_of_the_job(laptop):
    settings = laptop.project / "rabaska.toml"
    settings.write_text(settings.read_text() + '[notify]\nmail = "ada@uni.example"\n')

    assert "this computer sends no mail" in laptop.types("run", "--dry-run", both=True)


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("[notify]\nwebhok = 'x'", "webhok"),
        ("[notify]\nwebhook = 'ftp://x/y'", "https://"),
        ("[notify]\nwhen = ['crash']", "crash"),
        ("[notify]\nstalled_after = 'soon'", "soon"),
        ("[notify", "TOML"),
    ],
)
def test_mistakes_in_the_own_settings_are_named(tmp_path, text, wrong):
    (tmp_path / "settings.toml").write_text(text)
    os.chmod(tmp_path / "settings.toml", 0o600)

    with pytest.raises(SettingsError) as refused:
        own_notify(tmp_path)

    assert wrong in str(refused.value)


def test_forms_of_what_is_sent(hook):
    for form in ("slack", "discord", "matrix", "text"):
        tell.by_webhook(hook.address, "Été\nx", "body", form=form, token="t0k")

    bodies = [body for _, _, body in hook.posts]
    assert json.loads(bodies[0]) == {"text": "Été\nx\nbody"}
    assert json.loads(bodies[1]) == {"content": "Été\nx\nbody"}
    assert json.loads(bodies[2]) == {"msgtype": "m.text", "body": "Été\nx\nbody"}
    assert bodies[3] == "Été\nx\nbody"
    assert hook.posts[3][1]["Title"] == "?t? x"
    assert all(headers["Authorization"] == "Bearer t0k" for _, headers, _ in hook.posts)


def test_a_redirection_does_not_get_the_token(hook):
    hook.answer, hook.location = 302, f"{hook.address}/elsewhere"

    with pytest.raises(CommandFailed):
        tell.by_webhook(hook.address, "title", "text", token="t0k")

    assert [path for path, _, _ in hook.posts] == ["/"]


def test_a_command_that_fails_or_is_missing_is_named():
    with pytest.raises(CommandFailed, match="failed"):
        tell.by_command(["false"], "title", "text", {})


def test_two_that_want_to_tell_the_same_are_one(tmp_path):
    first, second = Notified(tmp_path / "notified"), Notified(tmp_path / "notified")

    assert [first.claim("a"), second.claim("a")] == [True, False]
    first.sent("a")
    assert not second.claim("a")


def test_what_could_not_be_told_is_tried_again_later(tmp_path):
    notified = Notified(tmp_path)

    assert notified.claim("a")
    past = time.time() - 1000
    os.utime(tmp_path / "a", (past, past))
    assert notified.claim("a")
