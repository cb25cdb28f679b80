"""All checks, one after another."""

from rabaska.checkup import cluster, code, command, data, environment, network
from rabaska.checkup.findings import Finding
from rabaska.checkup.subject import Subject

_FAMILIES = (command, code, network, data, environment, cluster)


def examine(subject: Subject) -> tuple[Finding, ...]:
    """What was found, the serious first, each thing once."""
    found = [finding for family in _FAMILIES for finding in family.checks(subject)]
    return tuple(sorted(dict.fromkeys(found), key=lambda each: not each.serious))
