/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/cli.h"
#include "launcher/cli_manifest.h"
#include "launcher/cli_report.h"
#include "launcher/cli_scale.h"
#include "launcher/cli_value.h"

static const char program_head[] =
    "Usage: gpulaunch [run] [options] -- COMMAND [ARGUMENT...]\n"
    "       gpulaunch check [options] [-- COMMAND...]\n"
    "       gpulaunch doctor [options] [-- COMMAND...]\n"
    "       gpulaunch env [options] --rank R [--explain] -- COMMAND...\n"
    "       gpulaunch secret [FILE]\n"
    "       gpulaunch join ADDR:PORT --job ID --secret-file FILE\n"
    "       gpulaunch manifest KIND --nodes N [options] -- COMMAND...\n"
    "       gpulaunch report RECORD [--html FILE] [--junit FILE]\n"
    "       gpulaunch diff BEFORE AFTER\n"
    "       gpulaunch scale --nodes N,N,... [options] -- COMMAND...\n"
    "       gpulaunch help [VERB]\n"
    "\n"
    "Bring nodes together, prove that they can train, and run COMMAND on all\n"
    "of them with the environment that TensorFlow, PyTorch, JAX and Horovod\n"
    "programs expect.\n";

static const char run_head[] =
    "Usage: gpulaunch [run] [options] -- COMMAND [ARGUMENT...]\n"
    "\n"
    "Start the nodes, test an all-reduce between them, run COMMAND once per\n"
    "rank, pass its output on, and end with the exit code of the first rank\n"
    "that failed, or 0.\n";

static const char env_head[] =
    "Usage: gpulaunch env [options] --rank R [--explain] -- COMMAND...\n"
    "\n"
    "Start the nodes, build the environment of rank R exactly as for a run,\n"
    "print it as NAME=VALUE lines that a shell can read, and start nothing.\n"
    "Takes the options of run; those that only matter to a running command\n"
    "have no effect.\n";

static const char check_head[] =
    "Usage: gpulaunch check [options] [-- COMMAND...]\n"
    "\n"
    "Bring the nodes together and judge them, without starting anything: what\n"
    "they are and where they differ, who reaches whom, how fast an all-reduce\n"
    "is and whether its data is right. COMMAND is only looked for. What was\n"
    "found goes to standard output, by severity, with what to do.\n";

static const char doctor_head[] =
    "Usage: gpulaunch doctor [options] [-- COMMAND...]\n"
    "\n"
    "Judge this machine by itself, as check does each of its nodes. With -v\n"
    "what passed is listed too.\n";

static const char check_tail[] =
    "\n"
    "Letters of nccl-tests: -b -e -n -c; its -f and -w are --stepfactor and\n"
    "--warmup-iters here.\n"
    "\n"
    "Exit codes: 0 passed; 20 a check failed; 21 wrong data; 30 too slow; 40 "
    "a\n"
    "deadline; 41 a node lost; 124 --timeout; 125 wrong usage, a test that "
    "is\n"
    "none, or gpulaunch's own failure.\n"
    "\n"
    "Example: gpulaunch check --hosts node[01-16] --data-dir /data\n"
    "The manual: man gpulaunch\n";

static const char secret_text[] =
    "Usage: gpulaunch secret [FILE]\n"
    "\n"
    "Make a secret for --secret-file: 64 hexadecimal digits, drawn by the\n"
    "kernel. With FILE it is written to a new file that nobody else may read;\n"
    "one that exists is left as it is, and an error. Without FILE it goes to\n"
    "standard output; a shell's > makes a file that gpulaunch takes only "
    "after\n"
    "umask 077.\n"
    "\n"
    "Example: gpulaunch secret job.secret\n";

static const char join_head[] =
    "Usage: gpulaunch join ADDR[:PORT] --job ID --secret-file FILE [options]\n"
    "\n"
    "Make this machine a node of a job that waits for its nodes: the other\n"
    "gpulaunch prints the line to type. It stays until the job is over. A\n"
    "name that nobody knows yet, and a job that is not there yet, are waited\n"
    "for.\n";

