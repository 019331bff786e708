"""Loops as a user of TensorFlow writes them: the first argument is the scenario, the second the number of threads."""

import json
import os
import sys
from functools import partial
from itertools import pairwise

import numpy as np
import tensorflow as tf
from timing import (
    of_items,
    run,
    search_largest_rate,
    time_calls,
    time_fed_batches,
    time_requests,
    time_steps_of_epochs,
    warm_up,
)
from two_ranks import TwoRanks

PADDING = [[0, 0], [1, 1], [1, 1], [0, 0]]


class ConvNet(tf.Module):
    def __init__(self, channels=(3, 32, 64, 64)):
        super().__init__()
        self.convs = [
            (
                tf.Variable(tf.random.normal((3, 3, inward, outward), stddev=(2 / (9 * inward)) ** 0.5)),
                tf.Variable(tf.zeros(outward)),
            )
            for inward, outward in pairwise(channels)
        ]
        self.head = tf.Variable(tf.random.normal((channels[-1], 10), stddev=channels[-1] ** -0.5))
        self.bias = tf.Variable(tf.zeros(10))

    def __call__(self, image):
        hidden = tf.transpose(image, (0, 2, 3, 1))
        for stride, (kernel, shift) in zip((1, 2, 2), self.convs, strict=True):
            hidden = tf.nn.relu(tf.nn.bias_add(tf.nn.conv2d(tf.pad(hidden, PADDING), kernel, stride, "VALID"), shift))
        return tf.matmul(tf.reduce_mean(hidden, axis=(1, 2)), self.head) + self.bias


def images(batch):
    return tf.random.normal((batch, 3, 64, 64)), tf.random.uniform((batch,), maxval=10, dtype=tf.int32)


def loss_of(model, image, labels):
    return tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels, model(image)))


def latency():
    image, _ = images(8)
    call = tf.function(ConvNet().__call__, autograph=False).get_concrete_function(image)
    time_calls(lambda: call(image))


def grad():
    model = ConvNet()

    @tf.function(autograph=False)
    def gradients(image, labels):
        with tf.GradientTape() as tape:
            loss = loss_of(model, image, labels)
        return loss, tape.gradient(loss, model.trainable_variables)

    batch = images(8)
    call = gradients.get_concrete_function(*batch)
    time_calls(lambda: call(*batch))


def stepping(model, rate, image, labels):
    weights = model.trainable_variables
    momenta = [tf.Variable(tf.zeros_like(weight), trainable=False) for weight in weights]

    @tf.function(autograph=False)
    def step(image, labels):
        with tf.GradientTape() as tape:
            loss = loss_of(model, image, labels)
        for weight, momentum, gradient in zip(weights, momenta, tape.gradient(loss, weights), strict=True):
            tf.raw_ops.ResourceApplyMomentum(
                var=weight.handle, accum=momentum.handle, lr=rate, grad=gradient, momentum=0.9
            )
        return loss

    call = step.get_concrete_function(image, labels)
    call.kept = momenta
    return call


def train():
    batch = images(8)
    time_calls(partial(stepping(ConvNet(), 1e-4, *batch), *batch))


