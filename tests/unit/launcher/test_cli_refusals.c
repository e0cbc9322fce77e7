/* SPDX-License-Identifier: Apache-2.0
 *
 * Command lines that are refused, and what is said of them.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/launcher/cli_line.h"

#define DIGITS                                                                 \
    "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f"

/* What is wrong is said in one sentence that also says what to do. */
static void test_refusals(void **state)
{
    (void)state;
    static const struct {
        const char *environment;
        const char *line;
        const char *expected;
    } cases[] = {
        {"", "",
         "nothing to do; try gpulaunch --help, or: gpulaunch --local --nodes "
         "2 -- python train.py"},
        {"", "--per-node 2 -- true",
         "no nodes to run on: name them with --hosts or --hostfile, start them "
         "on this machine with --local, or wait for them to join with --nodes "
         "N"},
        {"", "--local --name n -- true",
         "--name is an option of gpulaunch join only"},
        {"", "--local --job ../j -- true",
         "--job: \"../j\" is not 1 to 64 letters, digits, ., _ and -, the "
         "first neither . nor -"},
        {"", "--local --port 65536 -- true",
         "--port: \"65536\" is not a whole number from 1 to 65535"},
        {"", "join",
         "join: where is the job? gpulaunch join ADDR:PORT --job ID "
         "--secret-file FILE, as the gpulaunch that waits for its nodes prints "
         "it"},
        {"", "join 10.0.0.1 --job j",
         "join: \"10.0.0.1\" is not HOST:PORT: the port is missing"},
        {"", "join 10.0.0.1:1 --port 2 --job j",
         "join: 10.0.0.1:1 and --port 2 contradict each other; give the port "
         "once"},
        {"", "join 10.0.0.1:1,10.0.0.2 --job j",
         "join: \"10.0.0.2\" is not HOST:PORT: the port is missing"},
        {"", "join 10.0.0.1:1",
         "join: which job? --job ID, as the gpulaunch that waits for its nodes "
         "prints it"},
        {"", "join 10.0.0.1:1 --job j --local",
         "join: no option --local; the gpulaunch that waits for its nodes says "
         "what runs on them"},
        {"", "join 10.0.0.1:1 --job j -- true",
         "join: \"true\" is one argument too many; it takes one address, and "
         "no command"},
        {"", "join 10.0.0.1:1 --job j --secret-file f --insecure",
         "--secret-file and --insecure contradict each other; give one of "
         "them"},
        {"", "--hosts a,b --local -- true",
         "--local and --hosts contradict each other; give one of them"},
        {"GPULAUNCH_HOSTS=a GPULAUNCH_HOSTFILE=f", "-- true",
         "GPULAUNCH_HOSTS and GPULAUNCH_HOSTFILE contradict each other; give "
         "one of them"},
        {"", "-H a,,b -- true", "-H, column 3: a name is missing"},
        {"", "--hosts a,b --nodes 3 -- true",
         "--nodes: 3 nodes are asked for, but --hosts has 2; ask for fewer, or "
         "name more"},
        {"", "--hosts a:4,b:2 -- true",
         "--hosts: a has 4 slots, b has 2; a job has as many ranks on each "
         "node: make them equal, or give --per-node K"},
        {"", "--hosts a,b --roles chief=1 -- true",
         "--roles names 1 rank, but 2 nodes x 1 per node make 2; change one of "
         "them"},
        {"", "--hosts a --advertise 203.0.113.7 -- true",
         "--advertise 203.0.113.7: it leads to one port of this machine; name "
         "that with --port"},
        {"", "--hosts a --port 7000 --advertise 203.0.113.7:x -- true",
         "--advertise: \"203.0.113.7:x\" is not HOST:PORT: the port must be a "
         "number from 1 to 65535"},
        {"", "--local --port 7000 --advertise 203.0.113.7 -- true",
         "--advertise is for nodes that are reached by ssh; leave it out with "
         "--local"},
        {"", "--local --copy-worker -- true",
         "--copy-worker is for nodes that are reached by ssh; leave it out "
         "with --local"},
        {"", "--hosts a --copy-worker --worker-path /x -- true",
         "--copy-worker and --worker-path contradict each other; give one of "
         "them"},
        {"", "-w 5 -- true",
         "-w, column 1: \"5\" is a number, not a host; for a number of nodes "
         "there is --nodes"},
        {"FLUX_URI=u FLUX_JOB_ID=7 FLUX_JOB_NNODES=2", "-- true",
         "this is a job of Flux (7), which does not name its nodes; wait for "
         "them to join with --nodes N, name them with --hosts or --hostfile to "
         "reach them by ssh, or use --local"},
        {"JOB_COMPLETION_INDEX=0", "-- true",
         "this is a job of Kubernetes, which does not name its nodes; wait for "
         "them to join with --nodes N, name them with --hosts or --hostfile to "
         "reach them by ssh, or use --local"},
        {"SLURM_JOB_ID=7 SLURM_JOB_NODELIST=n[1-2] SLURM_STEP_NUM_TASKS=2",
         "-- true",
         "srun has started gpulaunch many times, but SLURM_STEP_ID is not set; "
         "start it once, without srun, in the batch script or within salloc"},
        {"PBS_JOBID=7", "-- true",
         "PBS_JOBID is set, so this is a job of PBS, but PBS_NODEFILE is not, "
         "so its nodes are unknown; name them with --hosts or --hostfile, or "
         "unset PBS_JOBID"},
        {"", "--local --nodes 1001 -- true",
         "--nodes asks for 1001 nodes; at most 1000 local nodes are possible; "
         "raise --per-node"},
        {"", "--local",
         "no command to run; put it after --, as in: gpulaunch --local "
         "--nodes 2 -- python train.py"},
        {"", "--local --",
         "no command to run; put it after --, as in: gpulaunch --local "
         "--nodes 2 -- python train.py"},
        {"", "--local --nodes 0 -- true",
         "--nodes: \"0\" is not a whole number from 1 to 131072"},
        {"", "--local -N -3 -- true",
         "-N: \"-3\" is not a whole number from 1 to 131072"},
        {"", "--local --nnodes=9999999 -- true",
         "--nnodes: \"9999999\" is not a whole number from 1 to 131072"},
        {"GPULAUNCH_NODES=four", "--local -- true",
         "GPULAUNCH_NODES: \"four\" is not a whole number from 1 to 131072"},
        {"", "--local --nnodes 1:4 -- true",
         "--nnodes 1:4: not yet: this version has no elastic jobs; give one "
         "number"},
        {"", "--local --per-node 0 -- true",
         "--per-node: \"0\" is neither gpu nor auto nor a whole number from "
         "1 to 4096"},
        {"", "--local --nodes 1000 --per-node 4096 -- true",
         "1000 nodes x 4096 per node make 4096000 ranks; at most 1048576 are "
         "possible"},
        {"", "--local --stdin 4 --nodes 2 --per-node 2 -- true",
         "--stdin 4: the job has 4 ranks, 0 to 3"},
        {"", "--local --input data.txt -- true",
         "--input: \"data.txt\" is neither a rank nor all nor none; a file is "
         "given by < FILE"},
        {"", "--local --signal USR1@60 -- true",
         "--signal USR1@60: it is sent before the time limit, and there is "
         "none; add --timeout TIME"},
        {"", "--local --signal USR1 --timeout 1m -- true",
         "--signal USR1: that is not within the time limit, --timeout 1m; give "
         "a time after the @ that is shorter"},
        {"GPULAUNCH_SIGNAL=B:USR1@60", "--local --timeout 2m -- true",
         "GPULAUNCH_SIGNAL: \"B:USR1\" is no signal; use a name or number such "
         "as USR1 or 10"},
        {"", "--local --signal USR1@soon --timeout 2m -- true",
         "--signal: \"soon\" is not a duration; write 90, 90s, 1500ms, 5m "
         "or 1.5h"},
        {"", "--local --nodes 2 --nodes 3 -- true",
         "option --nodes is given twice, as \"2\" and as \"3\""},
        {"", "--local --lable -- true",
         "unknown option --lable; did you mean --label?"},
        {"", "--local --frobnicate -- true",
         "unknown option --frobnicate; see --help"},
        {"", "--local --self-test fast -- true",
         "--self-test: unknown value 'fast'; use quick, full or off"},
        {"", "--local --self-test quik -- true",
         "--self-test: unknown value 'quik'; did you mean quick? (quick, full "
         "or off)"},
        {"", "--local --color sometimes -- true",
         "--color: unknown value 'sometimes'; use auto, always or never"},
        {"", "--local --emulate pbs -- true",
         "--emulate: unknown value 'pbs'; use slurm"},
        {"", "--local --timeout soon -- true",
         "--timeout: \"soon\" is not a duration; write 90, 90s, 1500ms, 5m or "
         "1.5h"},
        {"", "--local --hang-timeout never -- true",
         "--hang-timeout: \"never\" is not a duration; write 90, 90s, "
         "1500ms, 5m or 1.5h"},
        {"", "--local --hang-timeout 0 -- true",
         "--hang-timeout 0: too short for a step; give 1s or more, auto or "
         "off"},
        {"", "--local --hang-timeout off --on-hang stop -- true",
         "--on-hang stop: nothing is found to hang with --hang-timeout off; "
         "give a time"},
        {"", "--local --on-hang restart -- true",
         "--on-hang: unknown value 'restart'; use report or stop"},
        {"", "--local --orphan-timeout 0.5s -- true",
         "--orphan-timeout: leaves no time to reach the coordinator again; "
         "give 1s or more"},
        {"", "--local --join-timeout 0 -- true",
         "--join-timeout: 0 leaves no time to join; give a time such as 30s"},
        {"", "--local --secret-file --insecure -- true",
         "option --secret-file needs a value: --secret-file FILE"},
        {"", "--local --secret-file f --insecure -- true",
         "--secret-file and --insecure contradict each other; give one of "
         "them"},
        {"", "--local --secret=" DIGITS " -- true",
         "--secret: everybody on this machine can read a command line; put the "
         "secret into a file and use --secret-file FILE (gpulaunch secret "
         "makes one)"},
        {"", "--local --secret-file " DIGITS " -- true",
         "--secret-file: that is a secret, not the name of a file; others may "
         "have read it: make a new one with gpulaunch secret FILE"},
        {"GPULAUNCH_SECRET_FILE=" DIGITS, "--local -- true",
         "GPULAUNCH_SECRET_FILE: that is a secret, not the name of a file; "
         "others may have read it: make a new one with gpulaunch secret FILE"},
        {"", "--local -x GPULAUNCH_SECRET=" DIGITS " -- true",
         "-x GPULAUNCH_SECRET: the secret of the job is not for its ranks; "
         "leave it out"},
        {"", "secret --nodes 2",
         "secret: no option --nodes; it takes the name of a new file, or "
         "nothing"},
        {"", "secret one two", "secret: give the name of one file, or none"},
        {"", "secret " DIGITS,
         "secret: that is a secret, not the name of a file; others may have "
         "read it: make a new one with gpulaunch secret FILE"},
        {"", "--local --label --no-label -- true",
         "--label and --no-label contradict each other; give one of them"},
        {"", "--local --no-label --fold always -- true",
         "--fold always and --no-label contradict each other: folded lines "
         "list their ranks; give one of them"},
        {"", "--local --fold sometimes -- true",
         "--fold: unknown value 'sometimes'; use auto, always or never"},
        {"", "--local --nodes 4 --ranks 0,4 -- true",
         "--ranks 0,4: the job has 4 ranks, 0 to 3"},
        {"", "--local --nodes 4 --ranks 3- -- true",
         "--ranks: ranks \"3-\", column 3: the end of the range is missing"},
        {"", "--local -q -v -- true",
         "-v and -q contradict each other; give one of them"},
        {"", "--local --nodes 3 --roles worker=2,ps=2 -- true",
         "--roles names 4 ranks, but 3 nodes x 1 per node make 3; change one "
         "of them"},
        {"", "--local --per-node 2 --roles chief=1,worker=2 -- true",
         "--roles names 3 ranks, which cannot fill nodes of 2 ranks; change "
         "--roles or --per-node"},
        {"", "--local --per-node gpu --roles worker=2 -- true",
         "--roles without --nodes needs a number of ranks per node; give "
         "--nodes N or --per-node K"},
        {"", "--local --roles worker=2000 -- true",
         "--roles needs 2000 nodes; at most 1000 local nodes are possible; "
         "raise --per-node"},
        {"", "--local --roles boss=1 -- true",
         "--roles: unknown role \"boss\"; the roles are chief, worker, ps and "
         "evaluator"},
        {"", "--local --tf-evaluator own -- true",
         "--tf-evaluator own needs an evaluator; add evaluator=1 to --roles"},
        {"", "--local --roles worker=2 --tf-evaluator own -- true",
         "--tf-evaluator own needs an evaluator; add evaluator=1 to --roles"},
        {"", "--local -x 1X=2 -- true",
         "-x: \"1X\" is not the name of a variable; use NAME=VALUE"},
        {"", "--local -x =2 -- true",
         "-x: \"\" is not the name of a variable; use NAME=VALUE"},
        {"", "--local -x UNSET -- true",
         "-x UNSET: not set in the environment; use UNSET=VALUE"},
        {"", "--local --interface eth0,,eth1 -- true",
         "--interface: \"eth0,,eth1\" is no list of interfaces or addresses, "
         "as in eth0,10.0.0.5"},
        {"", "--local --interface= -- true",
         "--interface: \"\" is no list of interfaces or addresses, as in "
         "eth0,10.0.0.5"},
        {"", "--local --log-dir= -- true",
         "--log-dir: empty; give a directory"},
        {"", "--local --result= -- true", "--result: empty; give a file"},
        {"", "--local --backend nvidia -- true",
         "--backend: unknown value 'nvidia'; use auto, nccl or host"},
        {"", "--local --nccl-lib= -- true", "--nccl-lib: empty; give a file"},
        {"", "--local -b 3 -- true",
         "-b: \"3\" is not a size from 4 bytes (one float) to 1 TiB"},
        {"", "--local -e 2T -- true",
         "-e: \"2T\" is not a size from 4 bytes (one float) to 1 TiB"},
        {"", "--local -e err.log -- true",
         "-e: \"err.log\" is not a size; write 65536, 64K, 64KiB, 8M or "
         "1GiB"},
        {"", "--local -b 1G --maxbytes 8M -- true",
         "-b 1G is more than --maxbytes 8M (1073741824 and 8388608 bytes); "
         "the smallest message comes first"},
        {"", "--local --stepfactor 1 -- true",
         "--stepfactor: \"1\" is not a whole number from 2 to 1024"},
        {"", "--local --iters 0 -- true",
         "--iters: \"0\" is not a whole number from 1 to 1000"},
        {"", "--local --warmup_iters 1001 -- true",
         "--warmup_iters: \"1001\" is not a whole number from 0 to 1000"},
        {"", "--local --check yes -- true",
         "--check: \"yes\" is not a whole number from 0 to 100"},
        {"", "--local --min-busbw 0 -- true",
         "--min-busbw: \"0\" is not a bandwidth in GB/s above 0 and up to "
         "100000, such as 180 or 2.5"},
        {"GPULAUNCH_MIN_BUSBW=1.2.3", "--local -- true",
         "GPULAUNCH_MIN_BUSBW: \"1.2.3\" is not a bandwidth in GB/s above 0 "
         "and up to 100000, such as 180 or 2.5"},
        {"", "--local --self-test off --min-busbw 5 -- true",
         "--min-busbw means nothing with --self-test off; leave one of them "
         "out"},
        {"GPULAUNCH_SELF_TEST=off", "--local --backend nccl -- true",
         "--backend means nothing with GPULAUNCH_SELF_TEST off; leave one of "
         "them out"},
        {"", "--local --backend host --nccl-lib x.so -- true",
         "--nccl-lib means nothing with --backend host; leave one of them "
         "out"},
        {"", "--local --self-test-timeout 0 -- true",
         "--self-test-timeout: 0 leaves no time to test; give a time such as "
         "30s, or --self-test off"},
        {"", "--local --rank 1 -- true",
         "--rank belongs to gpulaunch env; write gpulaunch env --rank 1 ..."},
        {"", "env --local -- true", "env: of which rank? add --rank R"},
        {"", "env --local --nodes 2 --rank 2 -- true",
         "--rank 2: the job has 2 ranks, 0 to 1"},
        {"", "env --local --rank 2 -- true",
         "--rank 2: the job has one rank, 0"},
        {"", "--local --nodes 1 --per-node 2 --roles chief=1 -- true",
         "--roles names 1 rank, but 1 node x 2 per node make 2; change one "
         "of them"},
        {"", "rum --local -- true",
         "unknown verb \"rum\"; did you mean run? (a command to run goes after "
         "--)"},
        {"", "train.py",
         "unknown verb \"train.py\"; there are run, check, doctor, env, "
         "secret, join, "
         "manifest, report, diff, scale and help, and a command to run goes "
         "after --"},
        {"", "--local python train.py",
         "\"python\" is not an option; put -- before the command: gpulaunch "
         "[options] -- python ..."},
        {"", "help scales",
         "help: no such topic \"scales\"; there are run, check, doctor, env, "
         "secret, "
         "join, manifest, report, diff and scale"},
        {"", "scale --local -- true",
         "scale: on which counts of nodes? --nodes 1,2,4,8"},
        {"", "scale --local --nodes 1,2",
         "scale: of which command? gpulaunch scale --local --nodes 1,2,4 -- "
         "python train.py"},
        {"", "scale --nodes 1,2 -- true",
         "scale: on which machines? --local, --hosts, --nodelist or "
         "--hostfile; "
         "nodes that join by themselves would have to do so for each run"},
        {"", "scale --hosts a,b --nodes 1,2,4 -- true",
         "--nodes: 4 nodes are asked for, but --hosts has 2; ask for fewer, or "
         "name more"},
        {"GPULAUNCH_GRACE=x", "scale --local --nodes 1,2 -- true",
         "GPULAUNCH_GRACE: \"x\" is not a duration; write 90, 90s, "
         "1500ms, 5m or 1.5h"},
        {"", "scale --local --nodes 1,1 -- true", "--nodes: 1 is there twice"},
        {"", "scale --local --nodes 1,2 --reference 4 -- true",
         "--reference 4: nothing is measured on so many nodes; it is one of "
         "--nodes"},
        {"", "scale --local --nodes 1,2 --label -- true",
         "scale has no option --label: the runs are labelled"},
        {"", "scale --local --nodes 1 --metric-of all -- true",
         "--metric-of: \"all\" is neither rank nor job"},
        {"", "scale --local --nodes 1 --repeats 0 -- true",
         "--repeats: \"0\" is not a whole number from 1 to 256"},
        {"", "scale --local --nodes 1 --html= -- true",
         "--html: the name of a file is empty"},
        {"", "report",
         "report: of which record? gpulaunch report RECORD --html FILE"},
        {"", "report a",
         "report: what is to be drawn? --html FILE, --junit FILE or "
         "--prometheus FILE; FILE - is standard output"},
        {"", "report --html - a b",
         "report: \"b\" is one argument too many; it takes one record"},
        {"", "report a --html=", "--html: the name of a file is empty"},
        {"", "diff a", "diff: which two records? gpulaunch diff BEFORE AFTER"},
        {"", "diff a b c",
         "diff: \"c\" is one argument too many; it takes two records"},
        {"", "diff a --local", "unknown option --local; see --help"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct line l;
        int rc = cli_line_parse(&l, cases[i].environment, cases[i].line);
        assert_string_equal(l.err.text, cases[i].expected);
        assert_int_equal(rc, GPUL_EINVAL);
        plan_release(&l.plan);
    }
}

/* Flags of other launchers are answered with what to do instead. */
static void test_foreign(void **state)
{
    (void)state;
    static const struct {
        const char *line;
        const char *expected;
    } cases[] = {
        {"--rdzv-endpoint host:29400 --local -- true",
         "--rdzv-endpoint: leave it out: gpulaunch starts every node and "
         "brings its own rendezvous; where nodes find this machine by an "
         "address that it does not have itself, give --advertise"},
        {"--rdzv_backend=c10d --local -- true",
         "--rdzv_backend: leave it out: gpulaunch starts every node and "
         "brings its own rendezvous; where nodes find this machine by an "
         "address that it does not have itself, give --advertise"},
        {"--max-restarts 3 --local -- true",
         "--max-restarts: not yet: this version does not restart a failed "
         "job; leave it out"},
        {"--master_port 29500 --local -- true",
         "--master_port: leave it out: gpulaunch chooses the address and the "
         "port and tells every rank"},
        {"--partition gpu -- true",
         "--partition: leave it out: gpulaunch does not ask a scheduler for "
         "nodes; run it within a job of the scheduler"},
        {"-np 4 -- true",
         "-n: use --nodes N and --per-node K: there are N x K ranks (-n of "
         "nccl-tests: use --iters)"},
        {"-n 4 -- true",
         "-n: use --nodes N and --per-node K: there are N x K ranks (-n of "
         "nccl-tests: use --iters)"},
        {"-c 1 -- true",
         "-c: leave it out; --bind core gives each rank its even share of the "
         "cores (-c of nccl-tests: use --check)"},
        {"--bind-to numa -- true",
         "--bind-to: use --bind none, numa, gpu or core"},
        {"--map-by slot -- true",
         "--map-by: leave it out: gpulaunch does not count slots"},
        {"-i 1M -- true",
         "-i: use --stepfactor N: sizes are multiplied, not added to"},
        {"--standalone -- true", "--standalone: use --local"},
        {"--redirects 3 -- true",
         "--redirects: leave it out: output is kept in files in any case, see "
         "--log-dir; --ranks LIST chooses what is shown"},
        {"--local-ranks-filter 0 -- true",
         "--local-ranks-filter: use --ranks LIST, with ranks of the whole "
         "job"},
        {"--local --tee 3 -- true",
         "--tee 3: leave out torchrun's choice of streams: both are shown and "
         "kept in files, see --log-dir; to show some ranks only use --ranks "
         "LIST"},
        {"--local --tee=0:3,1:1 -- true",
         "--tee 0:3,1:1: leave out torchrun's choice of streams: both are "
         "shown and kept in files, see --log-dir; to show some ranks only use "
         "--ranks LIST"},
        {"-m torch.distributed -- true",
         "-m: put it into the command: -- python -m MODULE"},
        {"-t 10 -- true", "-t: use --timeout TIME"},
        {"--oversubscribe -- true",
         "--oversubscribe: leave it out: gpulaunch does not ask for it"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct line l;
        assert_int_equal(cli_line_parse(&l, "", cases[i].line), GPUL_EINVAL);
        assert_string_equal(l.err.text, cases[i].expected);
        plan_release(&l.plan);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_foreign),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
