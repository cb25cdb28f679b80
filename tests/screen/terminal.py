"""A real terminal for tests, by tmux: what is typed into it, and what it shows."""

import shlex
import subprocess
import time


class Tmux:
    """A window in which one command runs; `ended` is shown with its exit code after it."""

    def __init__(self, folder, command, *, environment, width=80, height=24):
        self._socket = str(folder / "tmux")
        exports = " ".join(f"{name}={shlex.quote(value)}" for name, value in environment.items())
        script = f"cd {shlex.quote(str(folder))}; env {exports} {command}; echo ended $?; sleep 60"
        self._tmux(
            "-f",
            "/dev/null",
            "-u",
            "new-session",
            "-d",
            "-x",
            str(width),
            "-y",
            str(height),
            script,
        )
        self._tmux("set", "-g", "monitor-bell", "on")

    def _tmux(self, *words):
        done = subprocess.run(
            ["tmux", "-S", self._socket, *words], capture_output=True, check=False, text=True
        )
        return done.stdout

    def types(self, *keys):
        self._tmux("send-keys", *keys)

    def resizes(self, width, height):
        self._tmux("resize-window", "-x", str(width), "-y", str(height))

    @property
    def screen(self):
        return self._tmux("capture-pane", "-p")

    def shows(self, *texts, seconds=30):
        """Wait until all of them are on the screen; what is shown then."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            screen = self.screen
            if all(text in screen for text in texts):
                return screen
            time.sleep(0.1)
        raise AssertionError(f"{texts} is not on the screen:\n{screen}")

    def hides(self, text, seconds=30):
        """Wait until it is not on the screen any more."""
        end = time.monotonic() + seconds
        while text in self.screen:
            assert time.monotonic() < end, self.screen
            time.sleep(0.1)

    def end(self):
        self._tmux("kill-server")
