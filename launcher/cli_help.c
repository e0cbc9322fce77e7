/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/cli.h"

static const char program_head[] =
    "Usage: gpulaunch [run] [options] -- COMMAND [ARGUMENT...]\n"
    "       gpulaunch env [options] --rank R [--explain] -- COMMAND...\n"
    "       gpulaunch secret [FILE]\n"
    "       gpulaunch help [run|env|secret]\n"
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

int cli_help(struct gpul_buf *out, enum plan_verb topic)
{
    struct gpul_options options = {0};
    if (topic == PLAN_SECRET) {
        return gpul_buf_append_text(out, secret_text);
    }
    options.table = option_table(&options.count);
    gpul_buf_append_text(out, topic == PLAN_RUN   ? run_head
                              : topic == PLAN_ENV ? env_head
                                                  : program_head);
    gpul_buf_append_text(out, "\n");
    gpul_options_help(out, &options);
    return gpul_buf_append_text(out, tail);
}
