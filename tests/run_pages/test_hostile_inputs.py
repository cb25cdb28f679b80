"""What programs, clusters and people write is shown, never interpreted: fifty hostile inputs."""

import json
import re
from dataclasses import replace
from html.parser import HTMLParser

import pytest
from tests.run_pages.made_history import PLAN, STATUS, curve, history

from rabaska.domain.runs import Job
from rabaska.pages import report_file
from rabaska.views.report import run_report

HOSTILE = [
    "<script>alert(1)</script>",
    "</script><script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "<svg onload=alert(1)>",
    "<svg><script>alert(1)</script></svg>",
    "</svg><script>alert(1)</script>",
    "</title><script>alert(1)</script>",
    "</pre><script>alert(1)</script>",
    "</style><script>alert(1)</script>",
    "</textarea><script>alert(1)</script>",
    "<iframe src=javascript:alert(1)>",
    "<a href=javascript:alert(1)>x</a>",
    "<base href=http://evil.example/>",
    "<meta http-equiv=refresh content=0;url=http://evil.example>",
    "<link rel=stylesheet href=http://evil.example/x.css>",
    "<form action=http://evil.example><input name=token>",
    "<object data=x>",
    "<embed src=x>",
    "<math><mi xlink:href=javascript:alert(1)>x</mi></math>",
    "<details open ontoggle=alert(1)>",
    "<body onload=alert(1)>",
    "<input autofocus onfocus=alert(1)>",
    "<template><script>alert(1)</script></template>",
    "<noscript><p title='</noscript><img src=x onerror=alert(1)>'>",
    '" onmouseover="alert(1)',
    "' onmouseover='alert(1)",
    "` onmouseover=`alert(1)",
    '"><script>alert(1)</script>',
    "'><script>alert(1)</script>",
    '" autofocus onfocus="alert(1)" x="',
    "javascript:alert(1)",
    "{{ 7 * 7 }}",
    "{% for x in ().__class__.__base__.__subclasses__() %}{{ x }}{% endfor %}",
    "${7*7}",
    "<%= 7*7 %>",
    "&lt;script&gt;alert(1)&lt;/script&gt;",
    "&#60;script&#62;alert(1)&#60;/script&#62;",
    "\\u003cscript\\u003ealert(1)\\u003c/script\\u003e",
    "\x1b[31mred\x1b[0m\x1b]0;title\x07",
    "\x1b[2J\x1b[H\x1b]52;c;cm0gLXJm\x07",
    "\x00\x01\x02\x08",
    "a\rb\x0bc\x0cd\x85e\u2028f\u2029g",
    "\u202egnp.exe\u202c",
    "\ufeff\u200b<script\u200b>alert(1)</script>",
    "\ud800\udfff half of a pair",
    "=cmd|' /C calc'!A0",
    "+1+cmd|' /C calc'!A0",
    "@SUM(1+1)*cmd|' /C calc'!A0",
    "<!--><script>alert(1)</script>-->",
    "<![CDATA[<script>alert(1)</script>]]>",
    "<xmp><script>alert(1)</script></xmp>",
    "x" * 100_000,
    "../../../etc/passwd",
    "%3Cscript%3Ealert(1)%3C/script%3E",
    "data:text/html,<script>alert(1)</script>",
]
HARMLESS = "harmless"


class Shape(HTMLParser):
    """The elements of a page and the names of their attributes, without any text."""

    def __init__(self, page):
        super().__init__(convert_charrefs=True)
        self.shape, self.text = [], []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag, attributes):
        self.shape.append((tag, sorted(name for name, _ in attributes)))
        self.text += [value or "" for _, value in attributes]

    def handle_endtag(self, tag):
        self.shape.append((f"/{tag}", []))

    def handle_data(self, data):
        self.text.append(data)

    def handle_comment(self, data):
        self.shape.append(("comment", [data]))


def everywhere(text):
    """A run in which everything that others write is this text."""
    status = replace(
        STATUS, reason=text, hint=text, note=text, tags=(text,), tail=f"{text}\n{text}",
        metrics={text: 1.0}, explanations=((text, text),), problems=(text,),
        jobs=tuple(
            replace(job, id=text, host=text, reason=text, resumed_from=text) for job in STATUS.jobs
        ),
        command=("python", text), about={"project": text, "like": text},
    )  # fmt: skip
    plan = PLAN._replace(
        command=["python", text], variables={"NAME": text}, secrets=(text,),
        datasets=[PLAN.datasets[0]._replace(name=text, pack=f"{text}-1", mode=text)],
        origin=PLAN.origin._replace(commit=text, scheduler=text),
        request=PLAN.request._replace(setup=[text], queue=text),
    )  # fmt: skip
    return history(
        status=status, plan=plan, script=text, trouble=text,
        curves={text: curve(text, [1.0, 2.0]), f"{text} 2": curve(text, [1.0, 2.0])},
        vitals={text: {text: curve(text, [1.0, 2.0], text, steps=False)}},
    )  # fmt: skip


