"""A user's own model as it is requested: what names it, and what its inputs are bound to."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from pathlib import Path

import msgspec

from fairlap.errors import InvalidRequest
from fairlap.request.fields.data.corruption import Corruption
from fairlap.request.fields.data.stored_data import PREFIX_OF_DATA, split_settings
from fairlap.request.fields.data.table_column import with_file
from fairlap.request.fields.sizes.mix import Mix
from fairlap.suggestions import did_you_mean

CODE = "E_SHAPES"
PREFIX_OF_TRANSFORMERS = "hf:"  # then a folder, or a config.json
PREFIX_OF_CALLABLES = "callable:"  # then the reference of callables, module:function
PREFIX_OF_DERIVATIVES = "derivative:"  # then the mode, and module:function
CHECKOUT_VARIABLE = "FAIRLAP_CHECKOUT"  # of a process: the folder in which it finds module:function first
_CODE = ".py"
_CALLABLE = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*(\.[A-Za-z_]\w*)*")
_MOST_SIZE = 2**31
_LEAST_ANSWER = 2  # tokens: the first comes of the prompt, so there is nothing between tokens before
_SHAPE = re.compile(r"\s*(?P<name>[^:=\[\],]+(?::\d+)?)[:=]?(?P<sizes>\[[\d,\s]*\]|(?<=[:=])\d+(?:x\d+)*)\s*(?:,|$)")
_NUMBER = r"-?(?:\d+(?:\.\d+)?|\.\d+)(?:[eE][-+]?\d+)?"
_RANGE = re.compile(rf"(?P<name>.+?)[:=](?P<low>{_NUMBER})\.\.(?P<high>{_NUMBER})")
_DIMENSION = re.compile(r"(?P<name>.+)[:=]\s*(?P<size>\d+)")
_ANSWER = re.compile(r"\s*(?:(\d+)\+)?(\d+):(\d+)\s*")

Shape = tuple[str, tuple[int, ...]]
Range = tuple[str, int | float, int | float]
Form = tuple[str, tuple[int, ...], str]  # name, sizes, type


class Source(msgspec.Struct, frozen=True):
    """A file, a folder or ``module:function``. Equal sources with equal files are the same work."""

    text: str  # as the user wrote it
    path: str  # an absolute path, hf: and one, module:function, or callable: or derivative:jvp: and one of those
    folder: str = ""  # the current folder, where modules and scripts of the user are found
    shapes: tuple[Shape, ...] = ()
    dims: tuple[tuple[str, int], ...] = ()
    batch: int | None = None  # the first size of every input that leaves it open
    ranges: tuple[Range, ...] = ()  # both ends included
    inputs: str = ""  # an absolute path, or file.py:function; of callables module:function, which draws their arguments
    trust: bool = False  # code in the file may run
    metrics: tuple[str, ...] = ()  # of the answers to all items of the inputs
    labels: str = ""  # an absolute path, or one of a table and a column: for the metrics, or for the loss
    groups: str = ""  # the same: the group of each item, for the metrics
    corruptions: tuple[Corruption, ...] = ()  # of the inputs, under which the metrics are computed too
    loss: str = ""  # whose gradients are taken: a name, or module:function
    among_others: bool = False  # of one request, which may name dimensions that this one lacks
    files: tuple[tuple[str, str], ...] = ()  # all that was read, with its SHA-256, once it was; none of a module
    peer: str = ""  # the contestant that serves as the reference of callables where the user named none
    checkout: str = ""  # the absolute path of the folder in which that contestant, or a model, is found first
    mix: Mix | None = None  # the sizes of its calls, where they change from call to call; ``dims`` has the usual one
    generate: tuple[int, int] | None = None  # how many tokens it reads at first, and then answers with one by one
    shared: int = 0  # tokens of the prompt with which all prompts begin
    mask: str = ""  # an input that tells values from padding, which it takes besides its own where calls are padded
    unconverted: bool = False  # opened for its inputs and answers alone, so nothing is converted for other frameworks
    exports: tuple[str, ...] = ()  # absolute paths of further files of the same model; ``path`` is the first one
    export: int = 0  # the number of the file that a contestant runs
    like: tuple[Form, ...] = ()  # of such a further file: the inputs of the first one, which its own stand for
    custom_ops: str = ""  # an absolute path: the library of custom operators with which an ONNX file is opened
    exported: bool = False  # one of several files, which is not converted for frameworks that do not read it

    @property
    def shown(self) -> str:
        """Name in messages what is opened."""
        return self.path.removeprefix(PREFIX_OF_CALLABLES) if self.of_callables else self.text

    @property
    def identity(self) -> Source:
        """What defines the work: the content of the files, not their place or how the user wrote it.

        What answers are compared with, and scored by, does not define it.
        """
        found = with_paths(self, lambda path: "")
        return msgspec.structs.replace(
            found,
            text="" if self.files else self.text,
            path=found.path if not self.of_callables else PREFIX_OF_CALLABLES,
            trust=False,
            metrics=(),
            groups="",
            corruptions=(),
            among_others=False,
            files=tuple(sorted(found.files)),
            peer="",
            export=0,
            custom_ops="",
        )

    @property
    def file_names(self) -> tuple[str, ...]:
        """Name each of several files, as briefly as they differ; none where the model is one file."""
        if not self.exports:
            return ()
        texts = [text.strip().rstrip("/") for text in self.text.split(",")]
        brief = tuple(text.rpartition("/")[2] for text in texts)
        return brief if len(set(brief)) == len(brief) else tuple(texts)

    def of_file(self, name: str) -> Source:
        """Select one of several files."""
        if name not in self.file_names:
            listed = did_you_mean(name, self.file_names) or f"the files are {', '.join(self.file_names) or self.text}"
            raise InvalidRequest(f"{self.text} has no file {name!r}; {listed}", code="E_CONTESTANT")
        return msgspec.structs.replace(self, export=self.file_names.index(name))

    @property
    def at_each_size(self) -> tuple[Source, ...]:
        """The same model at each size of its calls, one size each; empty where they have one.

        Contestants are prepared from the usual one alone, so the others are not converted.
        """
        if self.mix is None:
            return ()
        fixed = {name: size for name, size in self.dims if name not in self.mix.names}
        dims = [tuple({**fixed, **dict(self.mix.dims(place))}.items()) for place in range(len(self.mix.sizes))]
        return tuple(
            msgspec.structs.replace(self, dims=each, mix=None, unconverted=dict(each) != dict(self.dims))
            for each in dims
        )

    @property
    def of_callables(self) -> bool:
        """Whether it is no model: callables, whose answers are compared with those of a reference."""
        return self.path.startswith(PREFIX_OF_CALLABLES)

    @property
    def of_data(self) -> bool:
        """Whether it is no model: data on disk, over which input pipelines race."""
        return self.path.startswith(PREFIX_OF_DATA)

    @property
    def answer_text(self) -> str:
        """Write as ``answer_in`` reads it; empty where it does not generate."""
        if self.generate is None:
            return ""
        prompt, answer = self.generate
        return f"{self.shared}+{prompt - self.shared}:{answer}" if self.shared else f"{prompt}:{answer}"

    @property
    def name(self) -> str:
        """With what distinguishes it from other works of the same file."""
        if self.of_callables:
            return f"{self.text}[{','.join([self.inputs, *(f'{name}={size}' for name, size in self.dims)])}]"
        bound = [f"{name}:{'x'.join(map(str, sizes))}" for name, sizes in self.shapes]
        changing = () if self.mix is None else self.mix.names
        bound += [f"{name}={size}" for name, size in self.dims if name not in changing]
        bound += [] if self.batch is None else [f"batch={self.batch}"]
        bound += [f"generate={self.answer_text}"] if self.generate else []
        return f"{self.text}[{','.join(bound)}]" if bound else self.text


def is_callable_name(text: str) -> bool:
    """Whether this is ``module:function``, as far as its form shows. ``net.py`` is a file, not a module of net."""
    return _CALLABLE.fullmatch(text) is not None and not text.partition(":")[0].endswith(_CODE)


def why_no_callable(text: str) -> str:
    """Name the module in place of ``net.py:make``; empty where the text is of another form."""
    name, colon, function = text.rpartition(":")
    if not colon or not name.endswith(_CODE) or not is_callable_name(f"net:{function}"):
        return ""
    file = Path(name)
    if not file.is_file():
        return f"there is no file {name}"
    if not is_callable_name(f"{file.stem}:{function}"):
        return f"{name} cannot be imported under this name; rename it, with letters, digits and _ alone"
    where = "" if file.parent == Path() else f" in the folder {file.parent}"
    return f"{name} is a file; name its module: {file.stem}:{function}{where}"


def path_parts(path: str) -> tuple[str, str, str]:
    """Split a source's path into what comes before the place of its file or folder, that, and settings after it."""
    if path.startswith(PREFIX_OF_DATA):
        return (PREFIX_OF_DATA, *split_settings(path.removeprefix(PREFIX_OF_DATA)))
    prefix = PREFIX_OF_TRANSFORMERS if path.startswith(PREFIX_OF_TRANSFORMERS) else ""
    return prefix, path.removeprefix(prefix), ""


