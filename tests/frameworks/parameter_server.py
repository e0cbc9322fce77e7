#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""TensorFlow's ParameterServerStrategy, in the part that TF_CONFIG names.

Workers and parameter servers serve for ever, as TensorFlow's do; the chief
trains through them and leaves. So this ends only if the launcher takes the
chief's exit as the job's end.
"""

import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import tensorflow as tf  # noqa: E402  (the log level must be set before)

FEATURES = 8
STEPS = 60


def serve(resolver):
    server = tf.distribute.Server(
        resolver.cluster_spec(),
        job_name=resolver.task_type,
        task_index=resolver.task_id,
        protocol="grpc",
        start=True,
    )
    server.join()


def train(resolver):
    strategy = tf.distribute.ParameterServerStrategy(resolver)
    coordinator = tf.distribute.coordinator.ClusterCoordinator(strategy)
    tf.random.set_seed(1)
    truth = tf.random.normal((FEATURES, 1))
    with strategy.scope():
        weights = tf.Variable(tf.zeros((FEATURES, 1)))

    @tf.function
    def step(number):
        x = tf.random.stateless_normal((64, FEATURES), tf.stack([7, number]))
        with tf.GradientTape() as tape:
            error = tf.matmul(x, weights) - tf.matmul(x, truth)
            loss = tf.reduce_mean(error**2)
        weights.assign_sub(0.1 * tape.gradient(loss, weights))
        return loss

    for number in range(STEPS):
        loss = coordinator.schedule(step, args=(tf.constant(number),))
    coordinator.join()
    loss = float(loss.fetch())
    cluster = resolver.cluster_spec().as_dict()
    print(f"chief with {len(cluster['worker'])} workers and "
          f"{len(cluster['ps'])} ps, weights on {weights.device}: "
          f"loss {loss:.6f}", flush=True)
    if not loss < 1e-2:
        raise SystemExit(f"parameter_server.py: the loss is still {loss:.6f}")


def main():
    resolver = tf.distribute.cluster_resolver.TFConfigClusterResolver()
    if resolver.task_type in ("worker", "ps"):
        serve(resolver)
    else:
        train(resolver)


if __name__ == "__main__":
    main()
