"""Shell expressions as a job script expands them."""

import subprocess


def printed_by_bash(expression: str, **variables: str) -> str:
    script = f'printf "%s" "{expression}"'
    environment = {"PATH": "/usr/bin:/bin", **variables}
    ran = subprocess.run(
        ["bash", "-c", script], env=environment, capture_output=True, text=True, check=True
    )
    return ran.stdout
