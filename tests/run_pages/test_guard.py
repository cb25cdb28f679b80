"""Who may use the pages: only the browser that was given the token, by the right address."""

import pytest
from starlette.testclient import TestClient

from rabaska.pages.guard import Guard

ADDRESS = "http://127.0.0.1:8642"


async def inner(scope, receive, send):
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b"secret"})


@pytest.fixture
def guard():
    return Guard(inner, port=8642)


def browser(guard, **headers):
    return TestClient(guard, base_url=ADDRESS, headers=headers, follow_redirects=False)


def let_in(guard, **headers):
    one = browser(guard, **headers)
    one.get(f"/?token={guard.token}")
    return one


def test_the_token_in_the_first_address_becomes_a_cookie_that_no_script_can_read(guard):
    answer = browser(guard).get(f"/?token={guard.token}")

    assert answer.status_code == 200
    assert 'http-equiv="refresh" content="0; url=/"' in answer.text
    assert guard.token not in answer.text
    cookie = answer.headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=Strict" in cookie
    assert guard.token not in cookie


def test_whoever_has_the_cookie_is_let_in(guard):
    assert let_in(guard).get("/").text == "secret"


def test_a_strange_cookie_of_another_port_locks_nobody_out(guard):
    one = let_in(guard)
    own = "; ".join(f"{name}={value}" for name, value in one.cookies.items())

    answer = browser(guard, cookie=f'other={{"a": "b c"}}, "; {own}').get("/")

    assert answer.text == "secret"


def test_the_file_that_a_browser_is_opened_with_may_give_the_token(guard):
    answer = browser(guard, **{"sec-fetch-site": "cross-site"}).get(f"/?token={guard.token}")

    assert "set-cookie" in answer.headers


@pytest.mark.parametrize(
    "address",
    ["/", "/?token=", "/?token=wrong", "/run/x", "/data/series", "/events", "/static/pages.js"],
)
def test_without_the_token_nothing_is_shown(guard, address):
    answer = browser(guard).get(address)

    assert answer.status_code == 403
    assert "secret" not in answer.text


def test_a_made_up_cookie_is_refused(guard):
    for value in ("", "x", guard.token, '"', "a; b"):
        answer = browser(guard, cookie=f"rabaska-8642={value}").get("/")
        assert answer.status_code == 403


@pytest.mark.parametrize(
    "host",
    ["evil.example", "evil.example:8642", "127.0.0.1", "127.0.0.1:1", "127.0.0.1.evil.example:8642",
     "localhost.evil.example:8642", "0.0.0.0:8642", "", "127.0.0.1:8642:8642", "127.0.0.1:8642@x"],
)  # fmt: skip
def test_another_name_that_leads_here_is_refused(guard, host):
    assert let_in(guard).get("/", headers={"host": host}).status_code == 403


@pytest.mark.parametrize("host", ["127.0.0.1:8642", "localhost:8642", "[::1]:8642"])
def test_the_names_of_this_computer_are_not(guard, host):
    assert "address" not in let_in(guard).get("/", headers={"host": host}).text


@pytest.mark.parametrize(
    "headers",
    [{"origin": "http://evil.example"}, {"origin": "null"}, {"origin": "http://127.0.0.1:1"},
     {"origin": "https://127.0.0.1:8642"}, {"sec-fetch-site": "cross-site"},
     {"sec-fetch-site": "same-site"}],
)  # fmt: skip
def test_what_comes_from_another_site_is_refused(guard, headers):
    one = let_in(guard)

    assert one.get("/", headers=headers).status_code == 403
    assert one.post("/do/cancel/x", headers={"origin": ADDRESS, **headers}).status_code == 403


def test_a_button_must_say_which_page_it_is_on(guard):
    assert let_in(guard).post("/do/cancel/x").status_code == 403
    assert let_in(guard).post("/do/cancel/x", headers={"origin": ADDRESS}).status_code == 200


def test_every_answer_forbids_scripts_in_the_page_frames_and_guessing(guard):
    for answer in (let_in(guard).get("/"), browser(guard).get("/")):
        policy = answer.headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert "frame-ancestors 'none'" in policy
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["referrer-policy"] == "no-referrer"


def test_two_at_once_do_not_take_each_others_cookie():
    first, second = Guard(inner, port=8642), Guard(inner, port=9000)
    answers = [
        TestClient(guard, base_url=f"http://127.0.0.1:{port}", follow_redirects=False).get(
            f"/?token={guard.token}"
        )
        for guard, port in ((first, 8642), (second, 9000))
    ]

    names = {answer.headers["set-cookie"].partition("=")[0] for answer in answers}
    assert len(names) == 2


def test_a_socket_is_reached_through_any_forwarded_port():
    guard = Guard(inner, port=0)
    one = TestClient(guard, base_url="http://localhost:4711", follow_redirects=False)

    assert "set-cookie" in one.get(f"/?token={guard.token}").headers
    assert one.get("/", headers={"host": "evil.example:4711"}).status_code == 403
