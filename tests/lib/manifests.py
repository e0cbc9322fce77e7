#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What gpulaunch manifest prints, read back by those that it is for.

  manifests.py round-trip GPULAUNCH SEED  arguments of any bytes come back
  manifests.py kubernetes FILE            the API's own types, by its client,
                                          and the restricted standard
  manifests.py pod FILE FOLDER            command, environment and mounts of
                                          the pod, for a shell: see pod()
Exit code 77: what it takes to look is not there.
"""
import itertools
import os
import random
import re
import subprocess
import sys
import tempfile

import yaml

PIECES = [b"a", b"B", b" ", b"'", b'"', b"\\", b"$", b"$(POD_IP)", b"$$",
          b"${HOME}", b"$HOME", b"`id`", b"%{if}", b"#", b"\n#SBATCH -n 9\n",
          b"\n", b"\r\n", b"\t", b"---", b"- ", b": ", b"!", b"&x", b"*x",
          b"{", b"}", b"null", b"yes", b"0x10", b"~", b"\x01", b"\x1b[0m",
          b"\x7f", "é".encode(), "e\u0301".encode(), "\u2028".encode(),
          "\ufeff".encode(), "\x85".encode(), "\U0001f600".encode(), b"1"]
BAD = [b"\xff", b"\xc3", b"\xed\xa0\x80", b"\xc0\x80", b"\xf5\x80\x80\x80"]
NAME = re.compile(r"\$\$|\$\(([^()]*)\)|\$")


def fail(text):
    print(text)
    sys.exit(1)


def kubernetes_expand(text, variables):
    """As a kubelet does: $$ is a dollar, $(NAME) a variable if there is one."""
    def one(match):
        if match[0] == "$$":
            return "$"
        return variables.get(match[1], match[0]) if match[1] else match[0]
    return NAME.sub(one, text)


def of_kubernetes(text, folder):
    job = list(yaml.safe_load_all(text))[-1]
    args = job["spec"]["template"]["spec"]["containers"][0]["args"]
    words = [kubernetes_expand(a, {"POD_IP": "10.0.0.1"}) for a in args]
    return [w.encode() for w in words[words.index("--") + 1:]]


def of_compose(text, folder):
    words = yaml.safe_load(text)["services"]["front"]["command"]
    for word in words:
        if "$" in word.replace("$$", ""):
            fail(f"compose would replace something in {word!r}")
    words = [w.replace("$$", "$").encode() for w in words]
    return words[words.index(b"--") + 1:]


def run_shell(script, folder):
    """The arguments of gpulaunch in a script, by a real bash."""
    stub = os.path.join(folder, "gpulaunch")
    if not os.path.exists(stub):
        with open(stub, "w", encoding="ascii") as f:
            f.write('#!/bin/sh\nprintf "%s\\0" "$@" >"$0.args"\n')
        os.chmod(stub, 0o755)
    path = os.path.join(folder, "script")
    with open(path, "wb") as f:
        f.write(script)
    subprocess.run(["bash", path], check=True, stdin=subprocess.DEVNULL,
                   env={"PATH": folder + ":/usr/bin:/bin"})
    with open(stub + ".args", "rb") as f:
        words = f.read().split(b"\0")[:-1]
    return words[words.index(b"--") + 1:]


def of_slurm(text, folder):
    head, body = text.split(b"\n\n", 1)
    if b"#SBATCH" in b"\n".join(l for l in body.splitlines()
                                if l.startswith(b"#")):
        fail("an argument would be a line for sbatch")
    return run_shell(text, folder)


def of_terraform(text, folder):
    lines = text.decode("ascii").splitlines()
    at = next(i for i, l in enumerate(lines)
              if l.startswith("#   gpulaunch --nodes"))
    command = "\n".join(l[1:] for l in lines[at:at + 2]) + "\n"
    return run_shell(command.encode(), folder)


KINDS = {"kubernetes": (["--image", "i"], of_kubernetes),
         "compose": (["--image", "i"], of_compose),
         "slurm": ([], of_slurm), "terraform": ([], of_terraform)}


def draw(rng, has_bad):
    pieces = PIECES + BAD if has_bad else PIECES
    words = [b"".join(rng.choices(pieces, k=rng.randint(0, 6)))
             for _ in range(rng.randint(1, 4))]
    return [b"cmd"] + words


def round_trip(program, seed):
    rng = random.Random(seed)
    refused = 0
    with tempfile.TemporaryDirectory() as folder:
        for i, (kind, (more, read)) in itertools.product(range(60),
                                                         KINDS.items()):
            words = draw(rng, i % 4 == 0)
            done = subprocess.run(
                [program, "manifest", kind, "--nodes=2", *more, "--", *words],
                capture_output=True, check=False)
            try:
                b"".join(words).decode()
                is_text = all(w.decode() is not None for w in words)
            except UnicodeDecodeError:
                is_text = False
            if kind in ("kubernetes", "compose") and not is_text:
                if done.returncode != 125 or b"not UTF-8" not in done.stderr:
                    fail(f"{kind} takes {words}: {done}")
                if done.stdout:
                    fail(f"{kind}: half a file for {words}")
                refused += 1
                continue
            if done.returncode != 0:
                fail(f"{kind} refuses {words}: {done.stderr}")
            got = read(done.stdout, folder)
            if got != words:
                fail(f"{kind}, seed {seed}: {words} came back as {got}")
    if refused == 0:
        fail("no argument was refused: the test looks at too little")


# ---- Kubernetes --------------------------------------------------------------

# JobSet has no client here: its own fields, as its reference has them.
JOBSET = {"": {"apiVersion", "kind", "metadata", "spec"},
          "spec": {"network", "failurePolicy", "replicatedJobs"},
          "spec.network": {"enableDNSHostnames"},
          "spec.failurePolicy": {"maxRestarts", "rules"}}


def check_value(models, kind, value, path):
    inner = re.fullmatch(r"[Ll]ist\[(.*)\]", kind)
    if inner:
        if not isinstance(value, list):
            fail(f"{path} is no list")
        for i, one in enumerate(value):
            check_value(models, inner[1], one, f"{path}[{i}]")
    elif kind.lower().startswith("dict"):
        for name, one in value.items():
            check_value(models, "str", one, f"{path}.{name}")
    elif hasattr(models, kind):
        check_object(models, kind, value, path)
    elif kind != "object":
        types = {"str": str, "int": int, "bool": bool}
        if type(value) is not types[kind]:
            fail(f"{path}: {value!r} is no {kind}")


def check_object(models, kind, value, path):
    model = getattr(models, kind)
    fields = {json: name for name, json in model.attribute_map.items()}
    known = {}
    for name, one in value.items():
        if name not in fields:
            fail(f"{path}: {kind} has no field {name}")
        check_value(models, model.openapi_types[fields[name]], one,
                    f"{path}.{name}")
        known[fields[name]] = one
    try:
        model(**known)  # the client's own rules: what must be there
    except ValueError as why:
        fail(f"{path}: {why}")


def check_selector(documents):
    """Service and policy mean the pods, and these find the Service."""
    template = job_of(documents[-1])["template"]
    labels = template["metadata"]["labels"].items()
    service, policy = documents[0]["spec"], documents[1]["spec"]
    allowed = policy["ingress"][0]["from"][0]["podSelector"]["matchLabels"]
    for selector in (service["selector"], allowed,
                     policy["podSelector"]["matchLabels"]):
        if not selector.items() <= labels:
            fail(f"{selector} does not mean the pods")
    if template["spec"]["subdomain"] != documents[0]["metadata"]["name"]:
        fail("the pods' names are of another Service")


def job_of(document):
    if document["kind"] == "Job":
        return document["spec"]
    return document["spec"]["replicatedJobs"][0]["template"]["spec"]


def check_restricted(template):
    """Kubernetes' Pod Security Standard "restricted", as far as a field of a
    pod bears on it: the controls of its page, in their order."""
    spec, container = template["spec"], template["spec"]["containers"][0]
    own = spec.get("securityContext", {})
    inner = container.get("securityContext", {})
    allowed = {"configMap", "csi", "downwardAPI", "emptyDir", "ephemeral",
               "persistentVolumeClaim", "projected", "secret"}
    controls = {
        "host namespaces": not any(k.startswith("host") for k in spec),
        "one container": len(spec["containers"]) == 1
                         and "initContainers" not in spec,
        "privileged": not inner.get("privileged"),
        "volume types": all(set(v) - {"name"} <= allowed
                            for v in spec["volumes"]),
        "host ports": not any("hostPort" in p for p in container["ports"]),
        "privilege escalation":
            inner.get("allowPrivilegeEscalation") is False,
        "non-root": own.get("runAsNonRoot") is True
                    and own.get("runAsUser", 1) != 0
                    and "runAsUser" not in inner,
        "seccomp": own.get("seccompProfile") == {"type": "RuntimeDefault"},
        "capabilities": inner.get("capabilities") == {"drop": ["ALL"]},
    }
    for name, is_kept in controls.items():
        if not is_kept:
            fail(f"not restricted: {name}")


def kubernetes(path):
    try:
        from kubernetes.client import models
    except ImportError:
        print("the client of Kubernetes is not there")
        sys.exit(77)
    with open(path, encoding="utf-8") as f:
        documents = list(yaml.safe_load_all(f))
    for document in documents:
        kind = document["kind"]
        if kind == "JobSet":
            for where, fields in JOBSET.items():
                at = document
                for name in filter(None, where.split(".")):
                    at = at[name]
                if set(at) != fields:
                    fail(f"JobSet {where}: {sorted(at)}")
            jobs = document["spec"]["replicatedJobs"]
            check_object(models, "V1JobTemplateSpec", jobs[0]["template"], kind)
        else:
            check_object(models, "V1" + kind, document, kind)
    check_selector(documents)
    check_restricted(job_of(documents[-1])["template"])


def pod(path, folder):
    """FOLDER/command: the pod's words, each ended by a NUL; FOLDER/probe: the
    probe's."""
    with open(path, encoding="utf-8") as f:
        job = job_of(list(yaml.safe_load_all(f))[-1])
    container = job["template"]["spec"]["containers"][0]
    words = [kubernetes_expand(w, {})
             for w in container["command"] + container["args"]]
    probe = container["readinessProbe"]["exec"]["command"]
    for name, what in (("command", words), ("probe", probe)):
        with open(os.path.join(folder, name), "wb") as f:
            f.write(b"".join(w.encode() + b"\0" for w in what))


if __name__ == "__main__":
    {"round-trip": round_trip, "kubernetes": kubernetes,
     "pod": pod}[sys.argv[1]](*sys.argv[2:])
