"""A race as a user requests it, on the command line or in a request file.

``python -m fairlap.request.race_request`` writes the JSON schema of request files.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

import msgspec
from msgspec import field

from fairlap.errors import FairlapError, InvalidRequest
from fairlap.json_schemas import plain_schema
from fairlap.machine.files.atomic_files import write_output
from fairlap.request.commands import Commands
from fairlap.request.fields.load import LoadRequest
from fairlap.request.fields.scale import Scaling
from fairlap.request.names import NO_CONTESTANTS, Contestants, Devices
from fairlap.request.toml_file import converted, parsed_toml
from fairlap.request.units import LargestSlowdown, Seconds, Share
from fairlap.request.work import Conditions, FreshBlocks, Mode, Precision

MOST_BLOCKS = 10_000  # of each kind of conditions and each work
DEFAULT_BUDGET_S = 60.0
LONGEST_BY_DEFAULT_S = 150.0  # of a race without a budget in which too few blocks for a claim have run
DEFAULT_BLOCKS_WITH_TARGET = 60
BLOCKS_UNTIL_DECIDED = 200
MOST_EPOCHS_BY_DEFAULT = 50
PROFILE_PROCESSES = 3
MOST_BATCH = 2**20
MAX_BATCH_BUDGET_S = 120.0
BEST_BUDGET_S = 60.0
BLOCKS_OF_ONE_CONTESTANT = 12  # there is nothing to decide
_Each = TypeVar("_Each")
_Some = Annotated[tuple[_Each, ...], msgspec.Meta(min_length=1)]
_AtLeast0 = Annotated[int, msgspec.Meta(ge=0)]
_AtLeast1 = Annotated[int, msgspec.Meta(ge=1)]


def _about(meaning: str) -> msgspec.Meta:
    return msgspec.Meta(description=meaning)


class RaceOptions(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is open when the plan is drawn already, too: when to stop, and what to write."""

    target: Annotated[Share | None, _about('Stop when every interval is within this share: 0.01 or "1%".')] = None
    budget: Annotated[
        Seconds | None,
        _about('Stop before this duration has passed: seconds, or "10m". 60 by default, without blocks.'),
    ] = None
    baseline: Annotated[str, _about("The contestant that rows are compared with; the fastest by default.")] = ""
    price: Annotated[str, _about('The price of an hour, "1.212/h", or a name in the table of prices.')] = ""
    require: Annotated[
        str,
        _about(
            'Mark who qualifies: "latency_p99<20ms, memory<4GB, cost<0.02"; or bound changes against the baseline, or '
            'the first contestant, as a gate does: "memory_peak<=+2%".'
        ),
    ] = ""
    use: Annotated[str, _about('Recommend a contestant for a use: "edge", "cloud" or "research".')] = ""
    remote: Annotated[
        bool, _about("Send inputs to servers on other machines too, for contestants such as http://10.0.0.5:8000/x.")
    ] = False
    pass_env: Annotated[
        tuple[str, ...],
        _about(
            "Names of variables to pass to contestants although they look like tokens, keys or passwords, such as "
            "HF_TOKEN. The others are passed anyway."
        ),
    ] = ()
    keep_weights: Annotated[
        Path | None,
        _about("With to_score: a folder for the weights that each contestant learnt, as safetensors files."),
    ] = None
    trace: Annotated[
        Path | None, _about("With profile: a folder for what the profilers recorded, as traces that Perfetto opens.")
    ] = None
    wait: Annotated[
        bool, _about("Wait while another race uses the same cores or GPU; false makes that an error (E_BUSY).")
    ] = True
    output: Annotated[
        tuple[Path, ...], _about("Files to write; the suffix decides the format. Relative to the current folder.")
    ] = ()


