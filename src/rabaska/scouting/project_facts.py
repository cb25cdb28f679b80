"""Everything that a project's files say about it: the values for rabaska.toml."""

import re
from collections.abc import Sequence
from pathlib import Path

from rabaska.domain.amounts import say_size
from rabaska.domain.projects import FILL_IN
from rabaska.scouting import (
    data_options,
    folders,
    framework_options,
    requirements,
    script_traits,
    script_writes,
    scripts,
)
from rabaska.scouting.chain_verdict import IN_WORDS, Verdict, verdict
from rabaska.scouting.checkpoint_contents import VARIABLE, more_than_tensors
from rabaska.scouting.data_options import DataUse
from rabaska.scouting.folders import ProjectFolder
from rabaska.scouting.guesses import Findings, Guess
from rabaska.scouting.launch_needed import launch_needed
from rabaska.scouting.option_roles import DATA, RESUME, roles
from rabaska.scouting.script_options import Option
from rabaska.scouting.scripts import Script
from rabaska.scouting.shown_values import configuration, is_missing_file, shown_values
from rabaska.scouting.start_command import Words, with_links, words


def scout(project: Path, *, script: str = "", data: str = "") -> Findings:
    """What the files in `project` tell; `script` and `data` are answers somebody gave already."""
    read = scripts.find(project)
    script = script.removeprefix("./")
    chosen = next((candidate for candidate in read.found if candidate.name == script), None)
    chosen = chosen or next(iter(read.found), None)
    if chosen is None:
        return _nothing_to_start(project, read)
    return _Scouting(project, chosen, read, data).findings()


def project_name(project: Path) -> str:
    """The folder's name, as far as it can name files on every cluster."""
    plain = re.sub(r"[^A-Za-z0-9._-]+", "-", project.resolve().name).strip("-._")
    return plain[:40] or "project"


def _nothing_to_start(project: Path, read: scripts.Scripts) -> Findings:
    why = "no Python script that can be started was found"
    if read.notebooks:
        why += f"; save {read.notebooks[0]} as a script first (jupyter nbconvert --to script)"
    return Findings(
        project_name(project),
        ("python", FILL_IN),
        packages=requirements.find(project),
        warnings=(f"{why}: fill in `command`", *_unread(read)),
    )


def _unread(read: scripts.Scripts) -> list[str]:
    return [f"{source.name} was skipped: {source.problem}" for source in read.unread[:5]]


