#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""TensorFlow on several workers: MultiWorkerMirroredStrategy, synthetic data.

    gpulaunch --local --nodes 2 -- python3 docs/examples/tensorflow_train.py

Nothing here names a host or a port: TensorFlow reads them from TF_CONFIG,
which gpulaunch sets for every worker.
"""

import contextlib
import hashlib
import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import tensorflow as tf  # noqa: E402  (the log level must be set before)

FEATURES = 8
BATCH = 64
STEPS = 100


def beat():
    """Tell gpulaunch that training goes on; elsewhere there is no one to tell.

    The pipe does not block: a beat that finds no room is lost, no more.
    """
    if "GPULAUNCH_BEAT_FD" in os.environ:
        with contextlib.suppress(BlockingIOError):
            os.write(int(os.environ["GPULAUNCH_BEAT_FD"]), b"\n")


def main():
    # The strategy starts this task's server, so it must come first.
    strategy = tf.distribute.MultiWorkerMirroredStrategy()
    resolver = strategy.cluster_resolver
    rank = resolver.task_id or 0

    tf.random.set_seed(1)
    truth = tf.random.normal((FEATURES, 1))
    with strategy.scope():
        weights = tf.Variable(tf.zeros((FEATURES, 1)))

    def replica_step(seed):
        context = tf.distribute.get_replica_context()
        x = tf.random.stateless_normal((BATCH, FEATURES), seed)
        with tf.GradientTape() as tape:
            error = tf.matmul(x, weights) - tf.matmul(x, truth)
            loss = tf.reduce_mean(error**2)
        gradient = tape.gradient(loss, weights)
        gradient = context.all_reduce(tf.distribute.ReduceOp.MEAN, gradient)
        weights.assign_sub(0.1 * gradient)
        return context.all_reduce(tf.distribute.ReduceOp.MEAN, loss)

    @tf.function
    def step(number):
        # Every worker draws its own batches.
        return strategy.run(replica_step, args=(tf.stack([rank, number]),))

    loss = None
    for number in range(STEPS):
        loss = strategy.experimental_local_results(step(tf.constant(number)))
        beat()
    loss = float(loss[0])
    digest = hashlib.sha256(weights.numpy().tobytes()).hexdigest()[:16]
    print(f"worker {rank} of {strategy.num_replicas_in_sync}: "
          f"loss {loss:.6f}, weights {digest}", flush=True)
    if not loss < 1e-3:
        raise SystemExit(f"tensorflow_train.py: the loss is still {loss:.6f}")


if __name__ == "__main__":
    main()
