/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/probe_site.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void probe_site_init(struct probe_site *s)
{
    *s = (struct probe_site){0};
    ranklogs_init(&s->logs);
}

void probe_site_end(struct probe_site *s)
{
    env_release(&s->rank);
    free(s->environment);
    launch_destroy(s->launch);
    s->rank = (struct env){0};
    s->environment = NULL;
    s->launch = NULL;
}

void probe_site_release(struct probe_site *s)
{
    probe_site_end(s);
    ranklogs_release(&s->logs);
}

/* A probe chooses its device among all that the node has; a rank that sees
 * its own one only would hide the others from it. */
static int make_launch(struct probe_site *s, const struct launch_input *in,
                       struct gpul_error *err)
{
    Gpul__Job job = *in->job;
    Gpul__Environment environment = GPUL__ENVIRONMENT__INIT;
    struct launch_input all = *in;
    if (job.environment != NULL) {
        environment = *job.environment;
    }
    if (environment.devices == GPUL__ENVIRONMENT__DEVICES__DEVICES_RANK) {
        environment.devices = GPUL__ENVIRONMENT__DEVICES__DEVICES_AUTO;
    }
    job.environment = &environment;
    all.job = &job;
    return launch_create(&s->launch, &all, err);
}

static size_t count_of(const char *const *strings)
{
    size_t n = 0;
    while (strings[n] != NULL) {
        n++;
    }
    return n;
}

static bool is_own(const char *string)
{
    static const char prefix[] = "GPULAUNCH_";
    return strncmp(string, prefix, sizeof(prefix) - 1) == 0;
}

static bool has_name_of(char *const *strings, const char *string)
{
    size_t n = strcspn(string, "=") + 1;
    for (; *strings != NULL; strings++) {
        if (strncmp(*strings, string, n) == 0) {
            return true;
        }
    }
    return false;
}

/* Ranks do not get what is for gpulaunch itself; a probe is that. */
static int add_own(struct probe_site *s, const char *const *inherited,
                   struct gpul_error *err)
{
    size_t n = count_of((const char *const *)s->rank.strings);
    s->environment =
        calloc(n + count_of(inherited) + 1, sizeof(*s->environment));
    if (s->environment == NULL) {
        return gpul_fail(err, GPUL_ENOMEM,
                         "out of memory for the environment of the probes");
    }
    memcpy(s->environment, s->rank.strings, n * sizeof(*s->environment));
    for (; *inherited != NULL; inherited++) {
        if (is_own(*inherited) && !has_name_of(s->rank.strings, *inherited)) {
            s->environment[n++] = (char *)(uintptr_t)*inherited;
        }
    }
    return 0;
}

int probe_site_begin(struct probe_site *s, const struct launch_input *in,
                     struct gpul_error *err)
{
    probe_site_end(s);
    int rc = make_launch(s, in, err);
    if (rc == 0) {
        rc = env_build(&s->rank, s->launch->plan, 0, err);
    }
    if (rc == 0) {
        rc = add_own(s, in->inherited, err);
    }
    if (rc == 0) {
        rc = ranklogs_begin_folder(&s->logs, in->job->log_dir,
                                   AGENT_TEST_FOLDER, err);
    }
    if (rc != 0) {
        probe_site_end(s);
    }
    return rc;
}

void probe_site_fill(struct probe_site *s, enum agent_probe_kind kind,
                     uint32_t rank, struct prober_start *start)
{
    if (kind == AGENT_PROBE_DEVICE) {
        snprintf(s->nccl_log_name, sizeof(s->nccl_log_name), "rank-%u.nccl",
                 rank);
        snprintf(s->log_name, sizeof(s->log_name), "rank-%u.log", rank);
    } else {
        snprintf(s->log_name, sizeof(s->log_name), "scout-%u.log",
                 s->launch->node_rank);
    }
    /* A folder that does not exist is reported where the ranks start. */
    const char *folder = s->launch->working_directory;
    start->command = s->launch->arguments[0];
    start->environment = s->environment;
    start->working_directory =
        folder != NULL && access(folder, X_OK) == 0 ? folder : NULL;
    start->logs = &s->logs;
    start->nccl_log_name = kind == AGENT_PROBE_DEVICE ? s->nccl_log_name : NULL;
    start->log_name = kind != AGENT_PROBE_WATCH ? s->log_name : NULL;
    start->log_pattern = kind == AGENT_PROBE_SCOUT ? "scout-*.log" : NULL;
}