def test_there_are_fifty():
    assert len(set(HOSTILE)) >= 50


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
def test_a_report_has_the_same_elements_whatever_was_written(text):
    plain = Shape(report_file.html([run_report(everywhere(HARMLESS))]))

    page = report_file.html([run_report(everywhere(text))])

    made = Shape(page)
    # A text of several lines, or of nothing that is visible, has more or fewer lines.
    assert set(map(str, made.shape)) <= set(map(str, plain.shape))
    assert abs(len(made.shape) - len(plain.shape)) <= 8
    assert not re.search(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\u202a-\u202e]", page)
    page.encode()  # no half of a pair


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
def test_markdown_and_json_hold_no_markup_either(text):
    reports = [run_report(everywhere(text))]

    lines = report_file.markdown(reports).splitlines()
    told = json.dumps(report_file.as_json(reports), default=str)

    loose = [line for line in lines if not line.startswith("    ") and "`" not in line]
    assert not any(re.search(r"(?<!\\)<[a-z/!]", line, re.IGNORECASE) for line in loose)
    assert json.loads(told)[0]["state"] == "failed"


def test_times_that_are_none_are_drawn():
    jobs = (Job(1, began=2e11, ended=1.0, how="x"), Job(2, began=2.0, how=""))
    far = curve("use", [1.0, 2.0], "W", steps=False)
    far.times[1] = 1e300
    run = history(status=replace(STATUS, jobs=jobs), vitals={"n1": {"gpu0 power": far}})

    page = report_file.html([run_report(run)])

    assert page.count("<svg") == 4


def test_the_pages_of_a_hostile_run_have_the_same_elements(desk):
    """All at once: each page is asked for once, not fifty times."""
    odd = [text for text in HOSTILE if len(text) < 1000]
    printable = [text.encode(errors="replace").decode() for text in odd]
    run, _ = desk.add(
        "cats-7f3a",
        note=" ".join(printable),
        tags=tuple(text.replace(" ", "_") for text in printable),
        log="\n".join(printable),
        command=["python", *printable],
    )
    for text in printable:
        desk.tells(run, text[:200], [1.0, 2.0])
    browser = desk.opens()

    pages = {
        address: browser.get(address)
        for address in (
            "/", "/part/runs", "/run/cats-7f3a", "/part/run/cats-7f3a/head",
            "/part/run/cats-7f3a/charts",
            "/part/run/cats-7f3a/log", "/part/run/cats-7f3a/plan", "/compare?run=cats-7f3a",
            "/report/cats-7f3a", "/part/runs?filter=<script>", "/part/runs?sort=<script>",
            "/part/run/cats-7f3a/log?search=<script>", "/run/<script>alert(1)<%2Fscript>",
            "/cluster/<script>", "/cluster/away",
        )
    }  # fmt: skip

    for address, answer in pages.items():
        made = Shape(answer.text)
        scripts = [names for tag, names in made.shape if tag == "script"]
        assert all(names == ["src", "type"] for names in scripts), address
        names = {name for _, names in made.shape for name in names}
        assert not [name for name in names if name.startswith("on")], address
        tags = {tag for tag, _ in made.shape}
        assert not tags & {"iframe", "object", "embed", "base", "img", "style"} - (
            {"style"} if address.startswith("/report") else set()
        ), address
        assert "content-security-policy" in answer.headers
    log = Shape(pages["/part/run/cats-7f3a/log"].text)
    assert "<script>alert(1)</script>" in "".join(log.text)


def test_a_series_of_any_name_can_be_asked_for(desk):
    run, _ = desk.add()
    names = [text.encode(errors="replace").decode()[:200] for text in HOSTILE]
    for name in names:
        desk.tells(run, name, [1.0, 2.0])
    browser = desk.opens()
    page = Shape(browser.get("/part/run/cats-7f3a/charts").text)

    listed = [name for text in page.text if text.startswith('["') for name in json.loads(text)]

    known = set(desk.shown.series(desk.shown.find("cats-7f3a").record))
    assert set(listed) == known
    for name in listed:
        answer = browser.get("/data/series", params={"run": "cats-7f3a", "name": name})
        assert [one["name"] for one in answer.json()["curves"]] == [name]
