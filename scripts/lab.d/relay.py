#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Delays frames between two TAP interfaces that it makes.

Usage: relay.py NEAR FAR LEAST MOST SEED yes|no PIDFILE

Each frame waits for LEAST to MOST milliseconds. How long is drawn from SEED,
the direction and the frame's number alone: the same seed delays the same
frame of the same traffic by the same time. With "yes" a frame leaves when its
own time has come, so that frames overtake each other; with "no" never before
the one in front of it. PIDFILE is written when both interfaces are there.
"""
import fcntl
import heapq
import os
import random
import select
import struct
import sys
import time

TUNSETIFF = 0x400454CA
IFF_TAP = 0x0002
IFF_NO_PI = 0x1000
FRAME_BYTES_MAX = 65536
# What is over this is dropped, as a switch would.
HELD_BYTES_MAX = 64 << 20


def open_tap(name):
    tap = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
    fcntl.ioctl(tap, TUNSETIFF,
                struct.pack("16sH22x", name.encode(), IFF_TAP | IFF_NO_PI))
    return tap


class Way:
    """The frames that wait to go one way."""

    def __init__(self, source, target, seed, least, most, reorder):
        self.source = source
        self.target = target
        self.draw = random.Random(seed)
        self.least = least
        self.most = most
        self.reorder = reorder
        self.waiting = []
        self.count = 0
        self.held = 0
        self.last = 0.0

    def take(self, clock):
        """Reads what has come, up to a bound, so that both ways have turns.

        Time is asked after each frame: it may have come just now.
        """
        for _ in range(256):
            try:
                frame = os.read(self.source, FRAME_BYTES_MAX)
            except BlockingIOError:
                return
            due = clock() + self.draw.uniform(self.least, self.most)
            if not self.reorder:
                due = max(due, self.last)
            self.last = due
            if self.held + len(frame) <= HELD_BYTES_MAX:
                self.held += len(frame)
                heapq.heappush(self.waiting, (due, self.count, frame))
            self.count += 1

    def give(self, now):
        while self.waiting and self.waiting[0][0] <= now:
            frame = heapq.heappop(self.waiting)[2]
            self.held -= len(frame)
            try:
                os.write(self.target, frame)
            except (BlockingIOError, OSError):
                pass  # a full queue or a link that is down loses it

    def next_due(self):
        return self.waiting[0][0] if self.waiting else None


def relay(ways):
    sources = {way.source: way for way in ways}
    while True:
        due = [way.next_due() for way in ways if way.waiting]
        wait = max(0.0, min(due) - time.monotonic()) if due else None
        ready, _, _ = select.select(list(sources), [], [], wait)
        for source in ready:
            sources[source].take(time.monotonic)
        for way in ways:
            way.give(time.monotonic())


def main():
    near_name, far_name, least, most, seed, reorder, pidfile = sys.argv[1:]
    near, far = open_tap(near_name), open_tap(far_name)
    ways = [
        Way(source, target, f"{seed} {way}", int(least) / 1000,
            int(most) / 1000, reorder == "yes")
        for source, target, way in ((near, far, "out"), (far, near, "in"))
    ]
    with open(pidfile + ".new", "w", encoding="ascii") as file:
        file.write(f"{os.getpid()}\n")
    os.rename(pidfile + ".new", pidfile)
    relay(ways)


if __name__ == "__main__":
    main()
