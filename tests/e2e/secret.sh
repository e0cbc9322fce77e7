#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# The secret of a job: how one is made, where it is taken from, and that it is
# found nowhere else.
source "$(dirname "$0")/../lib/e2e.sh"

umask 022

it "gpulaunch secret FILE: 64 digits in a new file that is nobody else's"
run "$bin/gpulaunch" secret "$scratch/job.secret"
expect_status 0
expect_empty "$out"
expect_empty "$err"
[ "$(stat -c %a "$scratch/job.secret")" = 600 ] || fail "mode is not 600"
grep -qxE '[0-9a-f]{64}' "$scratch/job.secret" || fail "not 64 digits"
expect_lines "$scratch/job.secret" 1
secret=$(cat "$scratch/job.secret")

it "a file that exists is left as it is"
run "$bin/gpulaunch" secret "$scratch/job.secret"
expect_status 125
expect_last_line 'job.secret exists, .* name a new file'
[ "$(cat "$scratch/job.secret")" = "$secret" ] || fail "it was changed"

it "to a pipe: one line, another each time, and not a word"
run sh -c "'$bin/gpulaunch' secret | cat"
grep -qxE '[0-9a-f]{64}' "$out" || fail "not 64 digits"
[ "$(cat "$out")" != "$secret" ] || fail "the same secret twice"
expect_empty "$err"

it "to a file that others may read: a warning that says what to do"
run "$bin/gpulaunch" secret
expect_status 0
grep -qxE '[0-9a-f]{64}' "$out" || fail "not 64 digits"
expect_has "$err" 'warning: .*mode 644.* umask 077'
(umask 077 && "$bin/gpulaunch" secret >"$scratch/private") 2>"$err"
expect_empty "$err"

it "nobody reads it: the exit code of a broken pipe"
run sh -c "{ sleep 0.2; '$bin/gpulaunch' secret; echo \$? >'$scratch/code'; } |
    true"
within 10 "no exit code" test -s "$scratch/code"
[ "$(cat "$scratch/code")" = 141 ] || fail "exit code $(cat "$scratch/code")"

it "a file of a secret that others may read ends the start, and says what to do"
cp "$scratch/job.secret" "$scratch/open.secret"
chmod 644 "$scratch/open.secret"
launch --self-test off --secret-file "$scratch/open.secret" -- true
expect_status 125
expect_last_line '^gpulaunch: --secret-file: .*open.secret may be used by others \(mode 644\): chmod 600 it'
expect_nothing_left

it "a link is no file of a secret"
ln -s "$scratch/job.secret" "$scratch/link.secret"
launch --self-test off --secret-file "$scratch/link.secret" -- true
expect_status 125
expect_last_line 'link.secret is a symbolic link; name the file itself'

it "with a file the job runs and nothing is said"
launch --self-test off --nodes 2 --secret-file "$scratch/job.secret" -- true
expect_status 0
expect_empty "$err"

# everywhere FILE...: where the secret could have got to.
expect_secret_nowhere()
{
    local place

    for place in "$@" "$out" "$err"; do
        ! grep -rqF -- "$secret" "$place" || fail "the secret is in $place"
    done
}

it "GPULAUNCH_SECRET is warned of, and is in no environment, log or result"
export GPULAUNCH_SECRET=$secret
launch_behind --nodes 2 --self-test off --explain --log-dir "$scratch/logs" \
    --result "$scratch/result.json" -- \
    sh -c "env; touch '$scratch/ready'.\$RANK; until [ -e '$scratch/go' ]; do
        sleep 0.05; done; exit 3"
unset GPULAUNCH_SECRET
within 30 "the ranks did not start" test -e "$scratch/ready.0" -a \
    -e "$scratch/ready.1"
for pid in $(marked_pids); do
    ! { grep -qaF -- "$secret" "/proc/$pid/environ" "/proc/$pid/cmdline"; } \
        2>/dev/null || fail "the secret is in the environment of $pid"
done
[ "$(marked_pids | wc -l)" -ge 6 ] || fail "the programs were not seen"
touch "$scratch/go"
finish
expect_status 3
expect_has "$err" 'warning: GPULAUNCH_SECRET: .* name it by --secret-file'
expect_has "$err" '^  secret-file +not shown \(environment GPULAUNCH_SECRET\)'
expect_secret_nowhere "$scratch/logs" "$scratch/result.json"
expect_no_process 5

it "a secret in the place of its file is not repeated"
launch --self-test off --secret-file "$secret" -- true
expect_status 125
expect_last_line 'that is a secret, not the name of a file'
expect_secret_nowhere
launch --self-test off --secret="$secret" -- true
expect_status 125
expect_last_line 'everybody on this machine can read a command line'
expect_secret_nowhere

it "--insecure says so, but not with -q"
launch --self-test off --insecure -- true
expect_status 0
expect_has "$err" 'warning: --insecure: .* neither authenticated nor encrypted'
launch --self-test off --insecure -q -- true
expect_status 0
expect_empty "$err"
expect_nothing_left

it "with umask 0 nothing that it makes may be read by others"
(
    umask 0
    launch --nodes 2 --log-dir "$scratch/open/logs" \
        --result "$scratch/open-result.json" --tf-config file \
        -- sh -c 'echo out; echo err >&2; exit 3'
    expect_status 3
)
[ "$(find "$scratch/open" -type f | wc -l)" -ge 5 ] || fail "no files"
[ -z "$(find "$scratch/open" -perm /077)" ] ||
    fail "others may use $(find "$scratch/open" -perm /077)"

it "a --result that is somebody else's link: refused"
if [ "$(id -u)" -eq 0 ]; then
    echo mine >"$scratch/mine"
    ln -s "$scratch/mine" "$scratch/planted"
    chown -h 65534 "$scratch/planted"
    launch --self-test off --result "$scratch/planted" -- true
    expect_status 125
    expect_last_line 'planted is, or leads to, a symbolic link of user 65534; name a file'
    [ "$(cat "$scratch/mine")" = mine ] || fail "the file was replaced"
fi

it "root is told with -v or --explain, and not otherwise"
count=$([ "$(id -u)" -ne 0 ] && echo 0 || echo 1)
for option in -v --explain; do
    launch --self-test off "$option" -- true
    [ "$(grep -c 'note: you are root' "$err")" -eq "$count" ] ||
        fail "$option: not said $count times"
done
launch --self-test off -- true
expect_empty "$err"

done_stories
