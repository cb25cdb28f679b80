"""Where cluster profiles are, by name; listing them reads none, and imports nothing heavy."""

from pathlib import Path

_BUILT_IN = Path(__file__).parent / "profiles"


def profile_files(user_profiles: Path | None) -> dict[str, Path]:
    """Every profile there is, this computer's first; the user's own before the built-in ones."""
    files = {file.stem: file for file in _BUILT_IN.glob("*.toml")}
    if user_profiles and user_profiles.is_dir():
        files |= {file.stem: file for file in user_profiles.glob("*.toml")}
    return {name: files[name] for name in sorted(files, key=lambda name: (name != "here", name))}


def names(user_profiles: Path | None = None) -> tuple[str, ...]:
    """Every cluster that has a profile, this computer first."""
    return tuple(profile_files(user_profiles))
