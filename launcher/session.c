/* SPDX-License-Identifier: Apache-2.0
 *
 * Happy path: prepare, make the sockets, start coordinator and workers at
 * once, send the job, run the loop until nothing of the job is left and all
 * output is written.
 * Failure before the start: told by the return value, nothing is running.
 * Failure later: an end like any other, see ending.h.
 */
#include "launcher/session.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/units.h"
#include "launcher/cli.h"
#include "launcher/session_internal.h"
#include "proto/uvmemory.h"

enum {
    EXPLAIN_BYTES_MAX = 1 << 20,
    ORIGIN_BYTES_MAX = 2048,
    DURATION_BYTES = 32
};

/* ---- the start ----------------------------------------------------------- */

static void on_nodes_changed(void *arg)
{
    session_nodes_changed(arg);
}

static int start_reach(struct session *s, int operator_fd,
                       struct gpul_error *err)
{
    struct reach_job job = {
        .job_id = s->job_id,
        .plan = s->plan,
        .started_ms = s->record.started_ms,
        .operator_fd = operator_fd,
        .listening = &s->listening,
        .secret = s->is_sealed ? &s->secret : NULL,
        .secret_path = s->invite.secret_path,
    };
    s->reach.loop = &s->loop;
    s->reach.on_change = on_nodes_changed;
    s->reach.arg = s;
    int rc = reach_start(&s->reach, &job, err);
    gpul_wipe(&s->secret, sizeof(s->secret)); /* all have what they need */
    return rc;
}

/* Our end of the operator channel to *fd; the children are on their way. */
static int start_children(struct session *s, int *fd, struct gpul_error *err)
{
    int pair[2] = {-1, -1};
    *fd = -1;
    int rc = listening_open(&s->listening, err);
    if (rc != 0) {
        return s->plan->address != NULL ? gpul_wrap(err, rc, "--address") : rc;
    }
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0) {
        rc = gpul_fail_errno(err, errno, "cannot create a socket pair");
    }
    if (rc == 0) {
        rc = start_reach(s, pair[1], err);
    }
    if (rc == 0) {
        *fd = pair[0];
    } else if (pair[0] >= 0) {
        close(pair[0]);
    }
    if (pair[1] >= 0) {
        close(pair[1]);
    }
    listening_close(&s->listening);
    return rc;
}

static void on_credit(void *arg, uint32_t node_rank, uint64_t bytes)
{
    session_credit(arg, node_rank, bytes);
}

static void on_output_moved(void *arg)
{
    session_output_moved(arg);
}

static int open_loop(struct session *s, struct gpul_error *err)
{
    static const struct console_handlers handlers = {
        .on_credit = on_credit,
        .on_progress = on_output_moved,
    };
    int rc = uv_loop_init(&s->loop);
    if (rc != 0) {
        return gpul_fail(err, GPUL_ESYS, "cannot start the event loop: %s",
                         uv_strerror(rc));
    }
    s->has_loop = true;
    rc = console_create(&s->console, &s->loop, STDOUT_FILENO, STDERR_FILENO,
                        &handlers, s, err);
    if (rc != 0) {
        return rc;
    }
    rc = progress_init(&s->progress, s->console, s->plan, s->record.started_ms);
    return rc == 0 ? 0 : gpul_fail(err, rc, "out of memory");
}

static int start(struct session *s, struct gpul_error *err)
{
    int fd = -1;
    s->record.started_unix_s = (uint64_t)time(NULL);
    s->record.started_ms = gpul_clock_ms();
    session_init_wait(s);
    ending_init(&s->ending, s->record.started_ms, s->plan->timeout_ms,
                s->plan->grace_ms);
    int rc = open_loop(s, err);
    if (rc == 0) {
        rc = start_children(s, &fd, err);
    }
    if (rc != 0) {
        return rc;
    }
    rc = session_watch(s, err);
    if (rc == 0) {
        return session_open_desk(s, fd, err);
    }
    close(fd);
    return rc;
}

/* ---- the whole ----------------------------------------------------------- */

static void explain(struct session *s)
{
    struct gpul_buf out;
    gpul_buf_init(&out, EXPLAIN_BYTES_MAX);
    if (cli_explain(&out, s->plan) == 0) {
        console_say(s->console, (const char *)out.data, out.used);
    }
    gpul_buf_release(&out);
}

/* The order that ranks follow, and whose it is: asked for, or where nobody has
 * named the nodes to us but a scheduler. */
