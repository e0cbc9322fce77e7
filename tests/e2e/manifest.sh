#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# What gpulaunch manifest prints is what those that it is for can read. Each of
# their own tools looks at it where it is installed; where not, that is said.
. "$(dirname "$0")/../lib/e2e.sh"

read_back=$project/tests/lib/manifests.py
client=$project/.venv/bin/python
"$python" -c 'import yaml' 2>/dev/null || skip "python3-yaml is not there"

# print KIND ARGUMENT...: into $scratch/file.
print()
{
    run "$bin/gpulaunch" manifest "$@"
    expect_status 0
    expect_empty "$err"
    cp "$out" "$scratch/file"
}

# without TOOL: says that a check is left out.
without()
{
    echo "not looked at, since $1 is not there: $story"
}

it "arguments of any bytes come back byte for byte, or are refused"
for seed in 1 2; do
    run "$python" "$read_back" round-trip "$bin/gpulaunch" "$seed"
    expect_status 0
done

it "the Kubernetes files are of the API's own types, and the check can fail"
for more in "" "--jobset --retries 3"; do
    # shellcheck disable=SC2086  # words
    print kubernetes --nodes 4 --gpus-per-node 8 --image registry/train:1 \
        --name on --namespace on $more -- python train.py
    expect_has "$scratch/file" 'completions: 4'
    expect_has "$scratch/file" '"nvidia.com/gpu": "8"'
    code=0
    "$client" "$read_back" kubernetes "$scratch/file" >"$out" 2>"$err" ||
        code=$?
    if [ ! -x "$client" ] || [ "$code" = 77 ]; then
        without "the Python client of Kubernetes"
        continue
    fi
    [ "$code" = 0 ] || fail "not as the API has it"
    sed 's/completionMode/completionsMode/' "$scratch/file" >"$scratch/bad"
    ! "$client" "$read_back" kubernetes "$scratch/bad" >"$out" 2>&1 ||
        fail "a field that does not exist is taken"
    expect_has "$out" 'has no field completionsMode'
    # shellcheck disable=SC2086  # words
    print kubernetes --nodes 4 --image registry/train:1 --run-as 0 $more -- true
    ! "$client" "$read_back" kubernetes "$scratch/file" >"$out" 2>&1 ||
        fail "root is taken for restricted"
    expect_has "$out" 'not restricted: non-root'
done

it "their YAML is clean"
if command -v yamllint >/dev/null; then
    for kind in kubernetes compose; do
        print "$kind" --nodes 2 --image i -- true
        yamllint -s -d '{extends: relaxed, rules: {line-length: disable}}' \
            "$scratch/file" >"$out" || fail "yamllint complains"
    done
else
    without yamllint
fi

it "Compose reads its file, and would replace nothing in it"
if command -v docker-compose >/dev/null; then
    # shellcheck disable=SC2016  # for the rank's shell
    print compose --nodes 2 --node-gpus 2 --image i --name c -- \
        sh -c 'echo $RANK'
    cp "$scratch/file" "$scratch/compose.yaml"
    "$bin/gpulaunch" secret "$scratch/c.secret"
    run docker-compose -f "$scratch/compose.yaml" config
    expect_status 0
    expect_has "$out" '- echo \$\$RANK'
    expect_has "$out" "file: $scratch/c.secret"
else
    without docker-compose
fi

it "bash and shellcheck read the batch script"
for retries in 0 2; do
    print slurm --nodes 2 --gpus-per-node 4 --timeout 1h --retries "$retries" \
        -- python train.py "it's"
    expect_has "$scratch/file" '^#SBATCH --nodes=2$'
    expect_has "$scratch/file" '^#SBATCH --gpus-per-node=4$'
    bash -n "$scratch/file" || fail "bash does not"
    if command -v shellcheck >/dev/null; then
        shellcheck "$scratch/file" >"$out" || fail "shellcheck complains"
    else
        without shellcheck
    fi
done

# The script with stand-ins for gpulaunch, which ends with CODE, and scontrol.
# again CODE RESTARTS: was it to be started again?
again()
{
    local code=0

    mkdir -p "$scratch/stubs"
    printf '#!/bin/sh\nexit %s\n' "$1" >"$scratch/stubs/gpulaunch"
    printf '#!/bin/sh\necho "$@" >"%s"\n' "$scratch/asked" \
        >"$scratch/stubs/scontrol"
    chmod +x "$scratch/stubs/"*
    rm -f "$scratch/asked"
    env "PATH=$scratch/stubs:$PATH" SLURM_JOB_ID=12 "SLURM_RESTART_COUNT=$2" \
        bash "$scratch/file" || code=$?
    [ "$code" = "$1" ] || fail "the script ends with $code, not $1"
    [ -e "$scratch/asked" ]
}

