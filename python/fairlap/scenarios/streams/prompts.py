"""The prompts of a load on language models, a line of JSON for each: a text, messages of a chat, a conversation."""

from __future__ import annotations

import codecs
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import msgspec

from fairlap.errors import InvalidRequest, reason_of
from fairlap.json_errors import NOT_THE_DOCUMENT

E_PROMPTS = "E_PROMPTS"
MOST_TOKENS = 100_000
_MOST_BYTES = 256 * 2**20
_MOST_PROMPTS = 1_000_000


class Prompt(msgspec.Struct, frozen=True):
    """Either has a text, which is completed, or the messages of a chat, which is continued.

    Of a conversation, ``turns`` is what its user says: first, and after each answer.
    """

    prompt: str | None = None
    messages: tuple[dict[str, Any], ...] | None = None
    turns: tuple[str, ...] = ()
    tokens: Annotated[int, msgspec.Meta(ge=1, le=MOST_TOKENS)] | None = None  # of each answer

    @property
    def is_chat(self) -> bool:
        return self.messages is not None or bool(self.turns)

    @property
    def requests(self) -> int:
        return max(len(self.turns), 1)

    @property
    def first(self) -> Prompt:
        """What is sent first."""
        if not self.turns:
            return Prompt(self.prompt, self.messages)
        return Prompt(messages=(*(self.messages or ()), {"role": "user", "content": self.turns[0]}))

    def after(self, answer: str, says: str) -> Prompt:
        """Continue a chat with the server's own answer, and what its user says then."""
        more = ({"role": "assistant", "content": answer}, {"role": "user", "content": says})
        return Prompt(messages=(*(self.messages or ()), *more))

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

    @property
    def words(self) -> int:
        """Of its texts, which is about the number of its tokens."""
        contents = [self.prompt] if self.messages is None else [each.get("content") for each in self.messages]
        return sum(map(_words_in, contents))


def _words_in(content: Any) -> int:
    if isinstance(content, list):
        return sum(_words_in(part.get("text")) for part in content if isinstance(part, dict))
    return len(content.split()) if isinstance(content, str) else 0


def numbered_lines(path: Path) -> Iterator[tuple[int, bytes]]:
    """Read the lines of a file that are not blank."""
    try:
        if path.stat().st_size > _MOST_BYTES:
            raise _refused(f"{path} is larger than {_MOST_BYTES // 2**20} MiB; give a part of it")
        lines = path.read_bytes().removeprefix(codecs.BOM_UTF8).splitlines()  # some editors of Windows begin with it
    except OSError as error:
        raise _refused(f"cannot read {path}: {reason_of(error)}") from None
    found = [(number, line) for number, line in enumerate(lines, 1) if line.strip()]
    if not 0 < len(found) <= _MOST_PROMPTS:
        raise _refused(f"{path} has {len(found):,} lines; give 1 to {_MOST_PROMPTS:,}, one for each request")
    return iter(found)


def read_prompts(path: Path) -> tuple[Prompt, ...]:
    """Read a file such as ``{"prompt": "Once upon"}`` or ``{"messages": [{"role": "user", "content": "Hi"}]}``.

    Further fields of a line are ignored, blank lines too.
    """
    found = tuple(_prompt_in(line, f"{path}:{number}") for number, line in numbered_lines(path))
    if len({each.is_chat for each in found}) > 1:
        raise _refused(f"{path} has both texts and chats, which are different work; give one file for each")
    return found


def _prompt_in(line: bytes, place: str) -> Prompt:
    try:
        prompt = msgspec.json.decode(line, type=Prompt)
    except NOT_THE_DOCUMENT as error:
        raise _refused(f"{place} is not a prompt ({error}); {_EXAMPLES}") from None
    if (prompt.prompt is None) != prompt.is_chat or prompt.prompt == "":
        raise _refused(f"{place} needs either a prompt or messages; {_EXAMPLES}")
    if prompt.messages == () or "" in prompt.turns:
        raise _refused(f"{place} has no messages, or an empty turn; {_EXAMPLES}")
    return prompt


_EXAMPLES = 'write {"prompt": "Once upon"} or {"messages": [{"role": "user", "content": "Hi"}]}'


def _refused(message: str) -> InvalidRequest:
    return InvalidRequest(message, code=E_PROMPTS)
