/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/joining.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/startup.h"
#include "common/units.h"
#include "launcher/cli.h"
#include "launcher/jobsecret.h"
#include "launcher/lookup.h"
#include "launcher/programs.h"
#include "launcher/session.h"
#include "proto/keypipe.h"
#include "proto/text.h"

enum {
    EXPLAIN_BYTES_MAX = 1 << 16,
    DURATION_BYTES = 32,
    NUMBER_BYTES = 32,
    ADDRESS_BYTES = GPUL_ADDRESS_BYTES_MAX + 10, /* brackets and a port */
    /* The program, two for each address, and the others. */
    ARGUMENTS_MAX = 1 + 2 * GPUL_COORDINATORS_MAX + 10,
};

struct joining {
    const struct plan *plan;
    const struct gpul_secret *given; /* NULL: the plan says where it is */
    uint64_t end_ms;
    char name[GPUL_NAME_BYTES_MAX + 1];
    struct lookup coordinators;
    uint32_t looked_up; /* which of the plan's is */
    char worker_path[PATH_MAX];
    int key_fd; /* -1: --insecure */
    char addresses[GPUL_COORDINATORS_MAX][ADDRESS_BYTES];
};

/* ---- who we are ---------------------------------------------------------- */

/* A name that every machine has tells none from another. */
static bool is_nobody(const char *name)
{
    return name[0] == '\0' || strcmp(name, "(none)") == 0 ||
           strncmp(name, "localhost", sizeof("localhost") - 1) == 0;
}

static int find_name(struct joining *j, struct gpul_error *err)
{
    /* Slurm's name of this node: several may share a host's. */
    const char *step =
        getenv("SLURM_STEP_ID") != NULL ? getenv("SLURMD_NODENAME") : NULL;
    const char *given = j->plan->node_name != NULL ? j->plan->node_name : step;
    if (given != NULL && strlen(given) < sizeof(j->name)) {
        snprintf(j->name, sizeof(j->name), "%s", given);
        return 0;
    }
    if (gethostname(j->name, sizeof(j->name)) != 0) {
        return gpul_fail_errno(err, errno, "cannot tell this machine's name");
    }
    j->name[sizeof(j->name) - 1] = '\0';
    if (is_nobody(j->name) || !gpul_text_is_valid(j->name, GPUL_TEXT_NAME)) {
        gpul_text_clean_line(j->name, sizeof(j->name) - 1);
        return gpul_fail(err, GPUL_EINVAL,
                         "this machine has no name of its own (\"%.60s\"); "
                         "give --name NODE, another one on each",
                         j->name);
    }
    return 0;
}

static bool is_loopback(const struct plan *plan)
{
    bool all = true;
    for (uint32_t i = 0; i < plan->coordinator_count; i++) {
        all = all && gpul_host_is_loopback(plan->coordinators[i].host);
    }
    return all;
}

/* The job's secret, unless it goes without. */
static int find_secret(struct gpul_secret *secret, bool *is_sealed,
                       const struct joining *j, struct gpul_error *err)
{
    struct jobsecret_request asked = jobsecret_asked(j->plan);
    if (j->given != NULL) {
        *secret = *j->given;
        *is_sealed = true;
        return 0;
    }
    if (asked.file == NULL && asked.text == NULL && !asked.is_insecure) {
        return gpul_fail(err, GPUL_EINVAL,
                         "join: the job's secret is needed: copy its file "
                         "here, with mode 0600, and give --secret-file FILE");
    }
    asked.is_loopback = is_loopback(j->plan);
    int rc = jobsecret_get(secret, is_sealed, &asked, err);
    if (rc == GPUL_ESYS && getenv("SLURM_STEP_ID") != NULL) {
        char why[sizeof(err->text)];
        memcpy(why, err->text, sizeof(why));
        return gpul_fail(err, rc,
                         "%.300s; --secret-file FILE must be on a file system "
                         "that all nodes of the job share",
                         why);
    }
    return rc;
}

/* The key of this node in a pipe; the secret goes no further. */
static int open_key(struct joining *j, struct gpul_error *err)
{
    struct gpul_secret secret;
    struct gpul_key key;
    bool is_sealed = false;
    j->key_fd = -1;
    int rc = find_secret(&secret, &is_sealed, j, err);
    if (rc != 0 || !is_sealed) {
        return rc;
    }
    rc = gpul_key_of_node(&key, &secret, j->plan->job_id, j->name, err);
    gpul_wipe(&secret, sizeof(secret));
    if (rc == 0) {
        rc = gpul_keypipe_put_key(&j->key_fd, &key, err);
    }
    gpul_wipe(&key, sizeof(key));
    return rc;
}

/* ---- where the job is ---------------------------------------------------- */

static void tell_delay(void *arg, const char *why, uint64_t left_ms)
{
    const struct joining *j = arg;
    const char *host = j->plan->coordinators[j->looked_up].host;
    char left[DURATION_BYTES];
    gpul_format_duration(left, (left_ms + 500) / 1000 * 1000);
    if (!j->plan->is_quiet) {
        dprintf(STDERR_FILENO,
                "gpulaunch: the name %s is not known yet: %s; trying on for "
                "%s\n",
                host, why, left);
    }
}

