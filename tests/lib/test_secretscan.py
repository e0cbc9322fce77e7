#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The search for a secret finds what it must find, and says what it read."""

import base64
import contextlib
import io
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.dont_write_bytecode = True
sys.path.insert(0, str(HERE))

import secretscan  # noqa: E402

SECRET = bytes([1, 2, 3]) + bytes(29)
# What gpul_key_of_node makes of it for "n0" of the job "job".
KEY = bytes.fromhex("bdf0d9b7c3b3d813554ffebe8c139e9e"
                    "8aa8fda9349d3a51a36695fa3fba97f0")


class Scan(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.file = os.path.join(self.folder.name, "secret")
        self.place = os.path.join(self.folder.name, "place")
        os.mkdir(self.place)
        with open(self.file, "w", encoding="ascii") as file:
            file.write(SECRET.hex() + "\n")

    def scan(self, *places):
        said = io.StringIO()
        with contextlib.redirect_stdout(said):
            code = secretscan.main([self.file, "job", "n0,n1", *places])
        return code, said.getvalue()

    def put(self, content):
        with open(os.path.join(self.place, "log"), "wb") as file:
            file.write(content)

    def test_key(self):
        """Keys are derived as the programs derive them."""
        self.assertEqual(
            secretscan.derive(SECRET, "job", "gpulaunch/1 node/n0"), KEY)

    def test_clean(self):
        self.put(b"nothing of interest" * 100 + SECRET[:24] + b"x" + KEY[:31])
        self.assertEqual(self.scan(self.place), (0, "1 files read\n"))

    def test_every_form(self):
        for key, name in ((SECRET, "the secret"), (KEY, "node/n0")):
            forms = [key, key.hex().encode(), key.hex().upper().encode()]
            forms += [base64.b64encode(b"a" * n + key) for n in range(6)]
            for form in forms:
                self.put(b"before " + form + b" behind")
                code, said = self.scan(self.place)
                self.assertEqual(code, 1, form)
                self.assertIn(name, said)
                self.assertNotIn(key.hex(), said)

    def test_process(self):
        """In its environment, its command line and a file that it holds."""
        hexed = KEY.hex()
        with open(self.file, "rb") as held:
            for words, environment, handed in (
                    (["x"], {"X": "a" + hexed}, []),
                    ([hexed], {}, []),
                    (["x"], {}, [held.fileno()])):
                with subprocess.Popen(
                        ["/bin/sh", "-c", "echo up; read x", *words],
                        env=environment, stdin=subprocess.PIPE,
                        stdout=subprocess.PIPE, pass_fds=handed) as process:
                    process.stdout.readline()
                    code, _ = self.scan("pid:%d" % process.pid)
                    process.communicate(b"\n")
                self.assertEqual(code, 1)
        self.assertEqual(self.scan("pid:%d" % process.pid),
                         (0, "0 files read\n"))


if __name__ == "__main__":
    unittest.main()
