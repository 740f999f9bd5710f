"""Where embedded servers keep data and sockets, and the account PostgreSQL runs as."""

import contextlib
import hashlib
import os
import pwd
import re
import shutil
import stat
from pathlib import Path

from runtime.embedded.processes import ServerFailed

ACCOUNTS = ("postgres", "nobody")
"""Who PostgreSQL runs as where we are root, which it refuses to run as: the first found."""

SYSTEM_FOLDER = Path("/var/lib/pagetoll")
"""Used only by root, for what the server's account could not reach elsewhere."""

SOCKET_PATH_BYTES_MAX = 99
"""A unix socket's path has room for 104 bytes on macOS and 108 on Linux."""

SHORT_FOLDER = Path("/tmp")  # noqa: S108 # a private folder is made in it, and checked
PLAIN_PATH = re.compile(r"[A-Za-z0-9/._+@-]+")
"""Paths that stand in a URL as they are, whichever library reads it."""


def server_account() -> pwd.struct_passwd | None:
    """The account to start PostgreSQL as; None means our own."""
    if os.geteuid() != 0:
        return None
    for name in ACCOUNTS:
        try:
            return pwd.getpwnam(name)
        except KeyError:
            continue
    raise ServerFailed(
        "PostgreSQL does not run as root, and there is neither a user postgres nor nobody."
    )


def make_data_folder(folder: Path) -> None:
    """Makes a folder that only we can read; parents that exist stay as they are.

    As root, the server's account may pass through it (0710), to its own folder inside.
    """
    if folder.is_dir():
        return
    folder.mkdir(mode=0o700, parents=True)
    account = server_account()
    if account is not None:
        os.chown(folder, -1, account.pw_gid)
        folder.chmod(0o710)


def make_own_folder(folder: Path, account: pwd.struct_passwd | None) -> None:
    """Makes a folder that only the given account, or we, can enter."""
    folder.mkdir(mode=0o700, exist_ok=True)
    if account is not None:
        os.chown(folder, account.pw_uid, account.pw_gid)


def can_pass(folder: Path, account: pwd.struct_passwd) -> bool:
    """Whether the account may enter a folder and all its parents."""
    return all(
        _may_enter(place.stat(), account)
        for place in (folder.absolute(), *folder.absolute().parents)
    )


def _may_enter(info: os.stat_result, account: pwd.struct_passwd) -> bool:
    if info.st_uid == account.pw_uid:
        return bool(info.st_mode & stat.S_IXUSR)
    if info.st_gid == account.pw_gid:
        return bool(info.st_mode & stat.S_IXGRP)
    return bool(info.st_mode & stat.S_IXOTH)


def system_folder(name: str) -> Path:
    """A folder of root's that every account can enter."""
    folder = SYSTEM_FOLDER / name
    for place in (SYSTEM_FOLDER, folder):
        place.mkdir(exist_ok=True)
        place.chmod(0o755)
    return folder


def cluster_folder(data_dir: Path, account: pwd.struct_passwd | None) -> Path:
    """Where PostgreSQL's files go: in the data folder, unless its account cannot get there."""
    if account is None or can_pass(data_dir, account):
        return data_dir.absolute() / "postgres"
    return system_folder(fingerprint(data_dir)) / "postgres"


def socket_folder(folder: Path, socket: str, account: pwd.struct_passwd | None) -> Path:
    """The folder itself, or a short private one when its path is too long for a socket.

    Raises ServerFailed when the short folder belongs to somebody else.
    """
    path = str(folder / socket)
    if len(os.fsencode(path)) <= SOCKET_PATH_BYTES_MAX and PLAIN_PATH.fullmatch(path):
        return folder
    short = SHORT_FOLDER / f"pagetoll-{fingerprint(folder)}"
    owner = os.geteuid() if account is None else account.pw_uid
    with contextlib.suppress(FileExistsError):
        short.mkdir(mode=0o700)
        os.chown(short, owner, -1)
    info = short.lstat()
    if not stat.S_ISDIR(info.st_mode) or info.st_uid != owner or info.st_mode & 0o077:
        raise ServerFailed(f"{short} should be a private folder of user {owner}; remove it.")
    return short


def drop_socket_folder(sockets: Path, folder: Path) -> None:
    """Removes the short folder where one was made in place of `folder`."""
    if sockets != folder:
        shutil.rmtree(sockets, ignore_errors=True)


def fingerprint(folder: Path) -> str:
    return hashlib.sha256(os.fsencode(folder.absolute())).hexdigest()[:12]
