"""The prompts of a load on language models: a line of JSON for each, a text or the messages of a chat."""

from __future__ import annotations

import codecs
from pathlib import Path
from typing import Any

import msgspec

from fairlap.errors import InvalidRequest, reason_of
from fairlap.json_errors import NOT_THE_DOCUMENT

E_PROMPTS = "E_PROMPTS"
_MOST_BYTES = 256 * 2**20
_MOST_PROMPTS = 1_000_000


class Prompt(msgspec.Struct, frozen=True):
    """Either has a text, which is completed, or the messages of a chat, which is continued."""

    prompt: str | None = None
    messages: tuple[dict[str, Any], ...] | None = None

    @property
    def is_chat(self) -> bool:
        return self.messages is not None

    def beginning_with(self, text: str) -> Prompt:
        """Put a text before it, so that no server has seen how it begins."""
        if self.messages is None:
            return Prompt(prompt=f"{text} {self.prompt}")
        first, *others = self.messages
        content = first.get("content")
        changed = (
            [{"type": "text", "text": text}, *content]
            if isinstance(content, list)
            else f"{text} {content or ''}".strip()
        )
        return Prompt(messages=({**first, "content": changed}, *others))


def read_prompts(path: Path) -> tuple[Prompt, ...]:
    """Read a file such as ``{"prompt": "Once upon"}`` or ``{"messages": [{"role": "user", "content": "Hi"}]}``.

    Further fields of a line are ignored, blank lines too.
    """
    try:
        if path.stat().st_size > _MOST_BYTES:
            raise _refused(f"{path} is larger than {_MOST_BYTES // 2**20} MiB; give fewer prompts")
        lines = path.read_bytes().removeprefix(codecs.BOM_UTF8).splitlines()  # some editors of Windows begin with it
    except OSError as error:
        raise _refused(f"cannot read {path}: {reason_of(error)}") from None
    found = tuple(_prompt_in(line, f"{path}:{number}") for number, line in enumerate(lines, 1) if line.strip())
    if not 0 < len(found) <= _MOST_PROMPTS:
        raise _refused(f"{path} has {len(found):,} prompts; give 1 to {_MOST_PROMPTS:,}, a line of JSON for each")
    if len({each.is_chat for each in found}) > 1:
        raise _refused(f"{path} has both texts and chats, which are different work; give one file for each")
    return found


def _prompt_in(line: bytes, place: str) -> Prompt:
    try:
        prompt = msgspec.json.decode(line, type=Prompt)
    except NOT_THE_DOCUMENT as error:
        raise _refused(f"{place} is not a prompt ({error}); {_EXAMPLES}") from None
    if (prompt.prompt is None) == (prompt.messages is None) or prompt.messages == () or prompt.prompt == "":
        raise _refused(f"{place} needs either a prompt or messages; {_EXAMPLES}")
    return prompt


_EXAMPLES = 'write {"prompt": "Once upon"} or {"messages": [{"role": "user", "content": "Hi"}]}'


def _refused(message: str) -> InvalidRequest:
    return InvalidRequest(message, code=E_PROMPTS)
