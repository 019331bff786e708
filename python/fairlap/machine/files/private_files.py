"""Files and folders that fairlap keeps for a user, which other users of the machine may not read.

Their modes are 0600 and 0700 under every umask. Files that a user names with ``--output`` follow the umask instead, as
those of other programs do.
"""

from __future__ import annotations

import errno
import os
import stat
from contextlib import suppress
from pathlib import Path

from fairlap.errors import FairlapError
from fairlap.machine.files.user_folders import own_folders

_FOLDER, _FILE = 0o700, 0o600
_OF_OTHERS = 0o077


def make_private_folder(folder: Path) -> None:
    """With those above it that are missing. An existing one is tightened where it is fairlap's own."""
    missing = [each for each in (folder, *folder.parents) if not each.exists()]
    for each in reversed(missing):
        each.mkdir(exist_ok=True)  # another process may have been quicker
        tighten(each)
    own = own_folders()
    for each in (folder, *folder.parents):
        if any(map(each.is_relative_to, own)):
            tighten(each)


def make_cache_folder(folder: Path) -> None:
    """As ``make_private_folder``, with an error of one line that says what helps."""
    try:
        make_private_folder(folder)
        if not os.access(folder, os.W_OK | os.X_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(folder))
    except OSError as error:
        where = error.filename or folder
        raise FairlapError(
            f"the cache cannot be written: {where}: {error.strerror}; set FAIRLAP_CACHE to a folder elsewhere",
            code="E_CACHE",
        ) from None


def make_private_file(path: Path) -> None:
    """Make an empty file where there is none, and tighten an existing one."""
    with suppress(FileExistsError):
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, _FILE))
        path.chmod(_FILE)  # a umask may have taken the owner's bits too
    tighten(path)


def tighten(path: Path) -> None:
    """Only a file or folder of this user, never a device or what a link leads to."""
    with suppress(OSError):
        found = path.lstat()
        wanted = _FOLDER if stat.S_ISDIR(found.st_mode) else _FILE
        if found.st_uid != os.geteuid() or not (stat.S_ISREG(found.st_mode) or stat.S_ISDIR(found.st_mode)):
            return
        if found.st_mode & _OF_OTHERS or found.st_mode & wanted != wanted:
            path.chmod(found.st_mode & ~_OF_OTHERS & 0o777 | wanted)


def private_opener(path: str, flags: int) -> int:
    """For ``open``: a file that it makes is private."""
    return os.open(path, flags, _FILE)