class _Scouting:
    """One reading of one project, which collects guesses and warnings."""

    def __init__(self, project: Path, script: Script, read: scripts.Scripts, data: str) -> None:
        self.project = project
        self.script = script
        self.read = read
        self.guesses: list[Guess] = []
        self.warnings: list[str] = []
        self.writes = script.writes
        self.options = framework_options.all_options(script, project)
        self.roles = roles(self.options, scripts.usage(script))
        self.survey = folders.survey(project)
        self.candidates = self._candidates(data)

    def findings(self) -> Findings:
        self._add_scripts()
        uses = self._data()
        named = data_options.dataset_names(uses)
        values = data_options.option_values(uses, named)
        made = words(self.script, self.options, self.roles, values, self._known())
        judged = self._judge(made)
        command = self._command(made, uses, named)
        patterns, keep = self._saved()
        progress = script_traits.progress(self.script)
        if progress:
            self._guess("progress", progress[0], str(progress[1]))
        launch = launch_needed(self.script)
        if launch:
            self._guess("launch", launch[0], str(launch[1]))
        gpus = script_traits.gpus(self.script)
        if gpus:
            self._guess("gpus", "1 on a cluster", str(gpus[1]))
        needs = requirements.find(self.project)
        if needs:
            self._guess("packages", needs.file, f"{needs.file} exists")
        else:
            self.warnings += requirements.readme_advice(self.project)
        self.warnings += _unread(self.read)
        variables = self._variables() if judged.jobs > 1 else ()
        return Findings(
            project_name(self.project),
            tuple(command),
            tuple(made.resume),
            tuple((name, path) for path, name in named.items()),
            judged.jobs,
            keep,
            patterns,
            progress[0] if progress else "",
            gpus[0] if gpus else "",
            needs,
            tuple(self.guesses),
            tuple(self.warnings),
            tuple(each.name for each in self.read.rivals),
            tuple(each.name for each in self.candidates),
            judged.advice,
            launch[0] if launch else "",
            variables,
        )

    def _guess(self, what: str, value: str, evidence: str) -> None:
        self.guesses.append(Guess(what, value, evidence))

    def _candidates(self, data: str) -> list[ProjectFolder]:
        defaults = {
            role.option.default.removeprefix("./").rstrip("/")
            for role in self.roles
            if role.what != DATA
        }
        datasets = folders.data_folders(
            self.survey, written=defaults | set(script_writes.kept(self.writes))
        )
        named = [each for each in self.survey.all() if data and each.name == data.strip("./")]
        return [*named, *(folder for folder in datasets if folder not in named)]

    def _add_scripts(self) -> None:
        self._guess("script", self.script.name, f"{self.script.name}: {self.script.why}")
        rivals = [script.name for script in self.read.rivals if script is not self.script]
        if rivals and self.script is self.read.found[0]:
            self.warnings.append(
                f"{', '.join(rivals[:4])} can be started too; if you meant that, change `command`"
            )
        if not self.survey.complete:
            self.warnings.append("the project has so many files that some were not read")

    def _data(self) -> tuple[DataUse, ...]:
        taken = [role.option for role in self.roles if role.what == DATA]
        download = script_traits.downloads(self.script)
        if download:
            self.warnings.append(
                f"{download} downloads its data; the nodes of most clusters have no internet, so "
                "download it here first"
            )
        if not taken:
            return self._data_at_fixed_places()
        uses = data_options.for_options(taken, self.candidates, self.project, self.script)
        for use in uses:
            if use.path not in ("", FILL_IN):
                self._guess("data", use.path, use.evidence)
        if all(use.path in ("", FILL_IN) for use in uses):
            self._warn_of_missing_data(taken[0])
        elif len(self.candidates) > 1 and not any(use.is_default for use in uses):
            others = ", ".join(folder.name for folder in self.candidates[1:4])
            self.warnings.append(f"the data may also be {others}; if so, change `path`")
        return uses

    def _data_at_fixed_places(self) -> tuple[DataUse, ...]:
        uses = data_options.outside(self.project, self.script.sources)
        uses = uses or data_options.at_fixed_places(self.candidates, self.script)
        uses = uses or data_options.prepared(self.project, self.survey, self.script)
        for use in uses:
            self._guess("data", use.path, use.evidence)
        if uses:
            self.warnings.append(
                f"no option of {self.script.name} takes a data folder, so `command` first makes a "
                f"link to the data at {' and '.join(use.path for use in uses)}"
            )
        for name, size in data_options.lone_archives(self.survey):
            self.warnings.append(
                f"{name} ({say_size(size)}) is data, not code: unpack it into a folder and name "
                "that folder under [data]"
            )
        return uses

    def _warn_of_missing_data(self, option: Option) -> None:
        self.warnings.append(
            f"{self.script.name} takes its data by `{option.spelled}` ({option.place}), but no "
            "data folder was found: `rabaska init --force --data FOLDER` says which one it is"
        )

    def _command(
        self, made: Words, uses: Sequence[DataUse], named: dict[str, str]
    ) -> Sequence[str]:
        for option in made.missing:
            self.warnings.append(
                f"{option.place} is required, and its value is not known: "
                f"replace {FILL_IN} in `command`"
            )
        for role in self.roles:
            if role.what != DATA:
                self._guess(role.what, role.option.spelled, str(role.option.place))
        terminal = script_traits.asks_terminal(self.script)
        if terminal:
            self.warnings.append(
                f"{terminal} asks for the size of its terminal, and a job has none: `command` "
                "first makes an `stty` that says 24 80"
            )
        fixed = [use for use in uses if use.option is None]
        links = {use.path: data_options.variable(named[use.path]) for use in fixed}
        return with_links(made.command, links, terminal=bool(terminal))

    def _saved(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        chosen = {role.option.name for role in self.roles}
        patterns, keep = (
            script_writes.patterns(self.writes),
            script_writes.kept(self.writes, chosen=chosen),
        )
        for guess in self.guesses:
            if guess.what == "value":
                name = guess.value.rpartition(" ")[2]
                keep |= dict(framework_options.kept_by_configuration(self.project, name))
        keep = {path: place for path, place in keep.items() if not self._is_not_output(path)}
        for pattern, place in patterns.items():
            self._guess("patterns", pattern, str(place))
        for path, place in keep.items():
            self._guess("keep", path, str(place))
        for write in script_writes.scattered(self.writes):
            self.warnings.append(
                f"{write.place} writes {write.path} next to the code; it is saved when a job ends "
                "normally, and lost if the node fails: better write into a folder"
            )
        return tuple(patterns), tuple(keep)

    def _is_not_output(self, path: str) -> bool:  # but code, or data that the script downloads
        return folders.is_named_for_data(path) or any((self.project / path).glob("*.py"))

    def _judge(self, made: Words) -> Verdict:
        judged = verdict(self.script, self.options, self.roles, made)
        if judged.option:
            self._guess(RESUME, judged.option.spelled, str(judged.option.place))
        if judged.resumed.resumes:
            words = IN_WORDS[judged.resumed.kind]
            if made.resume:
                words = words.replace("by itself", f"with {' '.join(made.resume)}")
            self._guess("resumes", words, judged.resumed.place)
        if judged.warning:
            self.warnings.append(judged.warning)
        return judged

    def _variables(self) -> tuple[tuple[str, str], ...]:
        place = more_than_tensors(self.script)
        if place is None:
            return ()
        self._guess("variables", VARIABLE, str(place))
        return ((VARIABLE, "1"),)

    def _known(self) -> dict[str, str]:
        """What the project's own text gives to options that need a value."""
        taken = {role.option.name for role in self.roles}
        shown = shown_values(self.script.shown, self.options)
        known: dict[str, str] = {}
        for option in self.options:
            value = configuration(option, shown.get(option.name), self.project)
            if value is None and option.required and option.name not in taken:
                value = shown.get(option.name)
                if value and is_missing_file(option, value, self.project):
                    value = None
            if value is not None and option.name not in taken:
                known[option.name] = value.value
                self._guess("value", f"{option.spelled} {value.value}", str(value.place))
        return known
