#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Data-parallel training with nothing but Python's standard library.

Every worker holds a shard of the data and a copy of the weights. A step
computes the gradient of the own shard, sums it over all workers with a ring
all-reduce over TCP, and moves the weights. The peers come from TF_CONFIG and
from nowhere else:

    gpulaunch --local --nodes 4 -- python3 docs/examples/train.py --workers 4

The sum over all shards does not depend on how the data were cut, so the loss
at the end is known beforehand. The program fails when it is missed, when the
workers do not end with the same weights, and when its environment is wrong.
Every wait has a bound.
"""

import argparse
import array
import contextlib
import hashlib
import json
import math
import os
import random
import socket
import struct
import sys
import time

SAMPLES = 2048
FEATURES = 12
STEPS = 150
RATE = 16.0
KNOWN_LOSS = 0.154961  # the optimum of this data
TOLERANCE = 1e-5

CONNECT_SECONDS = 60.0  # a peer may start this much later
STEP_SECONDS = 60.0  # a peer may be this much slower

# What neighbours show each other: a word to know the program by, the sender's
# rank, and the digest of its view of the cluster.
HELLO = struct.Struct("!8sI32s")
MAGIC = b"gpl-ring"


class WrongSetup(Exception):
    """The environment does not describe a ring that this worker is part of."""


def split_address(address):
    """'host:port' or '[IPv6]:port' as a pair for the socket calls."""
    host, separator, port = address.rpartition(":")
    if not separator or not port.isdigit():
        raise WrongSetup(f"TF_CONFIG: '{address}' is not host:port")
    return host.strip("[]"), int(port)


def read_cluster(environment):
    """The ring's addresses in rank order, and the own rank.

    As TensorFlow does it: a chief, if there is one, comes before the workers.
    Without TF_CONFIG there is one worker, which needs no address.
    """
    if "TF_CONFIG" not in environment:
        return [], 0
    try:
        config = json.loads(environment["TF_CONFIG"])
        cluster, task = config["cluster"], config["task"]
        kind, index = task["type"], int(task["index"])
        tasks = cluster[kind]
    except (ValueError, KeyError, TypeError) as error:
        raise WrongSetup(f"TF_CONFIG cannot be used: {error!r}") from error
    if kind not in ("chief", "worker"):
        raise WrongSetup(f"TF_CONFIG: a '{kind}' has no part in this training")
    if not 0 <= index < len(tasks):
        raise WrongSetup(
            f"TF_CONFIG: this is {kind} {index}, but the cluster has only "
            f"{len(tasks)} of them"
        )
    chiefs = cluster.get("chief", [])
    rank = index + (len(chiefs) if kind == "worker" else 0)
    return chiefs + cluster.get("worker", []), rank


class Ring:
    """This worker's place in the ring: it hears its left neighbour and
    speaks to its right one."""

    def __init__(self, addresses, rank):
        self.size = max(1, len(addresses))
        self.rank = rank
        self.left = self.right = None
        if self.size > 1:
            self._join(addresses)

    def _join(self, addresses):
        view = hashlib.sha256(json.dumps(addresses).encode()).digest()
        hello = HELLO.pack(MAGIC, self.rank, view)
        with self._listen(addresses[self.rank]) as listener:
            self.right = self._dial(addresses[(self.rank + 1) % self.size])
            self.right.sendall(hello)
            listener.settimeout(CONNECT_SECONDS)
            try:
                self.left, _ = listener.accept()
            except TimeoutError:
                raise WrongSetup(
                    f"worker {(self.rank - 1) % self.size} did not connect "
                    f"to {addresses[self.rank]} within {CONNECT_SECONDS:.0f} s"
                ) from None
        for connection in (self.left, self.right):
            connection.settimeout(STEP_SECONDS)
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._check_hello(self._receive(self.left, HELLO.size), view)

    @staticmethod
    def _listen(address):
        host, port = split_address(address)
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        return socket.create_server((host, port), family=family)

    @staticmethod
    def _dial(address):
        deadline = time.monotonic() + CONNECT_SECONDS
        while True:
            try:
                return socket.create_connection(split_address(address), 5.0)
            except OSError as error:
                if time.monotonic() > deadline:
                    raise WrongSetup(
                        f"no worker answers at {address} within "
                        f"{CONNECT_SECONDS:.0f} s: {error}"
                    ) from error
                time.sleep(0.05)

    def _check_hello(self, hello, view):
        magic, rank, their_view = HELLO.unpack(hello)
        expected = (self.rank - 1) % self.size
        if magic != MAGIC:
            raise WrongSetup("a stranger connected to this worker's port")
        if their_view != view:
            raise WrongSetup(f"worker {rank} was given another cluster")
        if rank != expected:
            raise WrongSetup(f"worker {rank} came in place of {expected}")

    def _receive(self, connection, count):
        neighbour = f"worker {(self.rank - 1) % self.size}"
        data = bytearray()
        while len(data) < count:
            try:
                piece = connection.recv(count - len(data))
            except TimeoutError:
                raise ConnectionError(
                    f"{neighbour} sent nothing for {STEP_SECONDS:.0f} s"
                ) from None
            if not piece:
                raise ConnectionError(f"{neighbour} has gone")
            data += piece
        return bytes(data)

    def exchange(self, data):
        """Pass `data` to the right, return as many bytes from the left.

        What a step sends is far below a socket's buffer, so that sending
        before receiving cannot block the ring.
        """
        self.right.sendall(data)
        return self._receive(self.left, len(data))

    def all_reduce(self, values):
        """Replace `values` by their sums over all workers, in place.

        Reduce-scatter, then all-gather: 2 (n - 1) exchanges of one n-th each.
        Every sum is built by one worker and passed on, so that all workers
        hold the same bits.
        """
        count = -(-len(values) // self.size)
        gap = count * self.size - len(values)
        padded = values + array.array("d", bytes(8 * gap))
        for step in range(2 * (self.size - 1)):
            mine = (self.rank - step) % self.size * count
            theirs = (self.rank - step - 1) % self.size * count
            got = array.array(
                "d", self.exchange(padded[mine:mine + count].tobytes())
            )
            if step < self.size - 1:
                for i, value in enumerate(got):
                    padded[theirs + i] += value
            else:
                padded[theirs:theirs + count] = got
        values[:] = padded[:len(values)]

    def all_equal(self, digest):
        """Do all workers hold this digest? Asked once around the ring."""
        seen, equal = digest, True
        for _ in range(self.size - 1):
            seen = self.exchange(seen)
            equal = equal and seen == digest
        return equal

    def close(self):
        for connection in (self.left, self.right):
            if connection:
                connection.close()


def make_shard(rank, size):
    """This worker's share of the data: every size-th sample of one set that
    all workers would draw alike."""
    source = random.Random(20)
    truth = [source.uniform(-2, 2) for _ in range(FEATURES)]
    shard = []
    for number in range(SAMPLES):
        x = [source.gauss(0, 1) for _ in range(FEATURES)]
        score = sum(a * b for a, b in zip(truth, x)) + source.gauss(0, 1)
        if number % size == rank:
            shard.append((x, 1.0 if score > 0 else 0.0))
    return shard


def gradient(weights, shard):
    """Sums over the shard: the gradient of the logistic loss, then the loss
    itself as the last value."""
    sums = array.array("d", bytes(8 * (FEATURES + 1)))
    for x, label in shard:
        score = sum(w * v for w, v in zip(weights, x))
        guess = 1.0 / (1.0 + math.exp(-score))
        for i, value in enumerate(x):
            sums[i] += (guess - label) * value
        sums[FEATURES] -= math.log(guess if label else 1.0 - guess)
    return sums


def beat(step):
    """Tell gpulaunch that training goes on; elsewhere there is no one to tell.

    The pipe does not block: a beat that finds no room is lost, no more.
    """
    if "GPULAUNCH_BEAT_FD" in os.environ:
        with contextlib.suppress(BlockingIOError):
            os.write(int(os.environ["GPULAUNCH_BEAT_FD"]), b"%d\n" % step)


def train(ring):
    """Gradient descent on the whole data; returns weights and last loss."""
    shard = make_shard(ring.rank, ring.size)
    weights = array.array("d", bytes(8 * FEATURES))
    loss = math.inf
    for step in range(STEPS):
        sums = gradient(weights, shard)
        ring.all_reduce(sums)
        loss = sums[FEATURES] / SAMPLES
        for i in range(FEATURES):
            weights[i] -= RATE * sums[i] / SAMPLES
        beat(step)
        if ring.rank == 0 and step % 20 == 0:
            print(f"step {step:3d}  loss {loss:.6f}", flush=True)
    return weights, loss


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--workers", type=int, metavar="N",
                        help="fail unless the cluster has N workers")
    options = parser.parse_args()

    addresses, rank = read_cluster(os.environ)
    size = max(1, len(addresses))
    if options.workers is not None and size != options.workers:
        where = "TF_CONFIG has" if addresses else "without TF_CONFIG there is"
        raise WrongSetup(f"{where} {size} worker(s), not {options.workers}")

    ring = Ring(addresses, rank)
    weights, loss = train(ring)
    digest = hashlib.sha256(weights.tobytes()).digest()
    equal = ring.all_equal(digest)
    ring.close()
    print(f"worker {rank} of {size}: loss {loss:.6f}, "
          f"weights {digest.hex()[:16]}", flush=True)
    if not equal:
        raise WrongSetup("the workers do not hold the same weights")
    if abs(loss - KNOWN_LOSS) > TOLERANCE:
        raise WrongSetup(f"the loss is {loss:.6f}, not {KNOWN_LOSS:.6f}")


if __name__ == "__main__":
    try:
        main()
    except (WrongSetup, OSError) as error:
        sys.exit(f"train.py: {error}")
