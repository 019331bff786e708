"""Secrets in texts: logins in addresses, signed queries, and tokens that are known by their form.

They are hidden where a text enters fairlap (names, replies of workers, errors, variables) and where a plan is written.

A secret of another form, in a place that no name marks as one, cannot be recognised. A text of megabytes may be made to
cost time, so every repetition that another part follows has a bound.
"""

from __future__ import annotations

import re

HIDDEN = "*hidden*"

_PREFIXED = (
    r"gh[pousr]_[A-Za-z0-9]{16,}",  # GitHub
    r"github_pat_[A-Za-z0-9_]{16,}",
    r"gl(?:pat|dt|rt|cbt|ptt|soat)-[A-Za-z0-9_.-]{16,}",  # GitLab
    r"(?:AKIA|ASIA|AROA|AIDA)[A-Z0-9]{16}",  # AWS
    r"AIza[A-Za-z0-9_-]{30,}",  # Google
    r"ya29\.[A-Za-z0-9_-]{16,}",
    r"hf_[A-Za-z0-9]{16,}",  # Hugging Face
    r"sk-[A-Za-z0-9_-]{16,}",  # OpenAI, Anthropic and others
    r"nvapi-[A-Za-z0-9_-]{16,}",
    r"pypi-[A-Za-z0-9_-]{16,}",
    r"npm_[A-Za-z0-9]{30,}",
    r"xox[a-z]-[A-Za-z0-9-]{8,}",  # Slack
    r"eyJ[A-Za-z0-9_-]{5,1000}\.[A-Za-z0-9_-]{4,1000}(?:\.[A-Za-z0-9_-]*)?",  # JSON Web Token
)
_TOKEN = re.compile(r"(?<![A-Za-z0-9])(?:" + "|".join(_PREFIXED) + ")")
_AUTHORIZATION = re.compile(
    r"\b(?P<scheme>Bearer|Basic(?=\S{0,3}\s{0,9}\S{0,200}[\d=]))(?P<between>\s+|%20|\+)[A-Za-z0-9._~+/=-]{8,}",
    re.IGNORECASE,
)
_SCHEME = r"(?<![A-Za-z0-9+.-])[A-Za-z][A-Za-z0-9+.-]{0,30}://"
# To the last @: a slash in a password is not valid in an address, but people write it there.
_LOGIN_OF_ADDRESS = re.compile(r"(?P<scheme>\b(?:https?|ftps?|git|ssh)://)[^\s,\"'<>]{0,300}@", re.IGNORECASE)
_PASSWORD_OF_ADDRESS = re.compile(
    rf"(?P<user>{_SCHEME}[^\s,\"'<>:/@]{{0,200}}):[^\s,\"'<>]{{0,300}}@",
)
# As curl -u and rsync take it. What follows another @ of fairlap's own names, as of a file with its hash, is no host.
_LOGIN = re.compile(
    r"(?<![A-Za-z0-9_./:@=+-])(?P<user>[A-Za-z_][A-Za-z0-9_.+-]*):[^\s,:@/\\\"'<>=]{3,}@(?!sha256:)(?=[A-Za-z0-9\[])"
)
_NAMED = r"(?:password|passwd|passphrase|secret|token|(?:api|access|private)[_-]?key|signature|credential|sig|auth)"
_SHORT = r"(?<![A-Za-z0-9])(?:pass|pwd)"  # not the end of another word
_QUERY = re.compile(
    rf"(?P<name>[?&;#][A-Za-z0-9_.-]{{0,60}}(?:{_NAMED}|{_SHORT}|(?<![A-Za-z0-9])key)=)[^\s&;#\"'<>,]+", re.IGNORECASE
)
_WHOLE_QUERY = re.compile(rf"(?P<address>{_SCHEME}[^\s?#\"'<>]{{0,400}})[?][^\s\"'<>]+")
# In quotes to the closing one. A double quote without a backslash may end a string of JSON: what follows it is then
# punctuation.
_QUOTED = r"(?:'[^'\n]{3,200}(?=')|\\\"[^\"\\\n]{3,200}(?=\\\")|\"[^\s\"'\\<>{}\[\],:]{3,200}(?=\"))"
_OPENING_QUOTE = re.compile(r"^\\?[\"']")
_BOUND = r"(?:--)?(?:first|per)[_-]token\b"  # of the time of a token, which is no secret
_OPTION = re.compile(
    rf"(?P<name>(?<![\w-])(?!{_BOUND})--?[A-Za-z0-9_-]{{0,60}}(?:{_NAMED}|{_SHORT})(?:=-?|\s{{1,9}}))"
    rf"(?:{_QUOTED}|[^\s\"'\\<>-][^\s\"'\\<>]{{4,}})",
    re.IGNORECASE,
)
_ASSIGNED = re.compile(
    rf"(?P<name>(?<![A-Za-z0-9_])[A-Z0-9_]{{0,60}}(?:{_NAMED.upper()}|(?<=_)(?:PASS|PWD))=)"
    rf"(?:{_QUOTED}|[^\s\"'\\<>,;&]{{4,}})"
)
_ASSIGNED_KEY = re.compile(  # of any name; values of keys have digits
    r"(?P<name>(?<![A-Za-z0-9_])[A-Z0-9_]{0,60}(?:KEY|PASS|PW)=)(?=[^\s\"'\\<>,;&]{0,400}\d)[^\s\"'\\<>,;&]{6,}"
)
_LOGIN_OPTION = re.compile(
    r"(?P<name>(?<![\w-])(?:-u|--user|--proxy-user)[= ]\s{0,9}[^\s:\"']{1,200}:)[^\s\"'\\<>]{3,}"
)
_SPOKEN = re.compile(r"(?P<name>\b(?:password|passwd|passphrase)\s{0,3}:\s{1,3})[^\s\"'\\<>]{4,}", re.IGNORECASE)
_SETTING = re.compile(  # as a file of settings or a connection string has it
    r"(?P<name>(?<![A-Za-z0-9_])[a-z0-9_]{0,60}(?:password|passwd|passphrase|secret|(?:api|access|private)_?key|"
    r"(?:access|api|auth|bearer|id|refresh|session|security)_token)=)[^\s\"'\\<>,;&]{4,}",
    re.IGNORECASE,
)
_FIELD = re.compile(  # of JSON, or of what Python prints of a dictionary
    rf"(?P<name>(?P<quote>\\?[\"'])(?!{_BOUND})[A-Za-z0-9_-]{{0,60}}(?:password|passwd|passphrase|secret|token|"
    r"(?:api|access|private)[_-]?key)(?P=quote)\s{0,3}:\s{0,3}(?P=quote))[^\"'\\\n]{1,400}(?=(?P=quote))",
    re.IGNORECASE,
)
_OF_AZURE = re.compile(r"(?P<name>\b(?:AccountKey|SharedAccessKey|SharedAccessSignature)=)[^\s\"'\\<>,;]{4,}")
_NETRC = re.compile(r"(?P<name>\blogin\s{1,9}\S{1,200}\s{1,9}password\s{1,9})[^\s\"'\\<>]+")
_HEADER = re.compile(
    r"(?P<name>\b(?:X-[A-Za-z-]{0,60}(?:Key|Token|Auth)|(?:Proxy-)?Authorization|Set-Cookie|Cookie)"
    r"\s{0,9}:\s{0,9}(?:(?:Basic|Bearer|Token|Digest|ApiKey|Key|OAuth|Negotiate|NTLM|Hawk|SSWS)\s{1,9}(?=\S))?)"
    r"[^\s\"'\\<>]{4,}(?:(?<=;)[ ][^\s\"'\\<>]{1,4000}){0,50}",
    re.IGNORECASE,
)
_PATTERNS = (
    *(_QUERY, _OPTION, _LOGIN_OPTION, _ASSIGNED, _ASSIGNED_KEY, _SETTING, _SPOKEN, _FIELD),
    *(_OF_AZURE, _NETRC, _HEADER),
)
_SPELT = (
    "@ ? & ; ghp_ gho_ ghu_ ghs_ ghr_ github_pat_ glpat- gldt- glrt- glcbt- glptt- glsoat- akia asia aroa aida"
    " aiza ya29. hf_ sk- nvapi- pypi- npm_ xox eyj bearer basic pass pwd pw= secret token key sig cred auth cookie"
    " -u user"
)
_SIGNS = tuple(_SPELT.split(" "))
"""One of them is in every text that holds a secret."""


