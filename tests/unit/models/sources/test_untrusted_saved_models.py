"""A SavedModel has operators that compute, or needs trust."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fairlap.errors import FairlapError
from fairlap.models.sources.tensorflow_files.tensorflow_operators import read_saved_model, require_harmless
from hostile_files import saved_model_that, saved_model_that_reads, saved_model_that_writes
from machine_marks import needs_package
from onnx_files import opened, source_of

pytestmark = needs_package("tensorflow")


def refusal(folder: Path) -> FairlapError:
    with pytest.raises(FairlapError) as refused:
        require_harmless(folder)
    assert refused.value.code == "E_SOURCE_TRUST"
    return refused.value


def test_a_data_set_that_is_written_to_a_file_needs_trust(tmp_path: Path) -> None:
    target = tmp_path / "target"
    folder = saved_model_that_writes(tmp_path / "net", target)
    with pytest.raises(FairlapError) as refused:
        opened(source_of(folder), tmp_path)
    assert refused.value.code == "E_SOURCE_TRUST"
    assert not target.exists()


@pytest.mark.parametrize("link", ["variables/variables.data-00000-of-00001", "assets", "fingerprint.pb"])
def test_a_link_out_of_its_folder_needs_trust(tmp_path: Path, link: str) -> None:
    folder = saved_model_that(tmp_path / "net", lambda x: x * 2.0)
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret").write_text("secret")
    if (folder / link).is_dir():
        (folder / link).rmdir()
    (folder / link).unlink(missing_ok=True)
    (folder / link).symlink_to(outside if link == "assets" else outside / "secret")
    with pytest.raises(FairlapError) as refused:
        opened(source_of(folder), tmp_path)
    assert refused.value.code == "E_SOURCE_TRUST"


@pytest.mark.parametrize("kind", ["pipe", "loop", "device"])
def test_what_is_neither_a_file_nor_a_folder_is_not_waited_for(tmp_path: Path, kind: str) -> None:
    folder = saved_model_that(tmp_path / "net", lambda x: x * 2.0)
    member = folder / "variables" / "variables.index"
    member.unlink(missing_ok=True)
    if kind == "pipe":
        os.mkfifo(member)
    else:
        member.symlink_to("variables.index" if kind == "loop" else "/dev/zero")
    with pytest.raises(FairlapError) as refused:
        opened(source_of(folder, trust=True), tmp_path)
    assert refused.value.code == "E_SOURCE"


def test_the_refusal_names_the_operator(tmp_path: Path) -> None:
    (tmp_path / "secret").write_bytes(b"four")
    assert "'ImmutableConst'" in str(refusal(saved_model_that_reads(tmp_path / "net", tmp_path / "secret")))


def of_rows(dataset: Callable[[Any, str], Any]) -> Callable[[Path, str], Path]:
    def saved(folder: Path, file: str) -> Path:
        def act(x: Any) -> Any:
            import tensorflow as tf

            rows = tf.data.experimental.get_single_element(dataset(tf, file).take(1))
            return x + tf.cast(tf.strings.length(tf.reshape(rows, [])), tf.float32)

        return saved_model_that(folder, act)

    return saved


@pytest.mark.parametrize(
    "dataset",
    [
        lambda tf, file: tf.data.experimental.CsvDataset([file], [tf.string]),
        lambda tf, file: tf.data.TextLineDataset([file]),
        lambda tf, file: tf.data.experimental.SqlDataset("sqlite", file, "select 1", (tf.string,)),
        lambda tf, file: tf.data.Dataset.list_files(file, shuffle=False),
    ],
)
def test_data_sets_need_trust(tmp_path: Path, dataset: Callable[[Any, str], Any]) -> None:
    (tmp_path / "secret").write_text("1\n")
    refusal(of_rows(dataset)(tmp_path / "net", str(tmp_path / "secret")))


def test_restoring_from_another_file_within_a_call_needs_trust(tmp_path: Path) -> None:
    def restored(x: Any) -> Any:
        import tensorflow as tf

        path = str(tmp_path / "others")
        return x + tf.raw_ops.RestoreV2(prefix=path, tensor_names=["w"], shape_and_slices=[""], dtypes=[tf.float32])[0]

    assert "'RestoreV2'" in str(refusal(saved_model_that(tmp_path / "net", restored)))


def changed(folder: Path, change: Callable[[Any], None]) -> Path:
    saved = read_saved_model(folder)
    change(saved.meta_graphs[0])
    (folder / "saved_model.pb").write_bytes(saved.SerializeToString())
    return folder


def doubled(x: Any) -> Any:
    return x * 2.0


def add_saving(graph: Any, name: str) -> None:
    """Add an operator that saves a constant into a file of its own choice."""
    import tensorflow as tf

    with tf.Graph().as_default() as own:
        tf.raw_ops.SaveV2(
            prefix="elsewhere", tensor_names=["w"], shape_and_slices=[""], tensors=[tf.constant(1.0)], name=name
        )
    graph.graph_def.node.extend(own.as_graph_def().node)


def test_saving_as_an_initial_operator_needs_trust(tmp_path: Path) -> None:
    def change(graph: Any) -> None:
        add_saving(graph, "evil")
        graph.collection_def["saved_model_main_op"].node_list.value.append("evil")

    assert "'SaveV2'" in str(refusal(changed(saved_model_that(tmp_path / "net", doubled), change)))


def test_saving_where_variables_are_restored_needs_trust(tmp_path: Path) -> None:
    def change(graph: Any) -> None:
        add_saving(graph, "evil")
        graph.saver_def.restore_op_name = "evil"

    assert "'SaveV2'" in str(refusal(changed(saved_model_that(tmp_path / "net", doubled), change)))


def test_a_saver_that_is_a_function_of_the_model_needs_trust(tmp_path: Path) -> None:
    def change(graph: Any) -> None:
        saver = next(
            each for each in graph.graph_def.library.function if any(node.op == "SaveV2" for node in each.node_def)
        )
        own = graph.object_graph_def.concrete_functions
        own[saver.signature.name].CopyFrom(next(iter(own.values())))

    refusal(changed(saved_model_that(tmp_path / "net", doubled), change))


@pytest.mark.slow
def test_layers_of_keras_as_they_are_exported_need_no_trust(tmp_path: Path) -> None:
    keras = pytest.importorskip("keras")
    if keras.backend.backend() != "tensorflow":
        pytest.skip("Keras has another backend in this process")
    layers = keras.layers
    picture, words = keras.Input((16, 16, 3)), keras.Input((6,), dtype="int32")
    x = layers.Conv2D(4, 3, padding="same", activation="relu")(picture)
    x = layers.DepthwiseConv2D(3)(layers.BatchNormalization()(x))
    x = layers.UpSampling2D(interpolation="bilinear")(layers.MaxPooling2D()(x))
    x = layers.Conv2DTranspose(4, 3)(layers.ZeroPadding2D()(x))
    x = layers.GlobalAveragePooling2D()(layers.LayerNormalization()(layers.GroupNormalization(2)(x)))
    y = layers.Embedding(20, 8)(words)
    y = layers.MultiHeadAttention(2, 4)(y, y)
    y = layers.Bidirectional(layers.LSTM(4, return_sequences=True))(y)
    y = layers.Conv1D(4, 2, activation="gelu")(layers.GRU(4, return_sequences=True)(y))
    y = layers.Dropout(0.5)(layers.SimpleRNN(4)(layers.LeakyReLU()(y)))
    joined = layers.Dense(3, activation="softmax")(layers.Concatenate()([x, y]))
    keras.Model([picture, words], joined).export(str(tmp_path / "net"), verbose=False)
    require_harmless(tmp_path / "net")


def test_the_first_form_of_saved_models_needs_no_trust(tmp_path: Path) -> None:
    """Its graph has the saver, which its loader runs by name."""
    import tensorflow as tf

    v1 = tf.compat.v1
    with tf.Graph().as_default(), v1.Session() as session:
        x = v1.placeholder(tf.float32, (2, 4), name="x")
        kernel = v1.get_variable("kernel", (4, 3), use_resource=False)
        y = tf.matmul(x, kernel)
        session.run(v1.global_variables_initializer())
        v1.saved_model.simple_save(session, str(tmp_path / "net"), {"x": x}, {"y": y})
    require_harmless(tmp_path / "net")
    loaded = tf.saved_model.load(str(tmp_path / "net")).signatures["serving_default"]
    assert loaded(x=tf.constant(np.ones((2, 4), np.float32)))["y"].shape == (2, 3)