static const char join_tail[] =
    "\n"
    "Exit codes: 0 the job is over (how it ended, the other gpulaunch says);\n"
    "40 not let in within --join-timeout; 75 the job went away; 125 refused,\n"
    "wrong usage, or gpulaunch's own failure.\n"
    "\n"
    "Example: gpulaunch join 10.0.0.1:40123 --job 20261130-221500-3f9a2c41 \\\n"
    "             --secret-file job.secret\n"
    "The manual: man gpulaunch\n";

static const char tail[] =
    "\n"
    "Every option can come from the environment too: --join-timeout from\n"
    "GPULAUNCH_JOIN_TIMEOUT, and so on. A flag wins over the environment.\n"
    "\n"
    "Exit codes: that of the first failing rank (128+N for signal N);\n"
    "20, 21, 30, 40, 41 the self-test or a node stopped the launch; 75 nodes\n"
    "or coordinator lost; 124 --timeout; 125 wrong usage or gpulaunch's own\n"
    "failure; 126, 127 the command cannot be executed, was not found.\n"
    "\n"
    "Example: gpulaunch --local --nodes 4 -- python train.py\n"
    "The manual: man gpulaunch\n";

/* What an option of run means here. */
static const char *join_words(enum option option,
                              const struct gpul_option *entry)
{
    switch (option) {
    case OPTION_ADDRESS:
        return "In the place of ADDR: where the job is.";
    case OPTION_PORT:
        return "The port, if it is not behind ADDR.";
    case OPTION_JOB:
        return "The job to take part in.";
    case OPTION_NAME:
        return "Name of this node, another one on each. Default: this "
               "machine's.";
    case OPTION_JOIN_TIMEOUT:
        return "Give up if the job has not let this node in by then. Default "
               "10m.";
    case OPTION_SECRET_FILE:
        return "A file with the secret of the job, which nobody else may "
               "read: a copy of the one that the line names.";
    case OPTION_INSECURE:
        return "The job has no secret (--insecure); on its machine only.";
    case OPTION_EXPLAIN:
        return "Print each setting and where it came from.";
    default:
        return entry->help;
    }
}

/* The options of one verb. */
static int verb_help(struct gpul_buf *out, enum plan_verb verb,
                     const char *head, const char *foot)
{
    struct gpul_option own[OPTION_COUNT];
    size_t count = 0;
    const struct gpul_option *table = option_table(&count);
    struct gpul_options options = {.table = own};
    for (size_t i = 0; i < OPTION_COUNT; i++) {
        if (cli_verb_has(verb, (enum option)i)) {
            own[options.count] = table[i];
            if (verb == PLAN_JOIN) {
                own[options.count].help = join_words((enum option)i, &table[i]);
            }
            options.count++;
        }
    }
    gpul_buf_append_text(out, head);
    gpul_buf_append_text(out, "\n");
    gpul_options_help(out, &options);
    return gpul_buf_append_text(out, foot);
}

int cli_help(struct gpul_buf *out, enum plan_verb topic)
{
    switch (topic) {
    case PLAN_SECRET:
        return gpul_buf_append_text(out, secret_text);
    case PLAN_MANIFEST:
        return cli_manifest_help(out);
    case PLAN_REPORT:
    case PLAN_DIFF:
        return cli_report_help(out, topic);
    case PLAN_SCALE:
        return cli_scale_help(out);
    case PLAN_JOIN:
        return verb_help(out, topic, join_head, join_tail);
    case PLAN_CHECK:
        return verb_help(out, topic, check_head, check_tail);
    case PLAN_DOCTOR:
        return verb_help(out, topic, doctor_head, check_tail);
    case PLAN_RUN:
        return verb_help(out, topic, run_head, tail);
    case PLAN_ENV:
        return verb_help(out, topic, env_head, tail);
    default:
        return verb_help(out, PLAN_RUN, program_head, tail);
    }
}
