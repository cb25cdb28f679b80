"""The command that writes reports: report."""

from pathlib import Path

import click

from rabaska.cli import terminal
from rabaska.cli.find_run import chosen_run
from rabaska.cli.options import complete_run, found_on_option, json_option
from rabaska.errors import WrongUse
from rabaska.records.home import home


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
    """
    from rabaska.journeys.report import report as journey
    from rabaska.pages import report_file
    from rabaska.views.report import run_report

    if markdown and as_json:
        raise WrongUse("a report is either Markdown or JSON", hint="leave out one of the options")
    records = list(dict.fromkeys(chosen_run(run, on) for run in runs or ("",)))
    reports = [run_report(history) for history in journey(records, home())]
    if as_json:
        text = terminal.json_text(report_file.as_json(reports))
    else:
        text = report_file.markdown(reports) if markdown else report_file.html(reports)
    ending = "json" if as_json else "md" if markdown else "html"
    if output is None and (as_json or markdown):
        output = Path("-")
    _write(text, output or Path(f"{reports[0].name}.{ending}"))


def _write(text: str, file: Path) -> None:
    if str(file) == "-":
        terminal.raw(text.encode())
        return
    from rabaska.journeys.report import write_report

    written = write_report(file, text)
    terminal.note(f"{written.stat().st_size / 1000:,.0f} kB; open it with a browser:")
    terminal.data(str(written))
