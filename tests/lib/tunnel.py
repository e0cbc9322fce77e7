#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A way from nodes of a lab to a port of the front's loopback interface.

    tunnel.py front FILE SOCKET    on the front
    tunnel.py node FILE SOCKET     on each node

FILE holds the number of the port, which a later run may change. A node's end
listens on that port of its own loopback interface; what connects there goes
through SOCKET, a file that all of them see, to the port of the front. No packet
of it passes the networks of the lab, so they can be cut as a test likes.
"""
import os
import socket
import sys
import threading
import time


def copy(source, target):
    try:
        while data := source.recv(1 << 16):
            target.sendall(data)
    except OSError:
        pass
    for end in source, target:
        try:
            end.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass


def join(one, other):
    for pair in (one, other), (other, one):
        threading.Thread(target=copy, args=pair, daemon=True).start()


def read_port(path):
    try:
        with open(path) as file:
            return int(file.read())
    except (OSError, ValueError):
        return 0


def serve(listener, connect):
    while True:
        here = listener.accept()[0]
        try:
            join(here, connect())
        except OSError:
            here.close()


def be_front(path, name):
    if os.path.exists(name):
        os.unlink(name)
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(name)
    listener.listen(64)
    serve(listener,
          lambda: socket.create_connection(("127.0.0.1", read_port(path))))


def connect_front(name):
    front = socket.socket(socket.AF_UNIX)
    front.connect(name)
    return front


def be_node(path, name):
    ports = set()
    while True:
        port = read_port(path)
        if port != 0 and port not in ports:
            ports.add(port)
            listener = socket.create_server(("127.0.0.1", port))
            threading.Thread(target=serve, daemon=True,
                             args=(listener, lambda: connect_front(name))).start()
        time.sleep(0.02)


if __name__ == "__main__":
    {"front": be_front, "node": be_node}[sys.argv[1]](*sys.argv[2:])