def to_score():
    """Time steps of whole epochs on the digits."""
    from sklearn.datasets import load_digits

    digits = load_digits()
    pixels, labels = (digits.images / 16).astype(np.float32)[:, None], digits.target.astype(np.int32)
    first = tf.constant(pixels[:32]), tf.constant(labels[:32])
    step = stepping(ConvNet((1, 16, 32, 32)), 0.1, *first)
    warm_up(partial(step, *first))

    draw = np.random.default_rng()

    def batches():
        order = draw.permutation(1437)[: 1437 // 32 * 32].reshape(-1, 32)
        return [(tf.constant(pixels[places]), tf.constant(labels[places])) for places in order]

    time_steps_of_epochs(step, batches)


def fed():
    """Time batches that are taken from a large array in random order."""
    data = np.random.default_rng().standard_normal((680, 3, 64, 64)).astype(np.float32)
    call = tf.function(ConvNet().__call__, autograph=False).get_concrete_function(images(8)[0])
    time_fed_batches(data, call, tf.constant)


def one_image():
    call = tf.function(ConvNet().__call__, autograph=False).get_concrete_function(images(1)[0])
    return of_items(call, lambda: images(1)[0])


def at_rate():
    time_requests(one_image())


def largest_rate():
    search_largest_rate(one_image())


LAYERS, HEADS, WIDTH, VOCABULARY, CONTEXT, PROMPT, ANSWER = 3, 4, 64, 96, 64, 32, 16


class Linear(tf.Module):
    def __init__(self, inward, outward):
        super().__init__()
        self.weight, self.bias = (
            tf.Variable(tf.random.normal((inward, outward), stddev=0.02)),
            tf.Variable(tf.zeros(outward)),
        )

    def __call__(self, hidden):
        return tf.nn.bias_add(tf.matmul(hidden, self.weight), self.bias)


class Norm(tf.Module):
    def __init__(self):
        super().__init__()
        self.scale, self.shift = tf.Variable(tf.ones(WIDTH)), tf.Variable(tf.zeros(WIDTH))

    def __call__(self, hidden):
        mean, variance = tf.nn.moments(hidden, axes=[-1], keepdims=True)
        return tf.nn.batch_normalization(hidden, mean, variance, self.shift, self.scale, 1e-5)


class Block(tf.Module):
    """The tokens are rows of one matrix: a stack of matrices times a matrix is slow in TensorFlow."""

    def __init__(self):
        super().__init__()
        self.before, self.between = Norm(), Norm()
        self.qkv, self.out = Linear(WIDTH, 3 * WIDTH), Linear(WIDTH, WIDTH)
        self.wide, self.narrow = Linear(WIDTH, 4 * WIDTH), Linear(4 * WIDTH, WIDTH)

    def __call__(self, hidden, past):
        query, key, value = (
            tf.transpose(tf.reshape(part, (1, hidden.shape[0], HEADS, WIDTH // HEADS)), (0, 2, 1, 3))
            for part in tf.split(self.qkv(self.before(hidden)), 3, axis=1)
        )
        if past is not None:
            key, value = tf.concat((past[0], key), axis=2), tf.concat((past[1], value), axis=2)
        scores = tf.matmul(query, key, transpose_b=True) * (WIDTH // HEADS) ** -0.5
        if past is None:
            scores += tf.constant(np.triu(np.full((PROMPT, PROMPT), -np.inf), 1), tf.float32)
        attended = tf.transpose(tf.matmul(tf.nn.softmax(scores), value), (0, 2, 1, 3))
        hidden += self.out(tf.reshape(attended, (hidden.shape[0], WIDTH)))
        return hidden + self.narrow(tf.nn.gelu(self.wide(self.between(hidden)), approximate=True)), (key, value)


class Characters(tf.Module):
    def __init__(self):
        super().__init__()
        self.tokens = tf.Variable(tf.random.normal((VOCABULARY, WIDTH)))
        self.places = tf.Variable(tf.random.normal((CONTEXT, WIDTH)))
        self.blocks, self.last = [Block() for _ in range(LAYERS)], Norm()

    def __call__(self, tokens, caches=(None,) * LAYERS):
        words = self.tokens.read_value()
        known = 0 if caches[0] is None else tf.shape(caches[0][0])[2]
        hidden = tf.gather(words, tokens[0]) + self.places[known : known + tokens.shape[1]]
        hidden = tf.ensure_shape(hidden, (tokens.shape[1], WIDTH))
        kept = []
        for block, past in zip(self.blocks, caches, strict=True):
            hidden, cache = block(hidden, past)
            kept.append(cache)
        return tf.argmax(tf.matmul(self.last(hidden[-1:]), words, transpose_b=True), axis=-1), kept


def generation():
    """Time an answer: a prompt of 32 characters and 16 more, each read before the next is asked for."""
    model = Characters()
    prompt = tf.random.uniform((1, PROMPT), maxval=VOCABULARY, dtype=tf.int32)
    token, cache = tf.TensorSpec((1, 1), tf.int32), tf.TensorSpec((1, HEADS, None, WIDTH // HEADS), tf.float32)
    # Not of model.__call__: a concrete function takes 0.26 ms to find the default of an argument that is left out.
    first = tf.function(lambda tokens: model(tokens), autograph=False).get_concrete_function(prompt)
    following = tf.function(model.__call__, autograph=False).get_concrete_function(token, [(cache, cache)] * LAYERS)

    def answer():
        chosen, caches = first(prompt)
        for _ in range(ANSWER - 1):
            chosen, caches = following(tf.constant([[int(chosen.numpy()[0])]]), caches)
        return int(chosen.numpy()[0])

    time_calls(answer)


def ranks():
    """Time a step that two workers share."""
    both = TwoRanks()
    workers = [f"127.0.0.1:{os.environ[port]}" for port in ("MASTER_PORT", "AGREEMENT_SECOND_PORT")]
    os.environ["TF_CONFIG"] = json.dumps(
        {"cluster": {"worker": workers}, "task": {"type": "worker", "index": both.number}}
    )
    strategy = tf.distribute.MultiWorkerMirroredStrategy()
    with strategy.scope():
        model = ConvNet()
        momenta = [tf.Variable(tf.zeros_like(weight), trainable=False) for weight in model.trainable_variables]

    def own_step(image, labels):
        weights = model.trainable_variables
        with tf.GradientTape() as tape:
            loss = loss_of(model, image, labels)
        means = tf.distribute.get_replica_context().all_reduce(
            tf.distribute.ReduceOp.MEAN, tape.gradient(loss, weights)
        )
        for weight, momentum, gradient in zip(weights, momenta, means, strict=True):
            tf.raw_ops.ResourceApplyMomentum(
                var=weight.handle, accum=momentum.handle, lr=1e-4, grad=gradient, momentum=0.9
            )
        return loss

    batch = images(4)
    step = tf.function(lambda *batch: strategy.run(own_step, batch), autograph=False)
    both.time_steps(partial(step.get_concrete_function(*batch), *batch))


def of_a_user(mode):
    """Time calls, gradients or steps of a model that a user of Keras has written."""
    import keras
    import users_keras

    model, optimizer = users_keras.network(), keras.optimizers.SGD(1e-4, momentum=0.9)
    image = tf.random.normal((8, 64, 64, 3))
    labels = tf.random.uniform((8,), maxval=10, dtype=tf.int32)
    optimizer.build(model.trainable_variables)

    def loss_in(image, labels, training):
        return tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels, model(image, training=training)))

    def gradients(image, labels):
        with tf.GradientTape() as tape:
            loss = loss_in(image, labels, training=False)
        return loss, tape.gradient(loss, model.trainable_variables)

    def step(image, labels):
        with tf.GradientTape() as tape:
            loss = loss_in(image, labels, training=True)
        optimizer.apply(tape.gradient(loss, model.trainable_variables), model.trainable_variables)
        return loss

    call = {"infer": lambda image, labels: model(image, training=False), "grad": gradients, "train": step}[mode]
    concrete = tf.function(call).get_concrete_function(image, labels)
    time_calls(lambda: concrete(image, labels))


if __name__ == "__main__":
    threads = int(sys.argv[2])
    tf.config.threading.set_intra_op_parallelism_threads(threads)
    tf.config.threading.set_inter_op_parallelism_threads(1)
    scenarios = (latency, grad, train, to_score, fed, at_rate, largest_rate, generation, ranks)
    users = {f"network_{mode}": partial(of_a_user, mode) for mode in ("infer", "grad", "train")}
    run({**{each.__name__: each for each in scenarios}, **users})
