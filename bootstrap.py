"""Makes .venv from the locked requirements when it must, then runs a command in it.

    python3 bootstrap.py [--dev] [COMMAND [ARGUMENT...]]

Only the standard library is used. A second run finds a stamp in .venv and does nothing.
Everything installed is checked against the hashes in requirements*.lock.
"""

import fcntl
import hashlib
import importlib.util
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

MINIMUM = (3, 11)
NEWER = ("python3.13", "python3.12", "python3.11")

if sys.version_info < MINIMUM:  # older ones get this far, and no farther
    probe = "import sys; sys.exit(sys.version_info < (3, 11))"
    for name in NEWER:
        other = shutil.which(name)
        if other and subprocess.call([other, "-c", probe], stderr=subprocess.DEVNULL) == 0:
            os.execv(other, [other, *sys.argv])
    sys.exit("Pagetoll needs Python 3.11 or newer; python3 is {}.{}.".format(*sys.version_info))

ROOT = Path(__file__).resolve().parent
VENV = ROOT / ".venv"
STAMP = "pagetoll.json"
RUNTIME_LOCK = "requirements.lock"
DEV_LOCK = "requirements-dev.lock"
UV_LOCK = "requirements-uv.lock"
LOCKS = (RUNTIME_LOCK, DEV_LOCK, UV_LOCK)
CHECKED = ("--require-hashes", "--only-binary", ":all:", "-r")
FOREIGN = ("PYTHONHOME", "PYTHONPATH", "PIP_TARGET", "PIP_PREFIX", "PIP_USER", "VIRTUAL_ENV")
"""Variables that would lead pip, uv or the venv's own Python elsewhere."""

NOTHING_TO_INSTALL_WITH = (
    "This Python has neither pip nor a complete venv module: install Debian's package"
    " python3-venv (or your system's like) and give the same command again."
)
COMMAND = """\
#!/bin/sh
'''exec' "{python}" "$0" "$@"
' '''
from cli.__main__ import main

main()
"""
"""A script that is both shell and Python: a #! line has no room for a long path."""


def digest(root: Path, venv: Path, version: str) -> str:
    """What an environment was made from: the locks, the Python, and its own place."""
    made_from = hashlib.sha256(f"{venv}\n{version}\n".encode())
    for lock in LOCKS:
        made_from.update((root / lock).read_bytes())
    return made_from.hexdigest()


def read_stamp(venv: Path) -> dict[str, object]:
    try:
        stamp = json.loads((venv / STAMP).read_text())
    except (OSError, ValueError):
        return {}
    return stamp if isinstance(stamp, dict) else {}


def is_satisfied(stamp: dict[str, object], wanted: str, *, dev: bool) -> bool:
    """Whether an environment will do; one with the development tools does for both."""
    return stamp.get("digest") == wanted and (stamp.get("dev") is True or not dev)


def read_arguments(arguments: list[str]) -> tuple[bool, list[str]]:
    """Whether --dev was said before the command, and the command."""
    dev = arguments[:1] == ["--dev"]
    rest = arguments[1:] if dev else arguments
    return dev, rest[1:] if rest[:1] == ["--"] else rest


def how_to_make(*, ensurepip: bool, venv: bool, pip: bool) -> str:
    """venv, or borrowed: a venv without pip that this Python's pip fills; empty for neither."""
    if venv and ensurepip:
        return "venv"
    return "borrowed" if venv and pip else ""


def has(module: str) -> bool:
    return importlib.util.find_spec(module) is not None


def clean_environment() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if name not in FOREIGN}


def run(command: list[str | Path], *, quiet: bool = False) -> bool:
    sink = subprocess.DEVNULL if quiet else None
    done = subprocess.run(
        [str(part) for part in command],
        env=clean_environment(),
        cwd=ROOT,
        stdout=sink,
        stderr=sink,
        check=False,
    )
    return done.returncode == 0


def make_venv(venv: Path) -> None:
    """Makes a bare environment of this Python, in place of whatever was there."""
    way = how_to_make(ensurepip=has("ensurepip"), venv=has("venv"), pip=has("pip"))
    if not way:
        sys.exit(NOTHING_TO_INSTALL_WITH)
    shutil.rmtree(venv, ignore_errors=True)
    flags = ["--without-pip"] if way == "borrowed" else []
    if not run([sys.executable, "-m", "venv", *flags, venv]):
        sys.exit(NOTHING_TO_INSTALL_WITH)


