"""What a server reports of its prefix cache: how many tokens of the prompts it did not have to read again."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from fairlap import quantity_text
from fairlap.engine.measurement import Notice
from fairlap.request.fields.streams import StreamLoad
from fairlap.scenarios.streams.streams_found import Counts

if TYPE_CHECKING:
    from fairlap.scenarios.streams.answers import Answer

WARM_CACHE = "W_WARM_CACHE"
_BEYOND_ASKED = 0.1  # the words of a template, which all chats begin with, and rounding to blocks


def reported_share(answers: Iterable[Answer]) -> float:
    """Of the tokens of their prompts, by the server's count; 0 where it does not count them."""
    counted = [each for each in answers if each.cached_tokens is not None and each.prompt_tokens]
    return sum(each.cached_tokens or 0 for each in counted) / max(sum(each.prompt_tokens for each in counted), 1)


def warnings_of_cache(found: Counts, load: StreamLoad) -> list[Notice]:
    """Warn where more of the prompts was cached than was asked for; conversations and traces have it by nature."""
    cached, shared = found.cached_share, load.shared_prefix
    if not cached or shared is None or load.requests_in_a_session > 1:
        return []
    if cached <= (0 if shared == 1 else shared) + _BEYOND_ASKED:
        return []
    new = "sent as they are" if shared == 1 else f"of which {quantity_text.share(1 - shared)} were new"
    text = f"it took {quantity_text.share(cached)} of the tokens of all prompts from its cache, {new}"
    return [Notice(WARM_CACHE, text)]
