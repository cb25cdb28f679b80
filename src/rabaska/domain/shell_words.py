"""Words for a shell: the cluster's own variables expanded, and options split as a shell would."""

import re
import shlex


def expanding(text: str) -> str:
    """`~/x` and `$SCRATCH/x` as one double-quoted word that the cluster's shell expands.

    Command substitutions, quotes and other shell syntax in `text` stay plain characters.
    """
    if text == "~" or text.startswith("~/"):
        text = "$HOME" + text[1:]
    quoted = re.sub(r'([\\"`])', r"\\\1", text)
    quoted = re.sub(r"\$(?!\w|\{\w+\})", r"\\$", quoted)
    return f'"{quoted}"'


def option_words(text: str) -> list[str]:
    """`-F my/config` as the two words that a shell makes of it; what begins no option is one."""
    if not text.startswith("-"):
        return [text]
    try:
        return shlex.split(text)
    except ValueError:  # a quotation mark without its other half
        return [text]
