"""Refuse SavedModels with operators that do more than compute.

TensorFlow has about 1,900 operators. Those that are known to reach nothing but tensors, variables and tables in memory
are listed; all others need trust. Those that save and restore variables are in every SavedModel: they may stay where
nothing runs them but TensorFlow's own loader, which says what is read.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from fairlap.errors import described
from fairlap.models.sources.contract import SourceError

_COMPUTE = frozenset([
    "Abs", "Acos", "Acosh", "Add", "AddN", "AddV2", "AdjustContrastv2", "AdjustHue", "AdjustSaturation", "All", "Any",
    "ApproximateEqual", "ArgMax", "ArgMin", "AsString", "Asin", "Asinh", "Assert", "Atan", "Atan2", "Atanh", "AvgPool",
    "AvgPool3D", "AvgPool3DGrad", "AvgPoolGrad", "BatchFFT", "BatchIFFT", "BatchMatMul", "BatchMatMulV2",
    "BatchMatMulV3", "BatchNormWithGlobalNormalization", "BatchToSpace", "BatchToSpaceND", "BesselI0", "BesselI0e",
    "BesselI1", "BesselI1e", "Betainc", "BiasAdd", "BiasAddGrad", "BiasAddV1", "Bincount", "Bitcast", "BitwiseAnd",
    "BitwiseOr", "BitwiseXor", "BroadcastArgs", "BroadcastGradientArgs", "BroadcastTo", "Bucketize", "Case", "Cast",
    "Ceil", "CheckNumerics", "CheckNumericsV2", "Cholesky", "ClipByValue", "CombinedNonMaxSuppression", "Complex",
    "ComplexAbs", "Concat", "ConcatOffset", "ConcatV2", "Conj", "ConjugateTranspose", "Const", "ControlTrigger",
    "Conv", "Conv2D", "Conv2DBackpropFilter", "Conv2DBackpropInput", "Conv3D", "Conv3DBackpropFilterV2",
    "Conv3DBackpropInputV2", "Cos", "Cosh", "CropAndResize", "Cross", "Cumprod", "Cumsum", "CumulativeLogsumexp",
    "DataFormatDimMap", "DataFormatVecPermute", "DenseBincount", "DepthToSpace", "DepthwiseConv2dNative",
    "DepthwiseConv2dNativeBackpropFilter", "DepthwiseConv2dNativeBackpropInput", "Dequantize", "Diag", "DiagPart",
    "Digamma", "Dilation2D", "Div", "DivNoNan", "DynamicPartition", "DynamicStitch", "Einsum", "Elu", "EluGrad",
    "Empty", "EnsureShape", "Enter", "Equal", "Erf", "Erfc", "Erfinv", "Exit", "Exp", "ExpandDims", "Expm1",
    "ExtractImagePatches", "ExtractVolumePatches", "FFT", "FFT2D", "FFT3D", "FakeQuantWithMinMaxArgs",
    "FakeQuantWithMinMaxVars", "FakeQuantWithMinMaxVarsPerChannel", "Fill", "Floor", "FloorDiv", "FloorMod",
    "FractionalAvgPool", "FractionalMaxPool", "FusedBatchNorm", "FusedBatchNormGradV3", "FusedBatchNormV2",
    "FusedBatchNormV3", "Gather", "GatherNd", "GatherV2", "Greater", "GreaterEqual", "GuaranteeConst", "HSVToRGB",
    "HistogramFixedWidth", "IFFT", "IFFT2D", "IFFT3D", "IRFFT", "IRFFT2D", "IRFFT3D", "Identity", "IdentityN", "If",
    "Igamma", "Igammac", "Imag", "ImageProjectiveTransformV2", "ImageProjectiveTransformV3", "InTopK", "InTopKV2",
    "Inv", "Invert", "InvertPermutation", "IsFinite", "IsInf", "IsNan", "L2Loss", "LRN", "LeakyRelu", "LeakyReluGrad",
    "LeftShift", "Less", "LessEqual", "Lgamma", "LinSpace", "ListDiff", "Log", "Log1p", "LogSoftmax", "LogicalAnd",
    "LogicalNot", "LogicalOr", "LoopCond", "LowerBound", "Lu", "MatMul", "MatrixBandPart", "MatrixDeterminant",
    "MatrixDiag", "MatrixDiagPart", "MatrixDiagPartV2", "MatrixDiagPartV3", "MatrixDiagV2", "MatrixDiagV3",
    "MatrixInverse", "MatrixSetDiag", "MatrixSetDiagV2", "MatrixSetDiagV3", "MatrixSolve", "MatrixSquareRoot",
    "MatrixTriangularSolve", "Max", "MaxPool", "MaxPool3D", "MaxPoolV2", "MaxPoolWithArgmax", "Maximum", "Mean",
    "Merge", "Min", "Minimum", "MirrorPad", "Mod", "Mul", "MulNoNan", "Multinomial", "Ndtri", "Neg", "NextAfter",
    "NextIteration", "NoOp", "NonMaxSuppression", "NonMaxSuppressionV2", "NonMaxSuppressionV3", "NonMaxSuppressionV4",
    "NonMaxSuppressionV5", "NonMaxSuppressionWithOverlaps", "NotEqual", "NthElement", "OneHot", "OnesLike", "Pack",
    "Pad", "PadV2", "ParallelDynamicStitch", "PartitionedCall", "Placeholder", "PlaceholderV2",
    "PlaceholderWithDefault", "Polygamma", "PopulationCount", "Pow", "PreventGradient", "Prod", "Qr",
    "QuantizeAndDequantize", "QuantizeAndDequantizeV2", "QuantizeAndDequantizeV3", "QuantizeAndDequantizeV4",
    "QuantizeV2", "RFFT", "RFFT2D", "RFFT3D", "RGBToHSV", "RaggedGather", "RaggedRange", "RaggedTensorToSparse",
    "RaggedTensorToTensor", "RandomStandardNormal", "RandomUniform", "RandomUniformInt", "Range", "Rank", "Real",
    "RealDiv", "Reciprocal", "Relu", "Relu6", "ReluGrad", "Reshape", "ResizeArea", "ResizeBicubic", "ResizeBilinear",
    "ResizeNearestNeighbor", "Reverse", "ReverseSequence", "ReverseV2", "RightShift", "Rint", "Roll", "Round", "Rsqrt",
    "ScaleAndTranslate", "ScatterNd", "ScatterNdNonAliasingAdd", "SegmentMax", "SegmentMaxV2", "SegmentMean",
    "SegmentMin", "SegmentMinV2", "SegmentProd", "SegmentProdV2", "SegmentSum", "SegmentSumV2", "Select", "SelectV2",
    "SelfAdjointEigV2", "Selu", "SeluGrad", "Shape", "ShapeN", "Sigmoid", "SigmoidGrad", "Sign", "Sin", "Sinh", "Size",
    "Slice", "Snapshot", "Softmax", "SoftmaxCrossEntropyWithLogits", "Softplus", "SoftplusGrad", "Softsign",
    "SpaceToBatch", "SpaceToBatchND", "SpaceToDepth", "SparseFillEmptyRows", "SparseReorder", "SparseReshape",
    "SparseSegmentMean", "SparseSegmentSqrtN", "SparseSegmentSum", "SparseSlice",
    "SparseSoftmaxCrossEntropyWithLogits", "SparseTensorDenseMatMul", "SparseToDense", "Split", "SplitV", "Sqrt",
    "Square", "SquaredDifference", "Squeeze", "StatefulPartitionedCall", "StatelessCase", "StatelessIf",
    "StatelessRandomGetAlg", "StatelessRandomGetKeyCounter", "StatelessRandomNormal", "StatelessRandomNormalV2",
    "StatelessRandomUniform", "StatelessRandomUniformInt", "StatelessRandomUniformIntV2", "StatelessRandomUniformV2",
    "StatelessTruncatedNormal", "StatelessTruncatedNormalV2", "StatelessWhile", "StaticRegexFullMatch", "StopGradient",
    "StridedSlice", "StridedSliceGrad", "StringJoin", "Sub", "Sum", "Svd", "Switch", "Tan", "Tanh", "TanhGrad",
    "TensorScatterAdd", "TensorScatterMax", "TensorScatterMin", "TensorScatterSub", "TensorScatterUpdate",
    "TensorStridedSliceUpdate", "Tile", "TopK", "TopKV2", "Transpose", "TridiagonalMatMul", "TridiagonalSolve",
    "TruncateDiv", "TruncateMod", "TruncatedNormal", "Unique", "UniqueV2", "UniqueWithCounts", "UniqueWithCountsV2",
    "Unpack", "UnravelIndex", "UnsortedSegmentMax", "UnsortedSegmentMin", "UnsortedSegmentProd", "UnsortedSegmentSum",
    "UpperBound", "Where", "While", "Xdivy", "Xlog1py", "Xlogy", "ZerosLike", "Zeta", "EmptyTensorList",
    "TensorListConcat", "TensorListConcatV2", "TensorListElementShape", "TensorListFromTensor", "TensorListGather",
    "TensorListGetItem", "TensorListLength", "TensorListPopBack", "TensorListPushBack", "TensorListReserve",
    "TensorListResize", "TensorListScatter", "TensorListScatterIntoExistingList", "TensorListScatterV2",
    "TensorListSetItem", "TensorListSplit", "TensorListStack", "TensorArrayCloseV3", "TensorArrayGatherV3",
    "TensorArrayReadV3", "TensorArrayScatterV3", "TensorArraySizeV3", "TensorArrayV3", "TensorArrayWriteV3", "Assign",
    "AssignAdd", "AssignAddVariableOp", "AssignSub", "AssignSubVariableOp", "AssignVariableOp", "DestroyResourceOp",
    "DisableCopyOnRead", "IsVariableInitialized", "ReadVariableOp", "ResourceGather", "ResourceGatherNd",
    "ResourceScatterAdd", "ResourceScatterNdAdd", "ResourceScatterNdUpdate", "ResourceScatterUpdate",
    "ResourceStridedSliceAssign", "VarHandleOp", "VarIsInitializedOp", "VariableShape", "VariableV2", "HashTableV2",
    "LookupTableExportV2", "LookupTableFindV2", "LookupTableImportV2", "LookupTableInsertV2", "LookupTableSizeV2",
    "MutableHashTableV2",
])  # fmt: skip
_OF_SAVERS = frozenset({"SaveV2", "RestoreV2", "MergeV2Checkpoints", "ShardedFilename"})
_INIT_COLLECTIONS = ("saved_model_main_op", "legacy_init_op")


def read_saved_model(folder: Path) -> Any:
    from tensorflow.core.protobuf import saved_model_pb2

    saved = saved_model_pb2.SavedModel()
    try:
        saved.ParseFromString((folder / "saved_model.pb").read_bytes())
    except OSError as error:
        raise SourceError(f"cannot read {folder}: {error.strerror}") from None
    except Exception as error:  # of protobuf, which has several implementations
        raise SourceError(f"{folder.name}/saved_model.pb is damaged: {described(error)}") from None
    return saved


def require_harmless(folder: Path) -> None:
    """Refuse harmful operators, since loading a SavedModel may run any of its operators."""
    for graph in read_saved_model(folder).meta_graphs:
        found = next(_reaching(graph), "")
        if found:
            raise SourceError(
                f"the model has the operator {found!r:.80}, which may reach files or run code; add --trust if you "
                "trust it",
                code="E_SOURCE_TRUST",
            )


def _reaching(graph: Any) -> Iterator[str]:
    functions = {each.signature.name: each for each in graph.graph_def.library.function}
    everything = [*graph.graph_def.node, *(node for each in functions.values() for node in each.node_def)]
    yield from (node.op for node in everything if not _known(node.op, functions))
    nodes = {node.name: node for node in graph.graph_def.node}
    run = _below(nodes, _run_by_name(graph), ())
    named = [*graph.object_graph_def.concrete_functions, *(name for node in run for name in _called(node, functions))]
    yield from (node.op for node in (*run, *_within(named, functions)) if node.op in _OF_SAVERS)
    yield from _restoring(graph.saver_def, nodes, functions)


def _known(name: str, functions: dict[str, Any]) -> bool:
    """Check an operator's name, which may also be that of a function."""
    return name in _COMPUTE or name in _OF_SAVERS or name in functions


