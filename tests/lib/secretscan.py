#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Look for a job's secret, and the keys that are derived from it, where they
must not be.

secretscan.py SECRET_FILE JOB NAMES PLACE...: NAMES are node names with commas
between. A PLACE is a file, a folder, or a process as "pid:NUMBER": its command
line, its environment, and the regular and memory files that it has open. Each
key is looked for as bytes, as hexadecimal digits of either case and as base64
at any offset. Prints one line for each find, without the bytes, and ends with
1 if there is one. What cannot be read is an error (2): not looked at is not
clean. But of a program that hides itself from its user's other programs, all
but the command line is root's to look at; there are so many "hidden". A process
or file that has gone meanwhile is none.
"""
import base64
import errno
import hashlib
import hmac
import os
import stat
import sys

# Of the second, 8 bytes are in each rank's environment, and no more.
CONTEXTS = ["gpulaunch/1 operator", "gpulaunch/1 nccl-magic"]


def derive(secret, job, context):
    """HKDF-SHA256 (RFC 5869) for 32 bytes, as proto/secret.c does it."""
    extracted = hmac.new(job.encode(), secret, hashlib.sha256).digest()
    return hmac.new(extracted, context.encode() + b"\x01",
                    hashlib.sha256).digest()


def base64_forms(key):
    """What of base64 does not depend on what stands before and behind."""
    for offset in range(3):
        text = base64.b64encode(b"\0" * offset + key)
        yield text[4 if offset else 0:len(text) - 4]


def needles(secret, job, names):
    """(what it is, bytes) of all that must not be found."""
    keys = {"the secret": secret}
    for context in CONTEXTS + ["gpulaunch/1 node/" + n for n in names]:
        keys["the key for " + context] = derive(secret, job, context)
    for name, key in keys.items():
        yield name + " as it is", key
        yield name + " in hexadecimal", key.hex().encode()
        yield name + " in hexadecimal", key.hex().upper().encode()
        for form in base64_forms(key):
            yield name + " in base64", form


def is_hidden(place):
    """Is it a process that only root may look into?"""
    path = "/proc/%s/environ" % place[4:]
    return (place.startswith("pid:") and os.geteuid() != 0 and
            os.path.exists(path) and not os.access(path, os.R_OK))


def files_of_process(pid):
    folder = "/proc/%s/" % pid
    yield folder + "cmdline"
    if is_hidden("pid:" + pid):
        return
    yield folder + "environ"
    for fd in os.listdir(folder + "fd"):
        path = folder + "fd/" + fd
        if stat.S_ISREG(os.stat(path).st_mode):
            yield path


def files_of(place):
    if place.startswith("pid:"):
        yield from files_of_process(place[4:])
    elif os.path.isdir(place):
        for folder, _, names in os.walk(place):
            for name in names:
                path = os.path.join(folder, name)
                if stat.S_ISREG(os.lstat(path).st_mode):
                    yield path
    else:
        yield place


def scan(place, wanted):
    """How many files were read, and what was found in them."""
    count, found = 0, []
    try:
        for path in files_of(place):
            with open(path, "rb") as file:
                content = file.read()
            count += 1
            found += ["%s is in %s" % (name, path)
                      for name, needle in wanted if needle in content]
    except (FileNotFoundError, ProcessLookupError):
        pass
    except OSError as error:
        if error.errno != errno.ESRCH:
            raise
    return count, found


def main(arguments):
    if len(arguments) < 4:
        print(__doc__, file=sys.stderr)
        return 2
    with open(arguments[0], encoding="ascii") as file:
        secret = bytes.fromhex(file.read().strip())
    wanted = list(needles(secret, arguments[1], arguments[2].split(",")))
    total, finds = 0, []
    for place in arguments[3:]:
        count, found = scan(place, wanted)
        total += count
        finds += found
    hidden = sum(is_hidden(place) for place in arguments[3:])
    print("\n".join(sorted(set(finds)) + ["%d files read%s" % (
        total, ", %d hidden" % hidden if hidden else "")]))
    return 1 if finds else 0


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except OSError as problem:
        print("secretscan:", problem, file=sys.stderr)
        sys.exit(2)
