"""The loss that a user's own model is trained by, as it is requested."""

from __future__ import annotations

from fairlap.errors import InvalidRequest
from fairlap.request.fields.source import is_callable_name
from fairlap.suggestions import with_hint

CODE = "E_LOSS"
CROSS_ENTROPY, MSE = "cross_entropy", "mse"
_NAMED = (CROSS_ENTROPY, MSE)


def loss_in(text: str) -> str:
    """Return a loss's name, or ``module:function``."""
    if text in _NAMED or is_callable_name(text):
        return text
    wrong = f"{text!r} is not a loss; use {', '.join(_NAMED)} or module:function"
    raise InvalidRequest(with_hint(wrong, text, _NAMED), code=CODE)