/* Of several, each is waited for. */
static int find_coordinators(struct joining *j, struct gpul_error *err)
{
    struct lookup found;
    int rc = 0;
    for (j->looked_up = 0; rc == 0 && j->looked_up < j->plan->coordinator_count;
         j->looked_up++) {
        rc = lookup_wait(&found, &j->plan->coordinators[j->looked_up],
                         j->end_ms, tell_delay, j, err);
        for (uint32_t i = 0; rc == 0 && i < found.count &&
                             j->coordinators.count < GPUL_COORDINATORS_MAX;
             i++) {
            j->coordinators.at[j->coordinators.count++] = found.at[i];
        }
    }
    return rc;
}

/* ---- becoming the worker ------------------------------------------------- */

static char *word(const char *text)
{
    return (char *)(uintptr_t)text;
}

static size_t fill_arguments(char **out, struct joining *j,
                             char seconds[NUMBER_BYTES])
{
    uint64_t now_ms = gpul_clock_ms();
    uint64_t left_ms = j->end_ms > now_ms ? j->end_ms - now_ms : 1;
    size_t n = 0;
    out[n++] = word("gpulaunch-worker");
    for (uint32_t i = 0; i < j->coordinators.count; i++) {
        const struct gpul_hostport *at = &j->coordinators.at[i];
        bool has_colon = strchr(at->host, ':') != NULL;
        snprintf(j->addresses[i], ADDRESS_BYTES, "%s%.*s%s:%u",
                 has_colon ? "[" : "", GPUL_ADDRESS_BYTES_MAX, at->host,
                 has_colon ? "]" : "", at->port);
        out[n++] = word("--connect");
        out[n++] = j->addresses[i];
    }
    snprintf(seconds, NUMBER_BYTES, "%" PRIu64 "ms", left_ms);
    out[n++] = word("--job");
    out[n++] = word(j->plan->job_id);
    out[n++] = word("--name");
    out[n++] = j->name;
    out[n++] = word("--join-timeout");
    out[n++] = seconds;
    if (!j->plan->is_quiet) {
        out[n++] = word("--verbose");
    }
    if (j->key_fd < 0) {
        out[n++] = word("--insecure");
    }
    out[n] = NULL;
    return n;
}

/* What this program has changed for itself, the next one must not inherit. */
static void restore(void)
{
    struct rlimit core;
    if (gpul_startup_core_limit(&core)) {
        setrlimit(RLIMIT_CORE, &core);
    }
    signal(SIGPIPE, SIG_DFL);
    signal(SIGXFSZ, SIG_DFL);
}

static int become_worker(struct joining *j, struct gpul_error *err)
{
    char *arguments[ARGUMENTS_MAX + 1], seconds[NUMBER_BYTES];
    fill_arguments(arguments, j, seconds);
    int null_fd = open("/dev/null", O_RDONLY);
    if (null_fd < 0 || dup2(null_fd, STDIN_FILENO) < 0) {
        return gpul_fail_errno(err, errno, "cannot open /dev/null");
    }
    if (null_fd > STDERR_FILENO) {
        close(null_fd);
    }
    if (j->key_fd == GPUL_KEYPIPE_OF_NODE) {
        fcntl(j->key_fd, F_SETFD, 0);
    } else if (j->key_fd >= 0 && dup2(j->key_fd, GPUL_KEYPIPE_OF_NODE) < 0) {
        return gpul_fail_errno(err, errno, "cannot hand over the key");
    }
    restore();
    execv(j->worker_path, arguments);
    return gpul_fail_errno(err, errno, "cannot start %s", j->worker_path);
}

static void explain(const struct plan *plan)
{
    struct gpul_buf out;
    gpul_buf_init(&out, EXPLAIN_BYTES_MAX);
    if (plan->is_explained && cli_explain(&out, plan) == 0) {
        dprintf(STDERR_FILENO, "%s", gpul_buf_text(&out));
    }
    gpul_buf_release(&out);
}

int joining_exit_code(int status)
{
    return status == GPUL_ETIMEOUT ? SESSION_EXIT_DEADLINE
                                   : SESSION_EXIT_INTERNAL;
}

int joining_run(const struct plan *plan, const struct gpul_secret *secret,
                struct gpul_error *err)
{
    struct joining j = {.plan = plan,
                        .given = secret,
                        .key_fd = -1,
                        .end_ms = gpul_clock_ms() + plan->join_timeout_ms};
    explain(plan);
    int rc = programs_find(j.worker_path, "gpulaunch-worker", err);
    if (rc == 0) {
        rc = find_name(&j, err);
    }
    if (rc == 0) {
        rc = open_key(&j, err);
    }
    if (rc == 0) {
        rc = find_coordinators(&j, err);
    }
    if (rc == 0) {
        rc = become_worker(&j, err);
    }
    return joining_exit_code(rc);
}
