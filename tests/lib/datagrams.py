#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Numbered datagrams, to see what a network does to them.

    datagrams.py echo FILE                  answers; its port is in FILE
    datagrams.py send ADDRESS PORT COUNT S  to an echo; answers are waited for
                                            until none has come for S seconds

`send` prints, as JSON: the numbers that came back, in the order that they
came, and for each how long it took in milliseconds. `echo` appends the numbers
that it got to FILE, a line each, after the port; so that a way that is cut
back only can be told from one that is cut there.
"""
import json
import os
import select
import socket
import sys
import time


def echo(path):
    server = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
    server.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
    server.bind(("::", 0))
    with open(path + ".new", "w", encoding="ascii") as file:
        file.write(f"{server.getsockname()[1]}\n")
        file.flush()
        os.rename(path + ".new", path)
        while True:
            data, sender = server.recvfrom(2048)
            file.write(data.decode("ascii") + "\n")
            file.flush()
            server.sendto(data, sender)


def take(client, sent, back):
    number = int(client.recv(2048))
    back.append([number, round((time.monotonic() - sent[number]) * 1000, 3)])


def send(address, port, count, patience):
    family, kind, _, _, target = socket.getaddrinfo(
        address, port, type=socket.SOCK_DGRAM)[0]
    client = socket.socket(family, kind)
    client.connect(target)
    sent, back = {}, []
    for number in range(count):
        sent[number] = time.monotonic()
        try:
            client.send(str(number).encode("ascii"))
        except OSError:
            pass  # no neighbour has answered: lost, as any other
        while select.select([client], [], [], 0.001)[0]:
            take(client, sent, back)
    while len(back) < count and select.select([client], [], [], patience)[0]:
        take(client, sent, back)
    print(json.dumps({"back": [entry[0] for entry in back],
                      "ms": [entry[1] for entry in back]}))


def main():
    if sys.argv[1] == "echo":
        echo(sys.argv[2])
    else:
        send(sys.argv[2], int(sys.argv[3]), int(sys.argv[4]),
             float(sys.argv[5]))


main()
