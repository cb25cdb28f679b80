"""Shell words in which the cluster's own variables are expanded, and nothing else is."""

import re


def expanding(text: str) -> str:
    """`~/x` and `$SCRATCH/x` as one double-quoted word that the cluster's shell expands.

    Command substitutions, quotes and other shell syntax in `text` stay plain characters.
    """
    if text == "~" or text.startswith("~/"):
        text = "$HOME" + text[1:]
    quoted = re.sub(r'([\\"`])', r"\\\1", text)
    quoted = re.sub(r"\$(?!\w|\{\w+\})", r"\\$", quoted)
    return f'"{quoted}"'
