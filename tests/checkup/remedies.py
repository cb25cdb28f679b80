"""A remedy applied as somebody would who reads it and types what stands between backticks."""

import re
import subprocess

import tomlkit

from rabaska.checkup.pinned_packages import read

_KEY = re.compile(r"`([\w.]+) = ([^`]+)`[^`\[]*under \[([\w.-]+)\]")


def apply(fix: str, folder) -> bool:
    """Whether it was one that can be applied: the first of several."""
    first = re.split(r"; or |, or ", fix)[0]
    ways = (_replaced, _added, _settings, _requirements, _command, _deletion)
    return any(way(first, folder) for way in ways)


def _replaced(fix, folder):
    """``write `this` in place of `that` `` in rabaska.toml, in the command or anywhere."""
    found = re.match(r"write `([^`]+)` in place of `([^`]+)`( in the command)?", fix)
    if found:
        file = folder / "rabaska.toml"
        lines = file.read_text().splitlines()
        at = [n for n, line in enumerate(lines) if not found[3] or line.startswith("command = ")]
        for number in at:
            lines[number] = lines[number].replace(found[2], found[1])
        file.write_text("\n".join(lines))
    return bool(found)


def _added(fix, folder):
    """``add `--option {data}` to the command``, or a name to `exclude`."""
    file = folder / "rabaska.toml"
    command = re.match(r"add `([^`]+)` to the command", fix)
    pattern = re.match(r"add `\"([^`]+)\"` to `exclude` under \[code\]", fix)
    document = tomlkit.parse(file.read_text())
    if command:
        document["command"] = f"{document['command']} {command[1]}"
    elif pattern:
        document.setdefault("code", tomlkit.table()).setdefault("exclude", []).append(pattern[1])
    file.write_text(tomlkit.dumps(document))
    return bool(command or pattern)


def _settings(fix, folder):
    file = folder / "rabaska.toml"
    # Two lines may share one table: `a` and `b` under [t].
    fix = re.sub(r"(`[^`]+`) and (`[^`]+` under (\[[\w.-]+\]))", r"\1 under \3 and \2", fix)
    found = [each for each in _KEY.findall(fix) if "…" not in each[1] and "NAME" not in each[2]]
    for key, value, table in found:
        document = tomlkit.parse(file.read_text())
        place = document
        for part in table.split("."):
            place = place.setdefault(part, tomlkit.table())
        place[key] = tomlkit.parse(f"x = {value}")["x"]
        file.write_text(tomlkit.dumps(document))
    return bool(found)


def _requirements(fix, folder):
    found = re.search(r"(?:add|write) (.*) (?:to|in) (requirements\S*\.txt)", fix)
    if not found:
        return False
    file = folder / found[2]
    lines = re.findall(r"`([^`]+)`", found[1])
    names = {each.name for line in lines for each in read(line)}
    kept = [
        line
        for line in file.read_text().splitlines()
        if not names & {each.name for each in read(line)}
    ]
    options = [line for line in lines if line.startswith("-")]
    file.write_text("\n".join([*options, *kept, *(line for line in lines if line not in options)]))
    return True


def _command(fix, folder):
    found = re.match(r"did you mean `([^`]+)`\?|write `(python3)` in the command", fix)
    if not found:
        return False
    file = folder / "rabaska.toml"
    document = tomlkit.parse(file.read_text())
    words = str(document["command"]).split()
    if found[2]:
        words[0] = found[2]
    else:
        wrong = max(
            (word for word in words if "{" not in word),
            key=lambda word: (word not in ("python", "-m"), _likeness(word, found[1])),
        )
        words[words.index(wrong)] = found[1]
    document["command"] = " ".join(words)
    file.write_text(tomlkit.dumps(document))
    return True


def _likeness(word, other):
    import difflib

    return difflib.SequenceMatcher(None, word, other).ratio()


def _deletion(fix, folder):
    found = re.match(r"delete `(\w+)` under \[([\w.-]+)\]", fix)
    if not found:
        return False
    file = folder / "rabaska.toml"
    document = tomlkit.parse(file.read_text())
    place = document
    for part in found[2].split("."):
        place = place[part]
    del place[found[1]]
    file.write_text(tomlkit.dumps(document))
    return True


def initialised(folder):
    subprocess.run(["git", "init", "--quiet", str(folder)], check=True)