static void say_origin(struct session *s)
{
    struct gpul_buf words;
    bool is_wanted = s->plan->is_verbose || s->plan->is_dry_run ||
                     s->plan->allocation.source != NODES_NONE;
    if (s->plan->is_local || s->plan->is_open || !is_wanted ||
        s->plan->is_explained) {
        return;
    }
    gpul_buf_init(&words, ORIGIN_BYTES_MAX);
    if (nodes_describe(&words, &s->plan->nodes) == 0) {
        progress_note(&s->progress, "%s", gpul_buf_text(&words));
    }
    gpul_buf_release(&words);
}

/* A limit that nobody has asked us for. */
static void say_limit(struct session *s)
{
    char left[DURATION_BYTES];
    if (s->plan->has_limit) {
        gpul_format_duration(left, s->plan->timeout_ms);
        progress_note(&s->progress,
                      "the job is stopped in %s, shortly before the time limit "
                      "of %s; --timeout sets another",
                      left, nodes_scheduler(s->plan->allocation.source));
    }
}

/* Nodes may find the job by fewer ways than one would think. */
static void say_left_out(struct session *s)
{
    if (s->listening.left_out[0] != '\0') {
        progress_note(&s->progress, "nodes are not told of an address: %s",
                      s->listening.left_out);
    }
}

/* Said in any case: without it nobody would come. */
static void say_invite(struct session *s)
{
    struct gpul_buf words;
    gpul_buf_init(&words, EXPLAIN_BYTES_MAX);
    if (s->plan->is_open && invite_append(&words, &s->invite, s->plan,
                                          &s->listening, s->job_id) == 0) {
        console_say(s->console, (const char *)words.data, words.used);
    }
    gpul_buf_release(&words);
}

/* No word at every run, since most containers have only root. */
static void say_root(struct session *s)
{
    static const char line[] =
        "gpulaunch: note: you are root, and so are the ranks; gpulaunch never "
        "needs it\n";
    if (geteuid() == 0) {
        console_say(s->console, line, sizeof(line) - 1);
    }
}

static void close_handle(uv_handle_t *handle, void *arg)
{
    (void)arg;
    if (!uv_is_closing(handle)) {
        uv_close(handle, NULL);
    }
}

/* Also after a start that failed half-way, hence the walk. */
static void close_loop(struct session *s)
{
    if (!s->has_loop) {
        return;
    }
    s->is_closing = true;
    if (s->desk != NULL) {
        gpul_transport_close(s->desk, 0);
    }
    inlet_close(s->inlet);
    reach_close(&s->reach);
    if (s->console != NULL) {
        console_close(s->console);
    }
    uv_run(&s->loop, UV_RUN_NOWAIT);
    uv_walk(&s->loop, close_handle, NULL);
    uv_run(&s->loop, UV_RUN_DEFAULT);
    uv_loop_close(&s->loop);
    s->has_loop = false;
}

static void release(struct session *s)
{
    close_loop(s);
    progress_release(&s->progress);
    console_destroy(s->console);
    inlet_destroy(s->inlet);
    reach_release(&s->reach);
    invite_release(&s->invite);
    envbook_release(&s->envbook);
    record_release(&s->record);
    checkbook_release(&s->checkbook);
    gpul_buf_release(&s->job_frame);
    gpul_wipe(&s->secret, sizeof(s->secret));
    free(s->credits);
    free(s->log_dir);
    free(s->log_root);
}

int session_run(const struct plan *plan, int *exit_code, struct gpul_error *err)
{
    struct session s = {.plan = plan};
    s.reach.coordinator.words_fd = -1;
    gpul_uv_memory("gpulaunch");
    int rc = session_prepare(&s, err);
    if (rc == 0) {
        rc = start(&s, err);
    }
    if (rc == 0) {
        if (plan->verb != PLAN_ENV && plan->is_explained) {
            explain(&s);
        }
        if (plan->verb == PLAN_RUN &&
            (plan->is_explained || plan->is_verbose)) {
            say_root(&s);
        }
        say_origin(&s);
        say_limit(&s);
        say_left_out(&s);
        say_invite(&s);
        session_reap(&s);
        uv_run(&s.loop, UV_RUN_DEFAULT);
        *exit_code = session_exit_code(&s);
    } else {
        reach_kill_all(&s.reach);
        logdir_unmake(&s.made);
    }
    release(&s);
    return rc;
}
