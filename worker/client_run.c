/* SPDX-License-Identifier: Apache-2.0 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/children.h"
#include "common/clock.h"
#include "proto/uvmemory.h"
#include "worker/client_run.h"

/* Those that are sent to all of a group or container: the keeper has them
 * too, and what it says of them counts. */
static const int ignored_signals[] = {SIGTERM, SIGINT, SIGHUP};
#define ANSWER_TEXT "15 s"
_Static_assert(KEEPERWATCH_ANSWER_MS == 15000, "ANSWER_TEXT says it");
enum { IGNORED_SIGNALS = sizeof(ignored_signals) / sizeof(int) };

/* ---- children ----------------------------------------------------------- */

/* Probes, and what their libraries left behind. */
static void reap_children(struct client *c)
{
    int status;
    pid_t pid;
    prober_look(&c->prober);
    while (!c->has_left && (pid = waitpid(-1, &status, WNOHANG)) > 0) {
        prober_reap(&c->prober, pid, status);
    }
    client_pump(c);
}

static void on_signal(uv_signal_t *handle, int signal)
{
    (void)signal;
    reap_children(handle->data);
}

/* ---- the keeper ---------------------------------------------------------- */

static void on_mail(void *arg, struct keeper_mail *mail)
{
    struct client *c = arg;
    if (mail->packet.type == KEEPER_SIGNAL) {
        client_post(c, AGENT_EVENT_SIGNAL, NULL)->signal = mail->packet.signal;
        client_pump(c);
    } else if (mail->packet.type == KEEPER_ALIVE) {
        keeperwatch_answered(&c->watch, gpul_clock_ms());
    }
    if (c->has_left) {
        keeperwire_close_fds(mail);
    } else {
        workload_take_mail(c->workload, mail);
    }
}

static void on_turn(void *arg)
{
    struct client *c = arg;
    workload_settle(c->workload);
    client_pump(c);
}

/* The undertaker does the same beside us; whoever is last, finds nothing. */
static void on_keeper_lost(void *arg)
{
    struct client *c = arg;
    uv_timer_stop(&c->keeper_timer);
    workload_bury(c->workload);
    client_post(c, AGENT_EVENT_KEEPER_LOST,
                c->watch.is_killed
                    ? "was stopped or stuck, did not answer for " ANSWER_TEXT
                      " and was killed"
                    : NULL);
    workload_orphan(c->workload);
    client_pump(c);
}

static void on_watch(uv_timer_t *timer);

static void arm_watch(struct client *c)
{
    uint64_t now_ms = gpul_clock_ms();
    uint64_t at_ms = c->watch.at_ms;
    uv_update_time(&c->loop);
    uv_timer_start(&c->keeper_timer, on_watch,
                   at_ms > now_ms ? at_ms - now_ms : 0, 0);
}

static void on_watch(uv_timer_t *timer)
{
    struct client *c = timer->data;
    switch (keeperwatch_look(&c->watch, gpul_clock_ms())) {
    case KEEPERWATCH_NOTHING:
        break;
    case KEEPERWATCH_ASK:
        client_tell_keeper(c, KEEPER_ASK);
        break;
    case KEEPERWATCH_KILL:
        syscall(SYS_pidfd_send_signal, c->keeper_fd, SIGKILL, NULL, 0);
        break;
    case KEEPERWATCH_GIVE_UP:
        keeperlink_mute(c->keeper);
        on_keeper_lost(c);
        return;
    }
    arm_watch(c);
}

/* The keeper made our socket pair, so its pid is that of the pair; it has just
 * spoken, and a pidfd never comes to mean another process. */
static void open_watch(struct client *c, int keeper)
{
    struct ucred maker = {0};
    socklen_t n = sizeof(maker);
    getsockopt(keeper, SOL_SOCKET, SO_PEERCRED, &maker, &n);
    c->keeper_fd = (int)syscall(SYS_pidfd_open, maker.pid, 0);
    if (getppid() != maker.pid && c->keeper_fd >= 0) {
        close(c->keeper_fd);
        c->keeper_fd = -1;
    }
    keeperwatch_init(&c->watch, gpul_clock_ms());
}

/* ---- setting up --------------------------------------------------------- */

static int watch(struct client *c, struct gpul_error *err)
{
    uv_timer_init(&c->loop, &c->timer);
    c->timer.data = c;
    client_dial_init(c);
    uv_timer_init(&c->loop, &c->keeper_timer);
    c->keeper_timer.data = c;
    uv_signal_init(&c->loop, &c->child_signal);
    c->child_signal.data = c;
    for (size_t i = 0; i < IGNORED_SIGNALS; i++) {
        signal(ignored_signals[i], SIG_IGN);
    }
    int rc = uv_signal_start(&c->child_signal, on_signal, SIGCHLD);
    return rc == 0 ? 0
                   : gpul_fail(err, GPUL_ESYS, "watching signals: %s",
                               uv_strerror(rc));
}

static struct agent_held held_by(const struct keeper_packet *state)
{
    return (struct agent_held){
        .generation = state->generation,
        .attempt = state->attempt,
        .grace_ms = state->grace_ms,
        .orphan_ms = state->orphan_ms,
        .signal = state->signal,
    };
}