def with_paths(source: Source, changed: Callable[[str], str]) -> Source:
    """Every path changed. A module is found in the folder, and stays as it is."""
    prefix, bare, settings = path_parts(source.path)
    script, colon, function = source.inputs.rpartition(":")
    inputs = f"{changed(script)}:{function}" if colon and script.endswith(".py") else source.inputs
    is_path = bool(inputs) and inputs == source.inputs and not source.of_callables
    return msgspec.structs.replace(
        source,
        path=prefix + changed(bare) + settings if "/" in bare else source.path,
        folder=changed(source.folder),
        inputs=changed(inputs) if is_path else inputs,
        labels=with_file(source.labels, changed),
        groups=with_file(source.groups, changed),
        checkout=changed(source.checkout) if source.checkout else "",
        custom_ops=changed(source.custom_ops) if source.custom_ops else "",
        exports=tuple(map(changed, source.exports)),
        files=tuple((changed(path), digest) for path, digest in source.files),
    )


def shapes_in(text: str) -> tuple[Shape, ...]:
    """``ids:8x128,mask:[8,128]``; ``ids[8,128]`` and ``ids=8x128`` are read too."""
    found: list[Shape] = []
    place = 0
    while place < len(text):
        match = _SHAPE.match(text, place)
        if match is None:
            raise InvalidRequest(f"{text!r} is not a list of shapes such as ids:8x128,mask:[8,128]", code=CODE)
        sizes = tuple(_size(part, text) for part in re.findall(r"\d+", match["sizes"]))
        found.append((match["name"].strip(), sizes))
        place = match.end()
    return _each_once(found, "input")