class RaceRequest(RaceOptions, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Every combination of model, mode, precision, batch, threads and processes is raced."""

    models: Annotated[
        _Some[str],
        _about(
            "Models to race; see `fairlap list models`. Or operations, such as conv-*; see `fairlap list operations`. "
            "Or your own, such as model.onnx. Without one, commands are raced."
        ),
    ] = ()
    contestants: Annotated[Contestants, _about('Contestants, such as "torch:compile" or "jax==0.4.30".')] = (
        NO_CONTESTANTS
    )
    commands: Annotated[
        Commands,
        _about(
            'Programs to race, by name: "./old --size 10", or {run = "./old", folder = "../base"}. No shell is used; '
            "{report} is replaced with the path of a file for its report."
        ),
    ] = {}
    same_output: Annotated[bool, _about("Disqualify commands that print something else than the first one.")] = False
    reported: Annotated[
        str | None,
        _about(
            "Race commands by the time that each reports of its work: google-benchmark, pyperf, hyperfine, criterion "
            'or number; "pyperf:NAME" picks a benchmark of the report. By wall time by default.'
        ),
    ] = None
    batch: Annotated[int | _Some[int] | None, _about("Items in one call; the model's own by default.")] = None
    mode: Annotated[
        Mode | _Some[Mode],
        _about("Inference, gradients, steps of training, solving, derivatives, simulation, or updates of agents."),
    ] = "infer"
    optimizer: Annotated[
        str | None, _about('In mode train: "sgd:lr=0.01,momentum=0.9" or "adamw:lr=0.001"; the model\'s by default.')
    ] = None
    loss: Annotated[
        str | None,
        _about(
            "In modes grad and train, of your own model: cross_entropy, mse, or a function of outputs and labels, "
            "module:function."
        ),
    ] = None
    schedule: Annotated[
        str | None,
        _about('Of the learning rate: "cosine:steps=1000,warmup=100", "linear:steps=1000"; constant by default.'),
    ] = None
    start_from: Annotated[
        str | None,
        _about('In mode train: start from these weights, "weights.safetensors" or "weights.safetensors@sha256:HEX".'),
    ] = None
    to_score: Annotated[
        Share | None,
        _about(
            'In mode train: train until this score on held-out items, "97%": right answers, or R squared of values.'
        ),
    ] = None
    train_on: Annotated[
        str | None,
        _about(
            'With to_score: the data, a set of `fairlap list data`, "file.csv:column", a .parquet or .npz file, or a '
            "folder of images; the model's own by default."
        ),
    ] = None
    fraction: Annotated[
        Share | None, _about('With to_score: learn from this share of the items, "5%"; from all by default.')
    ] = None
    epochs: Annotated[int | None, _about("With to_score: for so many epochs at most; 50 by default.")] = None
    count_evaluation: Annotated[
        bool,
        _about("With to_score: each contestant answers the held-out items after each epoch, and that time counts too."),
    ] = False
    precision: Annotated[
        Precision | _Some[Precision] | None,
        _about("The precision of the computation; fp32 by default, and fp64 where equations are solved."),
    ] = None
    across_precisions: Annotated[
        bool, _about("Rank contestants of all these precisions together, each contestant once in each.")
    ] = False
    max_drop: Annotated[
        Share | None,
        _about('Rank only contestants whose score fell, or else whose error grew, by at most this against fp32: "1%".'),
    ] = None
    device: Annotated[
        Devices, _about('cpu, cuda or cuda:N; with processes also "cuda:0,cuda:1", one for each; cpu by default.')
    ] = field(default_factory=lambda: Devices("cpu"))
    data: Annotated[
        str | None, _about('Data to feed to the calls: "synthetic", or a .npy file or folder; none by default.')
    ] = None
    shapes: Annotated[
        tuple[str, ...], _about('Of the inputs of your own model, "ids:8x128,mask:8x128"; each item races separately.')
    ] = ()
    dims: Annotated[str | None, _about('Sizes of named dimensions of your own model: "batch=8,sequence=128".')] = None
    shapes_from: Annotated[
        str | None,
        _about(
            "Sizes of calls: a CSV file with a row for each, whose columns are named dimensions, or a distribution, "
            '"seq=lognormal(4,0.5):8..512"; the race is over this mix of sizes.'
        ),
    ] = None
    items: Annotated[
        str | None,
        _about(
            "Of your own model: a folder with a file for each answer. All from file to answer is timed, with the "
            "functions of before and after."
        ),
    ] = None
    before: Annotated[
        str | tuple[str, ...],
        _about(
            "With items: functions, module:function, from the path of a file to the inputs of the model, each on what "
            "the one before returned."
        ),
    ] = ()
    after: Annotated[
        str | tuple[str, ...],
        _about("With items: functions from the outputs of the model, as NumPy arrays, to the answer."),
    ] = ()
    generate: Annotated[
        str | None,
        _about(
            "Let your own model of transformers, or a GGUF file, answer: tokens of the prompt and of the answer, "
            '"128:32"; '
            'with "96+32:32" all prompts begin with the same 96.'
        ),
    ] = None
    inputs: Annotated[
        str | None,
        _about(
            "Inputs of your own model: a .npz or .npy file, a test_data_set folder, or file.py:function. Of callables, "
            "the function that draws the arguments of a call, module:function."
        ),
    ] = None
    reference: Annotated[
        str | None,
        _about(
            "Of callables, with inputs: what their answers are compared with, module:function; the first by default."
        ),
    ] = None
    ranges: Annotated[
        tuple[str, ...], _about('What is drawn for inputs of your own model: "ids:0..30521", "pixels:0..255".')
    ] = ()
    metric: Annotated[
        str | tuple[str, ...],
        _about(
            "Metrics of the answers to all inputs, or of what was learnt with to_score: top1, top5, precision, recall, "
            "f1, f1@CLASS, mcc, roc_auc, perplexity, brier, ece, mse, mae, r2, pearson, spearman, exact_match, "
            'span_f1, hit@K, ndcg@K, bleu, chrf, wer, ctc_cer, ctc_wer@ID, map, oi_map; or "top1:OUTPUT".'
        ),
    ] = ()
    labels: Annotated[
        str | None,
        _about(
            "The right answers for the metrics or the loss, one for each item: a .npy file; for metrics also a column "
            'of numbers, "people.csv:income"; for map, COCO\'s .json.'
        ),
    ] = None
    groups: Annotated[
        str | None,
        _about(
            'Of each item, its group: a column of a CSV, TSV or Parquet file, "people.csv:sex", or a .npy file. Scores '
            "are reported by group, and whether contestants change any group more than the others."
        ),
    ] = None
    corrupt: Annotated[
        str | tuple[str, ...],
        _about(
            "Corruptions of the inputs under which the metrics are computed too, and whether contestants lose more "
            'there: "fog", "fog:3", of a kind "noise", "blur", "light" or "files", "all", or "typos" for texts.'
        ),
    ] = ()
    trust: Annotated[
        bool,
        _about("Allow your own model's file to run code when it is loaded. Refused in a request file: add --trust."),
    ] = False
    threads: Annotated[
        int | _Some[int] | None,
        _about("Threads of every contestant; all cores that a quota allows by default. With several, each is raced."),
    ] = None
    processes: Annotated[
        int | _Some[int] | None,
        _about("Processes that share each step or batch of a contestant, its ranks; each number is raced."),
    ] = None
    scaling: Annotated[
        Scaling | None,
        _about("With processes: all ranks share one batch (strong, the default), or each rank has one (weak)."),
    ] = None
    hosts: Annotated[
        _Some[str] | None,
        _about("With processes: the hosts that ranks are spread over, in turn; this machine by default."),
    ] = None
    blocks: Annotated[
        Annotated[int, msgspec.Meta(ge=1, le=MOST_BLOCKS)] | None,
        _about("A fixed number of new processes for every contestant, instead of as many as it takes to decide."),
    ] = None
    only_winner: Annotated[bool, _about("Compare only the fastest with the others, and stop when it is known.")] = False
    max_slowdown: Annotated[
        LargestSlowdown | None,
        _about(
            'With baseline: go on until it is shown whether each other contestant is slower by more than this: "3%".'
        ),
    ] = None
    conditions: Annotated[
        Conditions | Literal["both"],
        _about("Controlled: cores bound, the same memory behaviour for all. As-found: untouched. Or both in turn."),
    ] = "controlled"
    seconds: Annotated[Seconds, _about('Time measured in each process: seconds, or "500ms"; 0.4 by default.')] = field(
        default_factory=lambda: Seconds(0.4)
    )
    cache: Annotated[
        Literal["warm", "cold"], _about("The L2 cache of the GPU before each call; cold: written over, and not timed.")
    ] = "warm"
    regime: Annotated[
        Literal["burst", "sustained"] | None,
        _about("Rest the GPU before each measurement (burst), or load it until its clock is steady (sustained)."),
    ] = None
    lock_clocks: Annotated[
        str, _about('Lock the clock of the GPU for the length of the race, which needs root: "base", or MHz.')
    ] = ""
    seed: Annotated[_AtLeast0 | None, _about("Draws orders and settings of processes; random by default.")] = None
    data_seed: Annotated[
        _AtLeast0 | None,
        _about("Draws weights and inputs; by default three take turns from block to block, or five with to_score."),
    ] = None
    fresh: FreshBlocks = "every"
    sandbox: Annotated[
        bool,
        _about(
            "Confine contestants: no network, no files to read but their model's, Python's and the system's, and "
            "none to write but temporary ones."
        ),
    ] = False
    memory_limit_bytes: Annotated[_AtLeast1 | None, _about("Largest address space of a worker.")] = None
    recompile: Annotated[
        int | str | tuple[int | str, ...],
        _about(
            "Report what compiling did, and call each contestant on other inputs too, in separate processes that are "
            'not timed: at these batches, sizes of the model such as "tokens=64", or types such as "float64".'
        ),
    ] = ()
    count_allocations: Annotated[
        bool, _about("Count how often a call of each contestant allocates memory, and how much; compare both.")
    ] = False
    min_memory: Annotated[
        bool, _about("Search for the smallest memory in which each contestant runs, after the blocks.")
    ] = False
    profile: Annotated[
        bool,
        _about("Show in which operators each contestant spends its time, from untimed processes after the blocks."),
    ] = False
    max_batch: Annotated[
        Annotated[int, msgspec.Meta(ge=1, le=MOST_BATCH)] | None,
        _about("After the blocks, search for the largest batch of each contestant, up to this one."),
    ] = None
    max_batch_budget: Annotated[
        Seconds | None, _about("With max_batch: stop each of these searches after this duration; 120 s by default.")
    ] = None
    best_budget: Annotated[
        Seconds | None,
        _about('Stop the search for the settings of each contestant such as "torch:best" after this; 60 s by default.'),
    ] = None
    scenario_settings: Annotated[
        dict[str, str], _about('Settings of scenarios that installed packages add, by name: {pause = "2s"}.')
    ] = {}
    load: Annotated[
        LoadRequest | None,
        _about("Search for the largest rate of requests that each contestant serves under a bound on their latency."),
    ] = None


def read_request(path: Path) -> RaceRequest:
    return request_from(path, parsed_toml(path, "the request file"))


def request_from(path: Path, values: dict[str, Any]) -> RaceRequest:
    """Take what was parsed from this file."""
    request = converted(path, values, RaceRequest)
    for key, given in (("models", request.models), ("contestants", request.contestants)):
        if not given and not request.commands:
            raise InvalidRequest(f"{path}: {key} is missing", code="E_TOML")
    if request.trust:
        raise InvalidRequest(
            f"{path}: a file cannot allow code to run; leave trust out, and add --trust on the command line",
            code="E_SOURCE_TRUST",
        )
    return request


FILE = Path("docs/reference/request.schema.json")

_PARSED_SCHEMAS: dict[type, dict[str, Any]] = {
    Share: {"type": ["number", "string"]},
    LargestSlowdown: {"type": ["number", "string"]},
    Seconds: {"type": ["number", "string"]},
    Devices: {"type": "string", "pattern": r"^(cpu|cuda(:\d{1,2})?(,cuda:\d{1,2})*)$"},
    Contestants: {"type": "array", "minItems": 1, "items": {"type": "string"}},
    Path: {"type": "string"},
}


def schema_text(kind: type[msgspec.Struct] = RaceRequest) -> str:
    schema = plain_schema(kind, schema_hook=_PARSED_SCHEMAS.__getitem__)
    return msgspec.json.format(msgspec.json.encode(schema), indent=2).decode() + "\n"


if __name__ == "__main__":
    try:
        write_output(FILE, schema_text().encode())
    except FairlapError as error:
        sys.exit(f"{error}; run it from the top of the repository")