def is_usable(venv: Path) -> bool:
    """Whether the environment's Python runs, is this version, and knows its place."""
    probe = "import sys; print(sys.version, sys.prefix, sep='\\n', end='')"
    try:
        said = subprocess.check_output([venv / "bin" / "python", "-c", probe], text=True)
    except (OSError, subprocess.SubprocessError):
        return False
    return said == f"{sys.version}\n{venv}"


def pip_command(venv: Path) -> list[str | Path]:
    python = venv / "bin" / "python"
    quiet = ("--quiet", "--disable-pip-version-check")
    if run([python, "-m", "pip", "--version"], quiet=True):
        return [python, "-m", "pip", *quiet]
    return [sys.executable, "-m", "pip", *quiet, "--python", python]


def install(venv: Path, lock: str) -> None:
    """Installs a lock file with uv where it can be had, else with pip; ends on failure."""
    pip = pip_command(venv)
    python, uv = venv / "bin" / "python", venv / "bin" / "uv"
    if run([*pip, "install", *CHECKED, UV_LOCK], quiet=True):
        has_home = os.access(os.path.expanduser("~"), os.W_OK)  # noqa: PTH111 # never raises
        cache = () if has_home else ("--no-cache",)
        if run([uv, "pip", "install", "--quiet", "--python", python, *cache, *CHECKED, lock]):
            return
        say("uv could not install the requirements; trying pip.")
    if not run([*pip, "install", *CHECKED, lock]):
        sys.exit(f"The requirements in {lock} could not be installed; see above.")


def add_project(venv: Path) -> None:
    """Puts the project on the environment's path, and the command `pagetoll` beside python."""
    major, minor = sys.version_info[:2]
    packages = venv / "lib" / f"python{major}.{minor}" / "site-packages"
    (packages / "pagetoll.pth").write_text(f"{ROOT}\n")
    command = venv / "bin" / "pagetoll"
    command.write_text(COMMAND.format(python=venv / "bin" / "python"))
    command.chmod(0o755)


def prepare(venv: Path, *, dev: bool) -> None:
    """Makes or renews the environment unless its stamp says that it will do."""
    wanted = digest(ROOT, venv, sys.version)
    if is_satisfied(read_stamp(venv), wanted, dev=dev):
        return
    folder = os.open(ROOT, os.O_RDONLY)
    try:
        fcntl.flock(folder, fcntl.LOCK_EX)
        stamp = read_stamp(venv)  # another bootstrap may have been first
        if not is_satisfied(stamp, wanted, dev=dev):
            build(venv, wanted, dev=dev or stamp.get("dev") is True)
    finally:
        os.close(folder)


def build(venv: Path, wanted: str, *, dev: bool) -> None:
    (venv / STAMP).unlink(missing_ok=True)
    say(f"Preparing {venv} ...")
    if not is_usable(venv):
        make_venv(venv)
    install(venv, DEV_LOCK if dev else RUNTIME_LOCK)
    add_project(venv)
    stamp = venv / (STAMP + ".new")
    stamp.write_text(json.dumps({"digest": wanted, "dev": dev}))
    stamp.replace(venv / STAMP)


def execute(venv: Path, command: list[str]) -> None:
    """Becomes the command, found in the environment first."""
    folder = venv / "bin"
    environment = {
        **{name: value for name, value in os.environ.items() if name != "PYTHONHOME"},
        "VIRTUAL_ENV": str(venv),
        "PATH": f"{folder}{os.pathsep}{os.environ.get('PATH', os.defpath)}",
    }
    try:
        os.execvpe(command[0], command, environment)
    except OSError as error:
        sys.exit(f"{command[0]} could not be run: {error.strerror}.")


def say(sentence: str) -> None:
    print(sentence, file=sys.stderr, flush=True)


def main() -> None:
    dev, command = read_arguments(sys.argv[1:])
    prepare(VENV, dev=dev)
    if command:
        execute(VENV, command)


if __name__ == "__main__":
    main()
