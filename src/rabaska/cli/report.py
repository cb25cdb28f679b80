"""The command that writes reports: report."""

from pathlib import Path

import click

from rabaska.cli import terminal
from rabaska.cli.find_run import chosen_run
from rabaska.cli.options import complete_run, found_on_option, json_option
from rabaska.errors import WrongUse
from rabaska.records.home import home
from rabaska.records.search_index import SearchRecord, remembered


@click.command()
@click.argument("runs", nargs=-1, metavar="[RUN...]", shell_complete=complete_run)
@found_on_option
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path, allow_dash=True),
    metavar="FILE",
    help="Where to write it; - is standard output. Default: RUN.html in the working directory.",
)
@click.option("--markdown", is_flag=True, help="Write Markdown instead of HTML.")
@json_option
def report(
    runs: tuple[str, ...], *, on: str, output: Path | None, markdown: bool, as_json: bool
) -> None:
    """Write a report on runs: what was run, how it went, how to run it again.

    By default the newest run, as one HTML file that needs nothing else: it can be sent, printed
    and kept. It has the commit, the command, the digests of the data, the environment, the time
    line of the jobs, the curves, and what was used and wasted. Several runs are also compared.
    The name of a search gives its trials as charts and as a table, and the run of the best one.
    """
    from rabaska.journeys import report as journey
    from rabaska.pages import report_file
    from rabaska.views.report import run_report
    from rabaska.views.search_report import search_report, search_report_json

    if markdown and as_json:
        raise WrongUse("a report is either Markdown or JSON", hint="leave out one of the options")
    searches = [found for run in runs if (found := _search_called(run))]
    names = [run for run in runs if not _search_called(run)] or ([] if searches else [""])
    seen, best = journey.report_searches(searches, home())
    records = list(dict.fromkeys([*best, *(chosen_run(name, on) for name in names)]))
    reports = [run_report(history) for history in journey.report(records, home())]
    about = [told for one in seen if (told := search_report(one))]
    if as_json:
        values = [*map(search_report_json, about), *report_file.as_json(reports)]
        text = terminal.json_text(values)
    else:
        write = report_file.markdown if markdown else report_file.html
        text = write(reports, about)
    ending = "json" if as_json else "md" if markdown else "html"
    if output is None and (as_json or markdown):
        output = Path("-")
    first = (about or reports)[0].name
    _write(text, output or Path(f"{first}.{ending}"))


def _search_called(name: str) -> SearchRecord | None:
    """The search of exactly this name."""
    return next((one for one in remembered(home().searches) if one.name == name), None)


def _write(text: str, file: Path) -> None:
    if str(file) == "-":
        terminal.raw(text.encode())
        return
    from rabaska.journeys.report import write_report

    written = write_report(file, text)
    terminal.note(f"{written.stat().st_size / 1000:,.0f} kB; open it with a browser:")
    terminal.data(str(written))
