"""Small pure-Python wheels, made on the spot and without a network."""

import base64
import hashlib
import zipfile


def make_wheel(folder, name, version="1.0", *, needs=(), program=""):
    """A wheel whose module says its version; `program` is a command it installs."""
    folder.mkdir(parents=True, exist_ok=True)
    info = f"{name}-{version}.dist-info"
    contents = {
        f"{name}.py": f'VERSION = "{version}"\n\n\ndef main():\n    print("{name}", VERSION)\n',
        f"{info}/METADATA": _metadata(name, version, needs),
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\n"
        "Tag: py3-none-any\n",
    }
    if program:
        contents[f"{info}/entry_points.txt"] = f"[console_scripts]\n{program} = {name}:main\n"
    rows = [f"{file},sha256={_digest(text)},{len(text)}" for file, text in contents.items()]
    contents[f"{info}/RECORD"] = "\n".join([*rows, f"{info}/RECORD,,", ""])
    path = folder / f"{name}-{version}-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as wheel:
        for file, text in contents.items():
            wheel.writestr(file, text)
    return path


def _metadata(name, version, needs):
    lines = ["Metadata-Version: 2.1", f"Name: {name}", f"Version: {version}"]
    return "\n".join([*lines, *(f"Requires-Dist: {need}" for need in needs), ""])


def _digest(text):
    raw = hashlib.sha256(text.encode()).digest()
    return base64.urlsafe_b64encode(raw).decode().rstrip("=")