it "the batch script asks for another go after 40, 41 and 75 alone, so often"
for code in 40 41 75; do
    again "$code" 0 || fail "not after $code"
done
expect_has "$scratch/asked" '^requeue 12$'
again 75 1 || fail "not after 75 again"
! again 75 2 || fail "a third time"
! again 7 0 || fail "after another code"
! again 0 0 || fail "after success"

it "Terraform's own parser reads the module"
print terraform --nodes 3 --port 4000 --name t \
    --secret-name 'arn:aws:secretsmanager:eu-west-1:1:secret:a/b-x' -- true
hcl=/usr/share/gocode/src/github.com/hashicorp/hcl/v2
if command -v go >/dev/null && [ -d "$hcl" ]; then
    GO111MODULE=off GOPATH=/usr/share/gocode GOCACHE=$scratch/go GOFLAGS='' \
        go build -o "$scratch/hclread" "$project/tests/lib/hclread.go"
    run "$scratch/hclread" "$scratch/file"
    expect_status 0
    expect_has "$out" '^nodes	3$'
    expect_has "$out" '^port	4000$'
    expect_has "$out" '^secret	arn:aws:secretsmanager:eu-west-1:1:secret:a/b-x$'
    sed '$d' "$scratch/file" >"$scratch/bad"
    ! "$scratch/hclread" "$scratch/bad" >/dev/null || fail "it takes anything"
else
    without "golang-github-hashicorp-hcl-v2-dev"
fi

it "the machines' script of the module is one of bash, and ends them"
sed -n '/<<-EOT$/,/^  EOT$/p' "$scratch/file" | sed '1d;$d;s/^    //' |
    sed 's/\${[^}]*}/1/g' >"$scratch/user-data"
expect_has "$scratch/user-data" "^trap 'shutdown -h now' EXIT$"
bash -n "$scratch/user-data" || fail "bash does not read it"

it "no file has a secret in it, whatever the caller's environment has"
secret=$(printf '%064d' 7)
for kind in "kubernetes --image i" "compose --image i" slurm terraform; do
    # shellcheck disable=SC2086  # words
    run env "GPULAUNCH_SECRET=$secret" "API_KEY=$secret" "$bin/gpulaunch" \
        manifest $kind --nodes 2 -x API_KEY -- true
    expect_status 0
    ! grep -q "$secret" "$out" "$err" || fail "$kind: there it is"
    expect_has "$out" '--env=API_KEY'
done

# refused WORDS PATTERN
refused()
{
    # shellcheck disable=SC2086  # words
    run "$bin/gpulaunch" manifest $1
    expect_status 125
    expect_empty "$out"
    expect_last_line "$2"
}

it "what cannot be is refused, with what to do"
refused "" 'of what kind\? kubernetes, slurm, compose or terraform'
refused "nomad --nodes 2 -- true" 'of what kind, for "nomad" is none'
refused "slurm -- true" 'how many nodes\? --nodes N'
refused "slurm --nodes 2" 'no command to run'
refused "slurm --nodes 2 true" 'put -- before the command'
refused "kubernetes --nodes 2 -- true" 'which image do the nodes have\? --image'
refused "slurm --nodes 2 --image i -- true" 'manifest slurm has no option --image'
refused "slurm --nodes 2 --hosts a -- true" 'has no option --hosts: the nodes are those'
refused "slurm --nodes 2 --secret-file f -- true" 'no option --secret-file'
refused "slurm --nodes 2 --name A -- true" '"A" is not 1 to 48 lower-case letters'
refused "slurm --nodes 2 --secret x -- true" 'everybody on this machine can read'
refused "kubernetes --nodes 2 --image i --retries 2 -- true" \
    '--retries needs --jobset'
refused "kubernetes --nodes 2 --image i --per-node gpu -- true" \
    'say how many with --node-gpus K'
refused "terraform --nodes 2 --secret-name a\$b -- true" 'is not 1 to .* letters'
refused "slurm --nodes 0 -- true" '--nodes'

refused "kubernetes --nodes 2 --image i --secret-name My-Secret -- true" \
    'is no name of a Secret: lower-case'
refused "kubernetes --nodes 2 --image i --namespace a_b -- true" \
    '--namespace: "a_b" is not 1 to 63 lower-case'
refused "slurm --nodes 2 --run-as 7 -- true" 'slurm has no option --run-as'

it "its help is there"
run "$bin/gpulaunch" help manifest
expect_status 0
expect_has "$out" '--gpu-resource'
run "$bin/gpulaunch" manifest kubernetes --help
expect_status 0
expect_has "$out" '--gpu-resource'

done_stories