static int make_agent(struct client *c, struct gpul_error *err)
{
    gpul_buf_init(&c->coordinator, CLIENT_TEXT_BYTES);
    for (uint32_t i = 0; i < c->config->coordinator_count; i++) {
        const struct gpul_hostport *to = &c->config->coordinators[i];
        gpul_buf_append_text(&c->coordinator, i > 0 ? " or " : "");
        gpul_hostport_append(&c->coordinator, to->host, to->port);
    }
    if (gpul_buf_text(&c->coordinator) == NULL) {
        return gpul_fail(err, GPUL_ENOMEM,
                         "out of memory for the address of the coordinator");
    }
    const struct agent_config config = {
        .job_id = c->config->job_id,
        .node_name = c->config->node_name,
        .version = GPULAUNCH_VERSION,
        .coordinator = gpul_buf_text(&c->coordinator),
        .address_count = c->config->coordinator_count,
        .join_timeout_ms = c->config->join_timeout_ms,
        .tells_delay = c->config->tells_delay,
        .facts = &c->facts.message,
        .instance = c->state.instance,
        .attach = c->state.agent,
        .held = held_by(&c->state),
    };
    return agent_create(&c->agent, &config, gpul_clock_ms(), err);
}

static int make_workload(struct client *c, struct gpul_error *err)
{
    const struct workload_config config = {
        .loop = &c->loop,
        .keeper = c->keeper,
        .facts = &c->facts,
        .node_name = c->config->node_name,
        .job_id = c->config->job_id,
        .state = c->state,
    };
    return workload_create(&c->workload, &config, &client_workload_handlers, c,
                           err);
}

/* What the keeper holds, before anything else happens. */
static int hear_keeper(struct client *c, int keeper, struct gpul_error *err)
{
    struct keeper_mail mail;
    int rc = 0;
    for (uint32_t i = 0; rc == 0 && i < c->state.following; i++) {
        rc = keeperlink_await(keeper, &mail, 0, err);
        if (rc == 0) {
            on_mail(c, &mail);
        }
    }
    return rc;
}

static int make_keyring(struct client *c, struct gpul_error *err)
{
    const struct client_config *config = c->config;
    return config->key == NULL
               ? 0
               : gpul_keyring_of_node(&c->keyring, config->key, config->job_id,
                                      config->node_name, err);
}

static int set_up(struct client *c, int keeper, struct gpul_error *err)
{
    prober_init(&c->prober, &c->loop, &client_prober_handlers, c);
    linker_init(&c->linker, &c->loop, &client_linker_handlers, c);
    int watching = watch(c, err);
    int rc = facts_read_here(&c->facts, err);
    if (rc == 0) {
        rc = make_keyring(c, err);
    }
    if (rc == 0) {
        rc = make_agent(c, err);
    }
    if (rc == 0) {
        rc = make_workload(c, err);
    }
    if (rc == 0) {
        rc = hear_keeper(c, keeper, err);
    }
    if (rc == 0) {
        rc = client_hear(c, err);
    }
    return rc != 0 ? rc : watching;
}

static struct client *create(const struct client_config *config)
{
    struct client *c = calloc(1, sizeof(*c));
    if (c == NULL || uv_loop_init(&c->loop) != 0) {
        free(c);
        return NULL;
    }
    c->config = config;
    c->keeper_fd = -1;
    agent_actions_init(&c->actions);
    return c;
}

/* Hear the first word of the keeper, and make a link of the socket. */
static int open_keeper(struct client *c, int keeper, struct gpul_error *err)
{
    static const struct keeperlink_handlers handlers = {
        .on_mail = on_mail,
        .on_turn = on_turn,
        .on_lost = on_keeper_lost,
    };
    struct keeper_mail mail;
    int rc = keeperlink_await(keeper, &mail, KEEPER_STATE, err);
    if (rc != 0) {
        close(keeper);
        return rc;
    }
    c->state = mail.packet;
    open_watch(c, keeper);
    return keeperlink_open(&c->keeper, &c->loop, keeper, &handlers, c, err);
}

/* The keeper hears of the end last: it may end as soon as it does. */
static int end(struct client *c)
{
    int exit_code = c->exit_code;
    if (c->text[0] != 0) {
        fprintf(stderr, "gpulaunch-worker: %s: %s\n", c->config->node_name,
                c->text);
    }
    if (c->keeper != NULL) {
        client_tell_keeper(c, KEEPER_LEAVE);
        keeperlink_close(c->keeper);
        uv_run(&c->loop, UV_RUN_NOWAIT);
    }
    if (c->keeper_fd >= 0) {
        close(c->keeper_fd);
    }
    agent_destroy(c->agent);
    agent_actions_release(&c->actions);
    gpul_buf_release(&c->coordinator);
    facts_release(&c->facts);
    ports_release(&c->lease);
    gpul_keyring_destroy(c->keyring);
    uv_loop_close(&c->loop);
    free(c);
    return exit_code;
}

int client_run(const struct client_config *config, int keeper)
{
    struct gpul_error err;
    gpul_uv_memory("gpulaunch-worker");
    struct client *c = create(config);
    gpul_children_adopt();
    if (c == NULL) {
        fprintf(stderr, "gpulaunch-worker: %s: cannot set up an event loop\n",
                config->node_name);
        return AGENT_EXIT_FAILED;
    }
    if (open_keeper(c, keeper, &err) != 0) {
        c->exit_code = AGENT_EXIT_FAILED;
        snprintf(c->text, sizeof(c->text), "%s", err.text);
        return end(c);
    }
    if (set_up(c, keeper, &err) == 0) {
        arm_watch(c);
        client_post(c, AGENT_EVENT_TICK, NULL);
        client_pump(c);
    } else {
        client_leave(c, AGENT_EXIT_FAILED, err.text);
    }
    uv_run(&c->loop, UV_RUN_DEFAULT);
    return end(c);
}
