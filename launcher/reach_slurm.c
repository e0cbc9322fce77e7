/* SPDX-License-Identifier: Apache-2.0
 *
 * The nodes of a Slurm job: one step of srun starts gpulaunch join on each,
 * which takes the node's name from the step (SLURMD_NODENAME) and the secret
 * from a file that the nodes share with this machine.
 *
 * What stands for all nodes is the srun process, the child of node 0. It ends
 * when the last of them has left; before they have joined its end is theirs.
 * The step is not killed when one task fails (--kill-on-bad-exit=0): the
 * coordinator stops the others in order, within their grace.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "launcher/ownaddr.h"
#include "launcher/programs.h"
#include "launcher/reach_internal.h"
#include "launcher/srunenv.h"

enum {
    NUMBER_BYTES = 40,
    NAMES_BYTES_MAX = 96 << 10, /* Linux takes 128 KiB for one argument */
    ADDRESSES_BYTES_MAX = GPUL_COORDINATORS_MAX * (GPUL_ADDRESS_BYTES_MAX + 10),
    ARGUMENTS_MAX = 30, /* besides what is given back */
};

extern char **environ;

struct step {
    char *srun;
    char front[PATH_MAX]; /* gpulaunch itself */
    char nodes[NUMBER_BYTES], tasks[NUMBER_BYTES], timeout[NUMBER_BYTES];
    char gpus[SRUNENV_GPUS_BYTES]; /* --gpus-per-node=4; "": it is not said */
    struct gpul_buf names;         /* --nodelist=n[1-4] */
    struct gpul_buf addresses;     /* of the coordinator, for join */
    /* NULL-terminated; the strings are of our own environment. */
    char **environment; /* of srun */
    char **asked;       /* what it may not see, for the ranks */
    size_t asked_count;
    int sent; /* the signal that was sent last */
};

static char *word(const char *text)
{
    return (char *)(uintptr_t)text;
}

static int find_srun(char **out, struct gpul_error *err)
{
    int why = 0;
    int rc = gpul_spawn_find(out, &why, "srun", getenv("PATH"), NULL, NULL);
    return rc == 0 ? 0
                   : gpul_fail(err, rc,
                               "this is a job of Slurm, but srun is not in "
                               "PATH (%s); add its directory, or name the "
                               "nodes with --hosts to reach them by ssh",
                               strerror(why));
}

static int prepare(struct reach *r, const struct plan *plan,
                   struct listening *listening, struct gpul_error *err)
{
    struct step *step = calloc(1, sizeof(*step));
    if (step == NULL) {
        return gpul_fail(err, GPUL_ENOMEM, "out of memory");
    }
    r->state = step;
    gpul_buf_init(&step->names, NAMES_BYTES_MAX);
    gpul_buf_init(&step->addresses, ADDRESSES_BYTES_MAX);
    int rc = find_srun(&step->srun, err);
    if (rc == 0) {
        rc = programs_find(step->front, "gpulaunch", err);
    }
    if (rc != 0) {
        return rc;
    }
    return ownaddr_find(listening, plan->address, err);
}

static const char *look_up(void *arg, const char *name)
{
    (void)arg;
    return getenv(name);
}

static int fill_texts(struct step *step, const struct reach_job *job,
                      struct gpul_error *err)
{
    const struct plan *plan = job->plan;
    struct gpul_hostport at[GPUL_COORDINATORS_MAX];
    uint32_t count = listening_told(job->listening, at);
    snprintf(step->nodes, sizeof(step->nodes), "--nodes=%" PRIu32,
             plan->node_count);
    snprintf(step->tasks, sizeof(step->tasks), "--ntasks=%" PRIu32,
             plan->node_count);
    snprintf(step->timeout, sizeof(step->timeout), "%" PRIu32 "ms",
             plan->join_timeout_ms);
    if (!srunenv_gpus(step->gpus, look_up, NULL)) {
        step->gpus[0] = '\0';
    }
    gpul_buf_append_text(&step->names, "--nodelist=");
    int rc = nodes_fold(&step->names, &plan->nodes, 0, plan->nodes.count);
    for (uint32_t i = 0; i < count; i++) {
        gpul_buf_append_text(&step->addresses, i > 0 ? "," : "");
        gpul_hostport_append(&step->addresses, at[i].host, at[i].port);
    }
    return rc == 0 && gpul_buf_text(&step->names) != NULL &&
                   gpul_buf_text(&step->addresses) != NULL
               ? 0
               : gpul_fail(err, GPUL_ELIMIT,
                           "the names of the nodes are too long for srun");
}