def dims_in(text: str) -> tuple[tuple[str, int], ...]:
    """``batch=8,sequence=128``; ``batch:8`` is read too, and a name may have such signs in it."""
    found = []
    for part in filter(None, (part.strip() for part in text.split(","))):
        match = _DIMENSION.fullmatch(part)
        if match is None or not match["name"].strip():
            raise InvalidRequest(f"{part!r} is not a dimension such as batch=8", code=CODE)
        found.append((match["name"].strip(), _size(match["size"], part)))
    return _each_once(found, "dimension")


def range_in(text: str) -> Range:
    """``ids:0..30521`` or ``pixels:0..0.5``, both ends included."""
    match = _RANGE.fullmatch(text.strip())
    if match is None or _number(match["low"]) > _number(match["high"]):
        raise InvalidRequest(f"{text!r} is not a range such as ids:0..30521 or pixels:0..1", code=CODE)
    return match["name"], _number(match["low"]), _number(match["high"])


def answer_in(text: str) -> tuple[tuple[int, int], int]:
    """``128:32`` or ``96+32:32``: tokens of a prompt and of its answer, and with how many of them all prompts begin."""
    match = _ANSWER.fullmatch(text)
    if match is None:
        raise InvalidRequest(f"{text!r} is not a prompt and an answer in tokens, such as 128:32", code=CODE)
    shared = _size(match[1], text) if match[1] else 0
    prompt, answer = shared + _size(match[2], text), _size(match[3], text)
    if answer < _LEAST_ANSWER:
        raise InvalidRequest(
            f"{text}: an answer has at least {_LEAST_ANSWER} tokens; race the model without --generate to time a "
            "prompt alone",
            code=CODE,
        )
    return (prompt, answer), shared


def _number(text: str) -> int | float:
    return int(text) if text.lstrip("-").isdecimal() else float(text)


def _size(text: str, whole: str) -> int:
    size = int(text) if len(text) <= len(str(_MOST_SIZE)) else _MOST_SIZE
    if not 1 <= size < _MOST_SIZE:
        raise InvalidRequest(f"{whole!r}: a size must be between 1 and {_MOST_SIZE - 1} (got {text})", code=CODE)
    return size


def _each_once(found: Iterable[tuple], what: str) -> tuple:  # type: ignore[type-arg]
    pairs = tuple(found)
    names = [name for name, _ in pairs]
    for name in names:
        if names.count(name) > 1:
            raise InvalidRequest(f"{what} {name!r} is given twice", code=CODE)
    return pairs