def _run_by_name(graph: Any) -> list[str]:
    """List the tensors and operators that a loader runs: those of signatures, and the initial ones."""
    tensors = [each.name for own in graph.signature_def.values() for each in own.outputs.values()]
    tensors += [
        each.name
        for own in graph.signature_def.values()
        for packed in own.outputs.values()
        for each in packed.composite_tensor.components
    ]
    return tensors + [name for each in _INIT_COLLECTIONS for name in graph.collection_def[each].node_list.value]


def _restoring(saver: Any, nodes: dict[str, Any], functions: dict[str, Any]) -> Iterator[str]:
    """Find what else restoring runs.

    A loader of the first version of SavedModels runs this operator with the name of the variables' file.
    """
    given = _node_of(saver.filename_tensor_name)
    for node in _below(nodes, [saver.restore_op_name], (given,)):
        if node.op == "RestoreV2" and _node_of(node.input[0]) == given:
            continue
        if node.op in _OF_SAVERS:
            yield node.op
        called = _within(_called(node, functions), functions)
        yield from (inner.op for inner in called if inner.op in _OF_SAVERS - {"RestoreV2"})
        if given not in map(_node_of, node.input):
            yield from (inner.op for inner in called if inner.op in _OF_SAVERS)


def _below(nodes: dict[str, Any], names: list[str], stop: tuple[str, ...]) -> list[Any]:
    """Find the nodes with these names, and all that they are computed from."""
    found: dict[str, Any] = {}
    left = [_node_of(name) for name in names]
    while left:
        name = left.pop()
        if name in nodes and name not in found and name not in stop:
            found[name] = nodes[name]
            left += map(_node_of, nodes[name].input)
    return list(found.values())


def _within(names: list[str], functions: dict[str, Any]) -> list[Any]:
    """Find the nodes of these functions, and of all that they call."""
    known: set[str] = set()
    found, left = [], [name for name in names if name in functions]
    while left:
        name = left.pop()
        if name not in known:
            known.add(name)
            own = list(functions[name].node_def)
            found += own
            left += [each for node in own for each in _called(node, functions)]
    return found


def _called(node: Any, functions: dict[str, Any]) -> list[str]:
    names = [node.op, *(value.func.name for value in node.attr.values())]
    names += [each.name for value in node.attr.values() for each in value.list.func]
    return [name for name in names if name in functions]


def _node_of(tensor: str) -> str:
    return tensor.removeprefix("^").partition(":")[0]
