"""Write a board into a folder, which a web server or a repository's pages publish as it is."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import msgspec

from fairlap.board.board import Board, BoardDocument
from fairlap.board.pages import board_page, history_pages
from fairlap.errors import InvalidRequest
from fairlap.machine.files.atomic_files import write_output

CODE = "E_BOARD"
_DATA, _PAGE = "board.json", "index.html"
_OURS = {"bundles": "*.fairlap", "history": "*.html"}


def require_folder(folder: Path) -> None:
    """Refuse a folder with other things, whose files would be mixed with a board's."""
    if folder.exists() and not folder.is_dir():
        raise InvalidRequest(f"{folder} is not a folder; name one for the board", code=CODE)
    if not folder.is_dir() or not any(each for each in folder.iterdir() if not each.name.startswith(".")):
        return
    try:
        msgspec.json.decode((folder / _DATA).read_bytes(), type=BoardDocument)
    except (OSError, msgspec.MsgspecError):
        raise InvalidRequest(
            f"{folder} has files and is not a board of fairlap; name a new folder, or an empty one", code=CODE
        ) from None


def write_site(board: Board, folder: Path) -> None:
    """Write all pages and bundles, the first page last; bundles and histories of a former board are removed."""
    require_folder(folder)
    files: Mapping[str, bytes] = {
        **{f"bundles/{run}.fairlap": bundle.content for run, bundle in board.bundles.items()},
        **history_pages(board),
        _DATA: msgspec.json.format(msgspec.json.encode(board.document), indent=1) + b"\n",
        _PAGE: board_page(board),
    }
    try:
        for name in _OURS:
            (folder / name).mkdir(parents=True, exist_ok=True)
        for name, content in files.items():
            write_output(folder / name, content)
        for name, pattern in _OURS.items():
            for file in (folder / name).glob(pattern):
                if f"{name}/{file.name}" not in files:
                    file.unlink()
    except OSError as error:
        raise InvalidRequest(f"cannot write the board into {folder}: {error.strerror}", code=CODE) from None
