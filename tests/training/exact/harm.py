"""What a campaign does to processes, checkpoints and disks."""

import contextlib
import os
import signal
import subprocess

DAMAGES = ("truncated", "bit flipped", "manifest removed", "emptied")

# The first is memory and has no O_DIRECT; the second is a disk, with a journal of its own.
DISKS = ("tmpfs", "ext4")
_SIZES = {"tmpfs": 1 << 20, "ext4": 6 << 20}  # bytes; an ext4 keeps most of it for itself


def kill(pid):
    """Whether there was such a process, or group of processes, to kill."""
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return False
    return True


def damage(folder, chance):
    """Damage the newest checkpoint; False when there is none, or it was damaged before."""
    newest = max(folder.glob("ckpt-*[0-9]"), default=None)
    if newest is None or not (newest / "COMMIT.json").exists():
        return False
    how = chance.choice(DAMAGES)
    victim = chance.choice([path for path in sorted(newest.iterdir()) if path.is_file()])
    content = bytearray(victim.read_bytes())
    if not content:
        return False
    if how == "manifest removed":
        (newest / "COMMIT.json").unlink()
    elif how == "emptied":
        for path in newest.iterdir():
            path.write_bytes(b"")
    elif how == "truncated":
        victim.write_bytes(content[: chance.randrange(len(content))])
    else:
        content[chance.randrange(len(content))] ^= 1 << chance.randrange(8)
        victim.write_bytes(content)
    return True


@contextlib.contextmanager
def small_disk(folder, kind):
    """A file system of its own at `folder`, which is soon full; only root can make one."""
    folder.mkdir()
    image = folder.with_suffix(".image")
    what = ["-t", "tmpfs", "-o", f"size={_SIZES[kind]}", "tmpfs"]
    if kind == "ext4":
        with image.open("wb") as stream:
            stream.truncate(_SIZES[kind])
        subprocess.run(["mkfs.ext4", "-q", "-m", "0", image], check=True)
        what = ["-o", "loop", image]
    subprocess.run(["mount", *what, folder], check=True)
    try:
        yield
    finally:
        subprocess.run(["umount", "--lazy", folder], check=True)
        image.unlink(missing_ok=True)


def fill(path):
    with contextlib.suppress(OSError), path.open("wb", buffering=0) as stream:
        while True:
            stream.write(bytes(4096))
