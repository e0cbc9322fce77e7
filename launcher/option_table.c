/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/option_table.h"

#define PLACES "Where and how many"
#define REACHING "Reaching the nodes"
#define TEST "The self-test"
#define JUDGING "What a check looks at"
#define BOUNDS "Bounds of time"
#define SECRECY "The control channel"
#define RANKS "Environment of the ranks"
#define OUTPUT "Input and output"
#define LOOKING "Looking without running"

/* Of a check, and what can be made of what it found. */
#define JUDGED(NAME, VALUE, VARIABLE, HELP)                                    \
    {                                                                          \
        .name = NAME, .value = VALUE, .environment = "GPULAUNCH_" VARIABLE,    \
        .group = JUDGING, .help = HELP                                         \
    }

static const struct gpul_option table[] = {
    [OPTION_LOCAL] = {.name = "local",
                      .environment = "GPULAUNCH_LOCAL",
                      .group = PLACES,
                      .help = "Start the nodes on this machine."},
    [OPTION_HOSTS] = {.name = "hosts",
                      .aliases = "host",
                      .letter = 'H',
                      .value = "LIST",
                      .environment = "GPULAUNCH_HOSTS",
                      .group = PLACES,
                      .help = "Run on these hosts, reached by ssh, in this "
                              "order: node[01-16], a:8,b:8 (ranks on each), "
                              "10.0.0.7, [fe80::1]:8."},
    [OPTION_NODELIST] = {.name = "nodelist",
                         .letter = 'w',
                         .value = "LIST",
                         .environment = "GPULAUNCH_NODELIST",
                         .group = PLACES,
                         .help = "The same as a set, as for srun: ranks follow "
                                 "the numbers in the names, node7 before "
                                 "node66."},
    [OPTION_HOSTFILE] =
        {.name = "hostfile",
         .aliases = "machinefile",
         .letter = 'f',
         .value = "FILE",
         .environment = "GPULAUNCH_HOSTFILE",
         .group = PLACES,
         .help = "Run on the hosts of this file, one a line, as for mpirun, "
                 "DeepSpeed or Horovod: node1 slots=8, node1:8, # comment."},
    [OPTION_NODES] = {.name = "nodes",
                      .aliases = "nnodes",
                      .letter = 'N',
                      .value = "N",
                      .environment = "GPULAUNCH_NODES",
                      .group = PLACES,
                      .help = "Number of nodes: of a list, the first so many "
                              "(default: all); local ones (default 1, or as "
                              "many as --roles asks for)."},
    [OPTION_PER_NODE] = {.name = "per-node",
                         .aliases = "nproc-per-node gpus-per-node "
                                    "ntasks-per-node",
                         .value = "K",
                         .environment = "GPULAUNCH_PER_NODE",
                         .group = PLACES,
                         .help = "Ranks on each node: a number, gpu (one per "
                                 "GPU) or auto (the same, and one where there "
                                 "is no GPU). Default: the slots of the list, "
                                 "else 1."},
    [OPTION_ROLES] = {.name = "roles",
                      .value = "LIST",
                      .environment = "GPULAUNCH_ROLES",
                      .group = PLACES,
                      .help = "TensorFlow roles of the ranks, such as "
                              "chief=1,worker=3,ps=2,evaluator=1. Default: "
                              "all are workers."},
    [OPTION_DEVICES] = {.name = "devices",
                        .value = "HOW",
                        .environment = "GPULAUNCH_DEVICES",
                        .group = PLACES,
                        .help = "GPUs that a rank sees: leave (all), rank "
                                "(one each), node (its node's share) or auto "
                                "(node where nodes share a host, else leave; "
                                "default)."},
    [OPTION_BIND] = {.name = "bind",
                     .value = "HOW",
                     .environment = "GPULAUNCH_BIND",
                     .group = PLACES,
                     .help = "Processors that a rank runs on: gpu (those near "
                             "its GPU), numa (of a NUMA node, and its memory), "
                             "core (its even share) or none (all; default)."},
    [OPTION_INTERFACE] = {.name = "interface",
                          .value = "LIST",
                          .environment = "GPULAUNCH_INTERFACE",
                          .group = PLACES,
                          .help = "Interfaces or addresses, exact, by which "
                                  "nodes may reach each other, as in "
                                  "eth0,ib0,10.0.0.5. Default: what all other "
                                  "nodes have reached."},
    [OPTION_ADDRESS] = {.name = "address",
                        .value = "ADDR",
                        .environment = "GPULAUNCH_ADDRESS",
                        .group = REACHING,
                        .help = "Where the nodes find the coordinator: a "
                                "literal address of this machine. Default: "
                                "those that the routes to the nodes begin "
                                "at."},
    [OPTION_ADVERTISE] = {.name = "advertise",
                          .value = "ADDR[:PORT]",
                          .environment = "GPULAUNCH_ADVERTISE",
                          .group = REACHING,
                          .help = "Tell the nodes this address first, which "
                                  "is not this machine's own but leads to it, "
                                  "by NAT or a forwarded port. Needs --port; "
                                  "PORT is another one that leads to that."},
    [OPTION_PORT] = {.name = "port",
                     .value = "PORT",
                     .environment = "GPULAUNCH_PORT",
                     .group = REACHING,
                     .help = "The coordinator's port. Default: one that is "
                             "free."},
    [OPTION_JOB] = {.name = "job",
                    .value = "ID",
                    .environment = "GPULAUNCH_JOB",
                    .group = REACHING,
                    .help =
                        "Name of this run, another one each time. Default: the "
                        "time and a number. Of join: the job to take part "
                        "in."},
    [OPTION_NAME] = {.name = "name",
                     .value = "NODE",
                     .environment = "GPULAUNCH_NAME",
                     .group = REACHING,
                     .help = "Of join: name of this node, another one on each. "
                             "Default: this machine's."},
    [OPTION_WORKER_PATH] =
        {.name = "worker-path",
         .value = "FILE",
         .environment = "GPULAUNCH_WORKER_PATH",
         .group = REACHING,
         .help = "The program gpulaunch-worker on the nodes. Default: where it "
                 "is here, else in the nodes' PATH."},
    [OPTION_COPY_WORKER] =
        {.name = "copy-worker",
         .environment = "GPULAUNCH_COPY_WORKER",
         .group = REACHING,
         .help = "Bring the program to the nodes, for this job; it needs its "
                 "libraries there."},
    [OPTION_SSH_COMMAND] =
        {.name = "ssh-command",
         .value = "COMMAND",
         .environment = "GPULAUNCH_SSH_COMMAND",
         .group = REACHING,
         .help = "ssh, and options of yours, parted by blanks, as in \"ssh -p "
                 "2222\". Your ~/.ssh/config holds in any case."},
    [OPTION_SELF_TEST] = {.name = "self-test",
                          .value = "LEVEL",
                          .environment = "GPULAUNCH_SELF_TEST",
                          .group = TEST,
                          .help = "All-reduce between the nodes before the "
                                  "command starts: quick (default), full or "
                                  "off."},
    [OPTION_BACKEND] =
        {.name = "backend",
         .value = "NAME",
         .environment = "GPULAUNCH_BACKEND",
         .group = TEST,
         .help =
             "What the self-test runs on: auto (NCCL where every node has GPUs "
             "and can use it, else host memory; default), nccl or host."},
    [OPTION_NCCL_LIB] = {.name = "nccl-lib",
                         .value = "FILE",
                         .environment = "GPULAUNCH_NCCL_LIB",
                         .group = TEST,
                         .help = "The NCCL or RCCL library to test with. "
                                 "Default: the one that COMMAND would load."},
    [OPTION_MINBYTES] = {.name = "minbytes",
                         .letter = 'b',
                         .value = "SIZE",
                         .environment = "GPULAUNCH_MINBYTES",
                         .group = TEST,
                         .help = "Smallest message, as in 8, 64K or 1G. "
                                 "Default: the level's own sizes."},
    [OPTION_MAXBYTES] = {.name = "maxbytes",
                         .letter = 'e',
                         .value = "SIZE",
                         .environment = "GPULAUNCH_MAXBYTES",
                         .group = TEST,
                         .help = "Largest message."},
    [OPTION_STEPFACTOR] =
        {.name = "stepfactor",
         .value = "N",
         .environment = "GPULAUNCH_STEPFACTOR",
         .group = TEST,
         .help = "Each message is so many times as large as the one before."},
    [OPTION_ITERS] = {.name = "iters",
                      .value = "N",
                      .environment = "GPULAUNCH_ITERS",
                      .group = TEST,
                      .help = "Timed iterations of each message."},
    [OPTION_WARMUP_ITERS] = {.name = "warmup-iters",
                             .value = "N",
                             .environment = "GPULAUNCH_WARMUP_ITERS",
                             .group = TEST,
                             .help = "Iterations before those that are timed."},
    [OPTION_CHECK] = {.name = "check",
                      .value = "N",
                      .environment = "GPULAUNCH_CHECK",
                      .group = TEST,
                      .help = "Iterations whose result is compared, element by "
                              "element; 0: none."},
    [OPTION_MIN_BUSBW] =
        {.name = "min-busbw",
         .value = "GBPS",
         .environment = "GPULAUNCH_MIN_BUSBW",
         .group = TEST,
         .help = "Fail with exit code 30 when the bus bandwidth of the largest "
                 "all-reduce is below this many GB/s (1e9 bytes)."},
    [OPTION_SELF_TEST_TIMEOUT] =
        {.name = "self-test-timeout",
         .value = "TIME",
         .environment = "GPULAUNCH_SELF_TEST_TIMEOUT",
         .group = TEST,
         .help = "Bound of each phase of the self-test. Default: 30s, and for "
                 "the messages 1m (full, or sizes of your own: 10m)."},
    [OPTION_STRICT] = JUDGED("strict", NULL, "STRICT",
                             "Of check and doctor: a warning, and what could "
                             "not be checked, fail it too."),
    [OPTION_DATA_DIR] = JUDGED("data-dir", "DIR", "DATA_DIR",
                               "Of check and doctor: time the reading of what "
                               "is in this directory, on every node."),
    [OPTION_RECORD] = JUDGED("record", "FILE", "RECORD",
                             "Of check and doctor: write all that was found to "
                             "this file, for gpulaunch report and diff."),
    [OPTION_HTML] =
        JUDGED("html", "FILE", "HTML", "The same as one page for a browser."),
    [OPTION_JUNIT] = JUDGED("junit", "FILE", "JUNIT", "The same as JUnit XML."),
    [OPTION_PROMETHEUS] = JUDGED("prometheus", "FILE", "PROMETHEUS",
                                 "The same as Prometheus text."),
    [OPTION_TIMEOUT] = {.name = "timeout",
                        .value = "TIME",
                        .environment = "GPULAUNCH_TIMEOUT",
                        .group = BOUNDS,
                        .help = "End the job after this time with exit code "
                                "124: 90s, 5m, 2h. Default: none."},
    [OPTION_JOIN_TIMEOUT] = {.name = "join-timeout",
                             .value = "TIME",
                             .environment = "GPULAUNCH_JOIN_TIMEOUT",
                             .group = BOUNDS,
                             .help = "Wait this long for all nodes to join. "
                                     "Default 10m."},
    [OPTION_GRACE] = {.name = "grace",
                      .value = "TIME",
                      .environment = "GPULAUNCH_GRACE",
                      .group = BOUNDS,
                      .help = "Time between the signal that stops the ranks "
                              "and SIGKILL. Default 30s."},
    [OPTION_ORPHAN_TIMEOUT] =
        {.name = "orphan-timeout",
         .value = "TIME",
         .environment = "GPULAUNCH_ORPHAN_TIMEOUT",
         .group = BOUNDS,
         .help = "How long the ranks of a node that has lost the coordinator "
                 "run on before they are stopped. Default 60s."},
    [OPTION_SIGNAL] =
        {.name = "signal",
         .value = "SIG[@TIME]",
         .environment = "GPULAUNCH_SIGNAL",
         .group = BOUNDS,
         .help = "Send this signal, a name or a number, to every rank so long "
                 "before --timeout ends the job: USR1@60s. Default time 60s."},
    [OPTION_HANG_TIMEOUT] =
        {.name = "hang-timeout",
         .value = "TIME",
         .environment = "GPULAUNCH_HANG_TIMEOUT",
         .group = BOUNDS,
         .help = "Report a rank that makes no step, or where steps are not "
                 "told writes nothing, for this time; off: never. Default: "
                 "auto, learned from the steps that ranks tell by "
                 "GPULAUNCH_BEAT_FD."},
    [OPTION_ON_HANG] = {.name = "on-hang",
                        .value = "WHAT",
                        .environment = "GPULAUNCH_ON_HANG",
                        .group = BOUNDS,
                        .help = "When training hangs: report (default), or "
                                "stop, which ends the job with exit code 75."},
    [OPTION_SECRET_FILE] =
        {.name = "secret-file",
         .value = "FILE",
         .environment = "GPULAUNCH_SECRET_FILE",
         .group = SECRECY,
         .help = "Take the secret of the job from this file, which nobody else "
                 "may read; gpulaunch secret makes one. Default: drawn for "
                 "each job."},
    [OPTION_INSECURE] =
        {.name = "insecure",
         .environment = "GPULAUNCH_INSECURE",
         .group = SECRECY,
         .help = "Neither authenticate nor encrypt the control channel; only "
                 "where it does not leave this machine."},
    [OPTION_ENV] = {.name = "env",
                    .letter = 'x',
                    .value = "NAME[=VALUE]",
                    .environment = "GPULAUNCH_ENV",
                    .group = RANKS,
                    .help = "Set a variable for the ranks; wins over every "
                            "rule of gpulaunch. NAME alone takes the value "
                            "that gpulaunch itself sees. May be given more "
                            "than once.",
                    .repeats = true},
    [OPTION_TF_CONFIG] = {.name = "tf-config",
                          .value = "WHEN",
                          .environment = "GPULAUNCH_TF_CONFIG",
                          .group = RANKS,
                          .help = "Set TF_CONFIG: auto (where there is more "
                                  "than one task; default), always, never, or "
                                  "file (written to the file that "
                                  "GPULAUNCH_TF_CONFIG_FILE names)."},
    [OPTION_TF_EVALUATOR] = {.name = "tf-evaluator",
                             .value = "WHERE",
                             .environment = "GPULAUNCH_TF_EVALUATOR",
                             .group = RANKS,
                             .help = "The evaluator in TF_CONFIG's cluster: "
                                     "absent (default) or own (in its own "
                                     "copy only)."},
    [OPTION_EMULATE] = {.name = "emulate",
                        .value = "NAME",
                        .environment = "GPULAUNCH_EMULATE",
                        .group = RANKS,
                        .help = "Give the ranks the variables of another "
                                "launcher as well: slurm."},
    [OPTION_STDIN] = {.name = "stdin",
                      .aliases = "input",
                      .value = "WHO",
                      .environment = "GPULAUNCH_STDIN",
                      .group = OUTPUT,
                      .help = "Who reads the standard input of gpulaunch: a "
                              "rank (default 0), all or none. The others have "
                              "/dev/null."},
    [OPTION_LABEL] = {.name = "label",
                      .aliases = "tag-output",
                      .letter = 'l',
                      .environment = "GPULAUNCH_LABEL",
                      .group = OUTPUT,
                      .help = "Put [rank] before each line of output "
                              "(default where there are several ranks)."},
    [OPTION_NO_LABEL] = {.name = "no-label",
                         .environment = "GPULAUNCH_NO_LABEL",
                         .group = OUTPUT,
                         .help = "Pass the output on byte by byte."},
    [OPTION_TIMESTAMPS] = {.name = "timestamps",
                           .aliases = "timestamp-output",
                           .environment = "GPULAUNCH_TIMESTAMPS",
                           .group = OUTPUT,
                           .help = "Put the time (UTC) before each line of "
                                   "output."},
    [OPTION_RANKS] = {.name = "ranks",
                      .aliases = "tee",
                      .value = "LIST",
                      .environment = "GPULAUNCH_RANKS",
                      .group = OUTPUT,
                      .help = "Show the output of these ranks only, as in "
                              "0,3-5; the logs have all of it."},
    [OPTION_FOLD] = {.name = "fold",
                     .value = "WHEN",
                     .environment = "GPULAUNCH_FOLD",
                     .group = OUTPUT,
                     .help = "Say equal lines of several ranks once, with the "
                             "ranks, as in [0-7]: auto (on a terminal; "
                             "default), always or never."},
    [OPTION_LOG_DIR] = {.name = "log-dir",
                        .value = "DIR",
                        .environment = "GPULAUNCH_LOG_DIR",
                        .group = OUTPUT,
                        .help = "Keep the output of every rank under this "
                                "directory. Default: a directory of the "
                                "user's state, kept after a failure only."},
    [OPTION_RESULT] = {.name = "result",
                       .value = "FILE",
                       .environment = "GPULAUNCH_RESULT",
                       .group = OUTPUT,
                       .help = "Write the outcome to this file, as JSON."},
    [OPTION_METRICS] =
        {.name = "metrics",
         .environment = "GPULAUNCH_METRICS",
         .group = OUTPUT,
         .help = "Give each rank GPULAUNCH_METRIC_FD: the line that it writes "
                 "there, and the steps that it tells, stand in the result."},
    [OPTION_JSON] = {.name = "json",
                     .environment = "GPULAUNCH_JSON",
                     .group = OUTPUT,
                     .help = "Write the outcome to standard output, as one "
                             "JSON object; the ranks' output goes to "
                             "standard error."},
    [OPTION_COLOR] = {.name = "color",
                      .value = "WHEN",
                      .environment = "GPULAUNCH_COLOR",
                      .group = OUTPUT,
                      .help = "auto (default), always or never."},
    [OPTION_VERBOSE] = {.name = "verbose",
                        .letter = 'v',
                        .environment = "GPULAUNCH_VERBOSE",
                        .group = OUTPUT,
                        .help = "Say what happens at each step."},
    [OPTION_QUIET] = {.name = "quiet",
                      .letter = 'q',
                      .environment = "GPULAUNCH_QUIET",
                      .group = OUTPUT,
                      .help = "Say nothing but errors."},
    [OPTION_DRY_RUN] = {.name = "dry-run",
                        .environment = "GPULAUNCH_DRY_RUN",
                        .group = LOOKING,
                        .help = "Go through with it up to the start of the "
                                "ranks, print the plan and each rank's "
                                "environment, and start nothing."},
    [OPTION_RANK] = {.name = "rank",
                     .value = "R",
                     .environment = "GPULAUNCH_RANK",
                     .group = LOOKING,
                     .help = "The rank whose environment gpulaunch env "
                             "prints."},
    [OPTION_EXPLAIN] = {.name = "explain",
                        .environment = "GPULAUNCH_EXPLAIN",
                        .group = LOOKING,
                        .help = "run: print each setting and where it came "
                                "from. env: print the rule behind each "
                                "variable."},
    [OPTION_HELP] = {.name = "help",
                     .letter = 'h',
                     .group = LOOKING,
                     .help = "Print this help and leave."},
    [OPTION_VERSION] = {.name = "version",
                        .letter = 'V',
                        .group = LOOKING,
                        .help = "Print the version and leave."},

/* Flags that users of torchrun, srun and mpirun have in their fingers. */
#define FOREIGN(name_, aliases_, letter_, value_, hint)                        \
    {                                                                          \
        .name = name_, .aliases = aliases_, .letter = letter_,                 \
        .value = value_, .help = hint, .is_hidden = true, .repeats = true      \
    }
    FOREIGN("secret", NULL, 0, "VALUE",
            "everybody on this machine can read a command line; put the "
            "secret into a file and use --secret-file FILE (gpulaunch secret "
            "makes one)"),
    FOREIGN("partition", NULL, 'p', "NAME",
            "leave it out: gpulaunch does not ask a scheduler for nodes; run "
            "it within a job of the scheduler"),
    FOREIGN("rdzv-endpoint", "rdzv-backend rdzv-id rdzv-conf", 0, "VALUE",
            "leave it out: gpulaunch starts every node and brings its own "
            "rendezvous; where nodes find this machine by an address that it "
            "does not have itself, give --advertise"),
    FOREIGN("master-addr", "master-port", 0, "VALUE",
            "leave it out: gpulaunch chooses the address and the port and "
            "tells every rank"),
    FOREIGN("node-rank", NULL, 0, "N",
            "leave it out: gpulaunch starts every node and numbers it"),
    FOREIGN("standalone", NULL, 0, NULL, "use --local"),
    FOREIGN("max-restarts", NULL, 0, "N",
            "not yet: this version does not restart a failed job; leave it "
            "out"),
    FOREIGN("module", NULL, 'm', "NAME",
            "put it into the command: -- python -m MODULE"),
    FOREIGN("no-python", "run-path", 0, NULL,
            "leave it out: the command after -- is started as it is"),
    FOREIGN("redirects", NULL, 0, "WHICH",
            "leave it out: output is kept in files in any case, see --log-dir; "
            "--ranks LIST chooses what is shown"),
    FOREIGN("local-ranks-filter", NULL, 0, "LIST",
            "use --ranks LIST, with ranks of the whole job"),
    FOREIGN("log-line-prefix-template", NULL, 0, "TEXT",
            "leave it out: see --label and --timestamps"),
    FOREIGN("monitor-interval", "start-method", 0, "VALUE",
            "leave it out: gpulaunch has no such setting"),
    FOREIGN("time", NULL, 't', "TIME", "use --timeout TIME"),
    FOREIGN("ntasks", "np", 'n', "N",
            "use --nodes N and --per-node K: there are N x K ranks"),
    FOREIGN("ppn", NULL, 0, "K", "use --per-node K"),
    FOREIGN("gpus", "gres gpus-per-task", 'G', "N",
            "use --per-node gpu, and --devices rank for one GPU per rank"),
    FOREIGN("stepbytes", NULL, 'i', "SIZE",
            "use --stepfactor N: sizes are multiplied, not added to"),
    FOREIGN("cpus-per-task", NULL, 'c', "N",
            "leave it out; --bind core gives each rank its even share of the "
            "cores"),
    FOREIGN("bind-to", "cpu-bind numa-binding", 0, "VALUE",
            "use --bind none, numa, gpu or core"),
    FOREIGN("map-by", "mca", 0, "VALUE",
            "leave it out: gpulaunch does not count slots"),
    FOREIGN("oversubscribe", "allow-run-as-root", 0, NULL,
            "leave it out: gpulaunch does not ask for it"),
};

const struct gpul_option *option_table(size_t *count)
{
    *count = sizeof(table) / sizeof(table[0]);
    return table;
}
