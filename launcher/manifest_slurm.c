/* SPDX-License-Identifier: Apache-2.0
 *
 * A batch script. gpulaunch takes the nodes from the job that it runs in, so
 * what sbatch is told beside the script (-N 8, -p gpu) holds as well.
 *
 * Source: the manual of sbatch.
 */
#include <inttypes.h>

#include "launcher/manifest.h"
#include "launcher/quoting.h"

enum {
    START_S = 120, /* of the job and its self-test, beside --timeout */
    GRACE_EXTRA_S = 15,
    MINUTE_S = 60,
    MINUTE_MS = 60000,
};

static uint32_t grace_s(const struct manifest *m)
{
    return (m->grace_ms + 999) / 1000 + GRACE_EXTRA_S;
}

/* The limit of the job leaves time for everything but the command. */
static uint64_t limit_minutes(const struct manifest *m)
{
    uint64_t ms = (uint64_t)m->timeout_ms + m->join_timeout_ms +
                  (uint64_t)(START_S + grace_s(m)) * 1000;
    return (ms + MINUTE_MS - 1) / MINUTE_MS;
}

static void append_head(struct gpul_buf *out, const struct manifest *m)
{
    gpul_buf_appendf(
        out,
        "#!/bin/bash\n"
        "# Submit with: sbatch FILE; what follows sbatch wins over "
        "the lines below.\n"
        "#SBATCH --job-name=%s\n"
        "#SBATCH --nodes=%" PRIu32 "\n"
        "#SBATCH --ntasks-per-node=1\n",
        m->name, m->nodes);
    if (m->gpus > 0) {
        gpul_buf_appendf(out, "#SBATCH --gpus-per-node=%" PRIu32 "\n", m->gpus);
    }
    if (m->timeout_ms > 0) {
        gpul_buf_appendf(out,
                         "# The --timeout of the run, and time to start and to "
                         "end it.\n"
                         "#SBATCH --time=%" PRIu64 "\n",
                         limit_minutes(m));
    }
    gpul_buf_appendf(out,
                     "# Before the limit of the job, the ranks get SIGTERM and "
                     "their grace.\n"
                     "#SBATCH --signal=B:TERM@%" PRIu32 "\n",
                     grace_s(m));
    gpul_buf_append_text(
        out, m->retries > 0 ? "#SBATCH --requeue\n#SBATCH --open-mode=append\n"
                            : "#SBATCH --no-requeue\n");
}

/* The script's shell must live to ask for another go, and passes signals on;
 * the wait that a signal has ended is done again. */
static void append_retry(struct gpul_buf *out, const struct manifest *m)
{
    gpul_buf_appendf(
        out,
        " &\n"
        "child=$!\n"
        "trap 'kill -TERM \"$child\" 2>/dev/null' TERM\n"
        "trap 'kill -INT \"$child\" 2>/dev/null' INT\n"
        "wait \"$child\"\n"
        "code=$?\n"
        "while kill -0 \"$child\" 2>/dev/null; do\n"
        "    wait \"$child\"\n"
        "    code=$?\n"
        "done\n"
        "\n"
        "# A node was late (40), lost before the command began (41) or lost\n"
        "# or taken away later (75), so trying again makes sense.\n"
        "case $code in\n"
        "40 | 41 | 75)\n"
        "    if [ \"${SLURM_RESTART_COUNT:-0}\" -lt %" PRIu32 " ]; then\n"
        "        scontrol requeue \"$SLURM_JOB_ID\"\n"
        "    fi\n"
        "    ;;\n"
        "esac\n"
        "exit \"$code\"\n",
        m->retries);
}

int manifest_slurm(struct gpul_buf *out, const struct manifest *m,
                   struct gpul_error *err)
{
    (void)err;
    append_head(out, m);
    gpul_buf_append_text(out,
                         m->retries > 0 ? "\ngpulaunch" : "\nexec gpulaunch");
    quoting_shell_words(out, m->options, m->option_count);
    gpul_buf_append_text(out, " --");
    quoting_shell_words(out, m->command, m->command_count);
    if (m->retries > 0) {
        append_retry(out, m);
    } else {
        gpul_buf_append_text(out, "\n");
    }
    return 0;
}