static int split_environment(struct step *step, struct gpul_error *err)
{
    size_t count = 0, passed = 0;
    while (environ[count] != NULL) {
        count++;
    }
    step->environment = calloc(count + 1, sizeof(*step->environment));
    step->asked = calloc(count + 1, sizeof(*step->asked));
    if (step->environment == NULL || step->asked == NULL) {
        return gpul_fail(err, GPUL_ENOMEM, "out of memory");
    }
    for (size_t i = 0; i < count; i++) {
        enum srunenv_use use = srunenv_judge(environ[i]);
        if (use == SRUNENV_PASSED) {
            step->environment[passed++] = environ[i];
        } else if (use == SRUNENV_ASKED) {
            step->asked[step->asked_count++] = environ[i];
        }
    }
    return 0;
}

/* Program and arguments; env gives back what srun may not see. */
static void fill_arguments(char **out, struct step *step,
                           const struct reach_job *job)
{
    size_t n = 0;
    out[n++] = word("srun");
    out[n++] = step->nodes;
    out[n++] = step->tasks;
    out[n++] = word("--ntasks-per-node=1");
    out[n++] = word(gpul_buf_text(&step->names));
    out[n++] = word("--kill-on-bad-exit=0");
    out[n++] = word("--wait=0");
    out[n++] = word("--input=none");
    out[n++] = word("--export=ALL");
    out[n++] = word("--overlap");
    out[n++] = word("--cpu-bind=none"); /* --bind is ours */
    out[n++] = word("--mpi=none");
    out[n++] = word("--job-name=gpulaunch");
    if (step->gpus[0] != '\0') {
        out[n++] = step->gpus;
    }
    out[n++] = word("--");
    if (step->asked_count > 0) {
        out[n++] = word("/usr/bin/env");
    }
    for (size_t i = 0; i < step->asked_count; i++) {
        out[n++] = step->asked[i];
    }
    out[n++] = step->front;
    out[n++] = word("join");
    out[n++] = word(gpul_buf_text(&step->addresses));
    out[n++] = word("--job");
    out[n++] = word(job->job_id);
    out[n++] = word("--join-timeout");
    out[n++] = step->timeout;
    out[n++] = word("--quiet");
    if (job->secret != NULL) {
        out[n++] = word("--secret-file");
        out[n++] = word(job->secret_path);
    } else {
        out[n++] = word("--insecure");
    }
    out[n] = NULL;
}

static int start_srun(struct reach *r, const struct reach_job *job,
                      struct gpul_error *err)
{
    struct step *step = r->state;
    char **arguments =
        calloc(ARGUMENTS_MAX + step->asked_count, sizeof(*arguments));
    if (arguments == NULL) {
        return gpul_fail(err, GPUL_ENOMEM, "out of memory");
    }
    int null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (null_fd < 0) {
        free(arguments);
        return gpul_fail_errno(err, errno, "cannot open /dev/null");
    }
    fill_arguments(arguments, step, job);
    const struct reach_program srun = {step->srun, arguments,
                                       step->environment};
    struct gpul_spawn_fd fds[] = {{null_fd, 0}, {null_fd, 1}, {-1, 2}};
    /* Should we be killed, nobody could tell nodes that have not joined. */
    int rc = reach_spawn(r, &r->workers[0], &srun, fds, 3, SIGTERM, err);
    close(null_fd);
    free(arguments);
    return rc;
}

static int start(struct reach *r, const struct reach_job *job,
                 struct gpul_error *err)
{
    struct step *step = r->state;
    int rc = fill_texts(step, job, err);
    if (rc == 0) {
        rc = split_environment(step, err);
    }
    return rc != 0 ? rc : start_srun(r, job, err);
}

/* To the step as a whole, once: srun passes it on to all of it. */
static void signal_step(struct reach *r, uint32_t index, int number)
{
    struct step *step = r->state;
    (void)index;
    if (r->workers[0].pid > 0 && step->sent != number) {
        step->sent = number;
        kill(r->workers[0].pid, number);
    }
}

/* Of the first: the others have no child. */
static Gpul__NodeGone__Why describe(struct reach *r, struct gpul_buf *out,
                                    uint32_t index)
{
    gpul_buf_append_text(out, "srun, which starts all nodes, ");
    reach_describe(out, &r->workers[index]);
    return GPUL__NODE_GONE__WHY__ENDED;
}

static void release(struct reach *r)
{
    struct step *step = r->state;
    if (step != NULL) {
        gpul_buf_release(&step->names);
        gpul_buf_release(&step->addresses);
        free(step->srun);
        free(step->environment);
        free(step->asked);
        free(step);
        r->state = NULL;
    }
}

const struct reach_way reach_slurm = {
    .prepare = prepare,
    .start = start,
    .signal = signal_step,
    .describe = describe,
    .release = release,
};
