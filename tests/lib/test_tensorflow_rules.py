#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The judge of TF_CONFIG and the example that reads it from a file."""

import json
import os
import pathlib
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.dont_write_bytecode = True
sys.path[:0] = [str(HERE), str(HERE.parents[1] / "docs" / "examples")]

import tensorflow_rules as rules  # noqa: E402
import tf_config_file  # noqa: E402

WORKERS = {"worker": ["a:1", "b:2"]}
FULL = {"chief": ["c:1"], "worker": ["a:1", "b:2"], "ps": ["p:1"]}


def config(cluster, kind, index):
    return json.dumps({"cluster": cluster,
                       "task": {"type": kind, "index": index}})


class Read(unittest.TestCase):
    def test_raises(self):
        """The judge raises what TensorFlow raises."""
        rows = [
            ("", "JSONDecodeError"),
            ('{"cluster":', "JSONDecodeError"),
            ('{"cluster":{"worker":[],"worker":[]}}', "stands twice"),
            (json.dumps({"cluster": WORKERS}), "no task"),
            (config({"worker": "a:1"}, "worker", 0), "is no list"),
            (config({"worker": [1]}, "worker", 0), "is no string"),
            (config({"master": ["a:1"]}, "worker", 0), "unknown job"),
            (config(WORKERS, "ps", 0), "'ps' is not in the cluster"),
            (config(WORKERS, "worker", 2), "there is no worker 2"),
            (config({"chief": ["a:1", "b:1"]}, "chief", 0), "one chief"),
        ]
        for value, reason in rows:
            with self.assertRaisesRegex(rules.Refused, reason):
                rules.read(value)

    def test_alone(self):
        """Nothing, an empty object and a wrong key all mean: alone."""
        for value in (None, "{}", '{"cluster":{}}', '{"sparseCluster":{}}'):
            self.assertEqual(rules.read(value).cluster, {})

    def test_views(self):
        """What the tasks of a cluster learn from it."""
        rows = [
            (WORKERS, "worker", 0, True, 2, 0, "a:1"),
            (WORKERS, "worker", "1", False, 2, 1, "b:2"),
            (WORKERS, "evaluator", 0, True, None, 0, None),
            (FULL, "chief", 0, True, 3, 0, "c:1"),
            (FULL, "worker", 0, False, 3, 1, "a:1"),
            (FULL, "ps", 0, False, None, None, "p:1"),
        ]
        for cluster, kind, index, *expected in rows:
            view = rules.read(config(cluster, kind, index))
            self.assertEqual([view.is_chief, view.worker_count, view.id,
                              view.address], expected)


class World(unittest.TestCase):
    def test_world(self):
        """A whole world passes; one with any copy spoilt does not."""
        tasks = [("chief", 0), ("worker", 0), ("worker", 1), ("ps", 0)]
        values = [config(FULL, *task) for task in tasks]
        rules.check_world([rules.read(value) for value in values])
        evaluator = config({**FULL, "evaluator": ["e:1"]}, "evaluator", 0)
        rules.check_world([rules.read(v) for v in values + [evaluator]])
        spoilt = [
            (None, "run alone"),
            (config({**FULL, "ps": ["q:1"]}, "worker", 0), "different"),
            (config(FULL, "worker", 1), "the tasks are"),
        ]
        for value, reason in spoilt:
            copies = values[:1] + [value] + values[2:]
            with self.assertRaisesRegex(rules.Refused, reason):
                rules.check_world([rules.read(copy) for copy in copies])

    def test_addresses(self):
        """Addresses are host:port, each once, IPv6 in brackets."""
        self.assertEqual(rules.split_address("[::1]:80"), ("::1", 80))
        for address in ("a", "a:", "a:0", "a:65536", "::1:80", ":80"):
            with self.assertRaises(rules.Refused):
                rules.split_address(address)
        twice = {"worker": ["a:1", "a:1"]}
        with self.assertRaisesRegex(rules.Refused, "stands twice"):
            rules.check_world([rules.read(config(twice, "worker", index))
                               for index in (0, 1)])


class File(unittest.TestCase):
    def setUp(self):
        for name in ("TF_CONFIG", "GPULAUNCH_TF_CONFIG_FILE"):
            os.environ.pop(name, None)

    tearDown = setUp

    def test_file(self):
        """load() sets what the file holds, however long; unload() takes it
        away again."""
        value = config({"worker": ["node:1"] * 30000}, "worker", 0)
        with tempfile.NamedTemporaryFile("w") as file:
            file.write(value)
            file.flush()
            os.environ["GPULAUNCH_TF_CONFIG_FILE"] = file.name
            tf_config_file.load()
        self.assertEqual(os.environ["TF_CONFIG"], value)
        tf_config_file.unload()
        self.assertNotIn("TF_CONFIG", os.environ)

    def test_no_file(self):
        """Without a file both leave the variable as it is."""
        os.environ["TF_CONFIG"] = "{}"
        tf_config_file.load()
        tf_config_file.unload()
        self.assertEqual(os.environ["TF_CONFIG"], "{}")


if __name__ == "__main__":
    unittest.main()
