"""The published schemas of all documents that commands print with --json: ``python -m fairlap.cli.schemas``."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import msgspec

from fairlap.bisection.bisection import Bisection
from fairlap.board.board import BoardDocument
from fairlap.cli import catalogue
from fairlap.cli.commands import explain
from fairlap.cli.commands.decisions import suite
from fairlap.cli.commands.machine import doctor, envs, floor, roofs
from fairlap.cli.commands.stored_runs import bundle, runs_attach, verify
from fairlap.cli.races import conversion
from fairlap.cli.races.self_test_trials import SelfTestDocument
from fairlap.compression.forms import Compression
from fairlap.engine.measurement import MeasurementDocument
from fairlap.errors import FairlapError
from fairlap.history.gate import GateDocument
from fairlap.history.recheck import Recheck
from fairlap.history.runs_differ import RunsDiffer
from fairlap.history.stale import Staleness
from fairlap.json_schemas import plain_schema
from fairlap.judgement.judgement import Judgement
from fairlap.judgement.ledger import Ledger
from fairlap.machine.files.atomic_files import write_output
from fairlap.printed_document import ErrorDocument
from fairlap.race.planning.plan import Plan
from fairlap.render.across.document import RunsAcross
from fairlap.render.trends.document import HistoryDocument
from fairlap.results.choice.choice import Choice
from fairlap.results.row import RowsDocument
from fairlap.scenarios.callables.axes.axes_document import AxesDocument
from fairlap.scenarios.callables.comparison_document import ComparisonDocument
from fairlap.scenarios.callables.untrusted.document import UntrustedDocument
from fairlap.scenarios.collectives.results.collectives_result import CollectivesResult
from fairlap.scenarios.mistakes.results.mistakes_result import MistakesResult
from fairlap.stability.table import StabilityTable
from fairlap.store.runs.run_file import RunDocument
from fairlap.store.search import RunSummaries
from fairlap.store.shared.sending import CarriedRuns
from fairlap.suite.suite_document import SuiteDocument
from fairlap.sweep.summary import SweepDocument, SweepPlans
from fairlap.watch.run import ReadingsOfInterval

FOLDER = Path("docs/reference/schemas")

# By the commands that print it.
DOCUMENTS: dict[str, type[msgspec.Struct]] = {
    "compare, load, rerun, show": RunDocument,
    "compare --dry-run, load --dry-run": Plan,
    "time MODULE:CALLABLE": MeasurementDocument,
    "time with several callables": ComparisonDocument,
    "time --axis": AxesDocument,
    "time --untrusted": UntrustedDocument,
    "suite run, suite show": SuiteDocument,
    "suite list": suite.SuiteList,
    "sweep": SweepDocument,
    "sweep --dry-run": SweepPlans,
    "convert": conversion.Proof,
    "compress": Compression,
    "list models": catalogue.ModelList,
    "list operations": catalogue.OperationList,
    "list data": catalogue.DataList,
    "list frameworks": catalogue.FrameworkList,
    "list routes": catalogue.ListedRoutes,
    "list devices": catalogue.DeviceList,
    "list suites": catalogue.SuiteNames,
    "list prices": catalogue.PriceList,
    "envs": envs.EnvironmentList,
    "doctor": doctor.Examination,
    "floor": floor.Floors,
    "roofs": roofs.RoofsDocument,
    "collectives": CollectivesResult,
    "stability": StabilityTable,
    "mistakes": MistakesResult,
    "watch, a line for each interval": ReadingsOfInterval,
    "self-test": SelfTestDocument,
    "explain": explain.AllCodes,
    "explain CODE": explain.ExplainedCode,
    "choose": Choice,
    "judge": Judgement,
    "judge, the file of --ledger": Ledger,
    "bisect": Bisection,
    "runs": RunSummaries,
    "runs attach": runs_attach.AttachedFiles,
    "runs push, runs pull": CarriedRuns,
    "history": HistoryDocument,
    "stale": Staleness,
    "rerun --recheck": Recheck,
    "diff": RunsDiffer,
    "across": RunsAcross,
    "gate": GateDocument,
    "export": RowsDocument,
    "bundle": bundle.WrittenBundle,
    "board": BoardDocument,
    "verify": verify.VerificationDocument,
    "every command, instead of its document": ErrorDocument,
}


def schema_name(document: type[msgspec.Struct]) -> str:
    """Return the name and the version, such as ``fairlap.gate/1``."""
    return str(document.__struct_config__.tag)


def file_name(document: type[msgspec.Struct]) -> str:
    return f"{schema_name(document).removeprefix('fairlap.').partition('/')[0]}.schema.json"


def schema_of(document: type[msgspec.Struct]) -> dict[str, Any]:
    """Fields that are not in it may be added without a new version, so a reader ignores what it does not know."""
    head = {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": schema_name(document)}
    return head | plain_schema(document)


def write_schemas(folder: Path) -> None:
    for document in DOCUMENTS.values():
        text = msgspec.json.format(msgspec.json.encode(schema_of(document)), indent=1)
        write_output(folder / file_name(document), text + b"\n")


if __name__ == "__main__":
    try:
        write_schemas(FOLDER)
    except FairlapError as error:
        sys.exit(f"{error}; run it from the top of the repository")