def without_secrets(text: str) -> str:
    """Hide the secrets of a text; a text that was treated before is unchanged, and JSON stays JSON."""
    lower = text.lower()
    if not any(sign in lower for sign in _SIGNS):
        return text
    text = _PASSWORD_OF_ADDRESS.sub(rf"\g<user>:{HIDDEN}@", text)
    text = _LOGIN.sub(rf"\g<user>:{HIDDEN}@", text)
    text = _AUTHORIZATION.sub(rf"\g<scheme>\g<between>{HIDDEN}", text)
    for pattern in _PATTERNS:
        text = pattern.sub(_without_its_value, text)
    return _TOKEN.sub(HIDDEN, text)


def _without_its_value(found: re.Match[str]) -> str:
    name = found["name"]
    [quote] = _OPENING_QUOTE.findall(found.group()[len(name) :])[:1] or [""]
    return f"{name}{quote}{HIDDEN}"


def without_secrets_or_queries(text: str) -> str:
    """For messages, which need no part of an address but its host and path."""
    return without_secrets(_WHOLE_QUERY.sub(rf"\g<address>?{HIDDEN}", _LOGIN_OF_ADDRESS.sub(r"\g<scheme>...@", text)))


def json_without_secrets(encoded: bytes) -> bytes:
    return without_secrets(encoded.decode()).encode()
