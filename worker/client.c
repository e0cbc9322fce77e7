/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/client_run.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "proto/interfaces.h"
#include "proto/limits.h"
#include "proto/text.h"
#include "worker/node_env.h"

static void step(struct client *c, struct agent_event *event);

struct waiting_event *client_post(struct client *c, enum agent_event_type type,
                                  const char *text)
{
    return eventqueue_put(&c->queue, type, text);
}

void client_take(struct client *c, const Gpul__Frame *frame)
{
    struct agent_event event = {.type = AGENT_EVENT_MESSAGE, .frame = frame};
    c->heard_ns = gpul_clock_real_ns();
    step(c, &event);
    client_pump(c);
}

/* ---- ports and the probes ---------------------------------------------- */

static void lease_ports(struct client *c)
{
    const Gpul__Assign *assign = agent_assign(c->agent);
    const struct ports_request request = {
        .job_id = c->config->job_id,
        .node_name = c->config->node_name,
        .port_count = assign->rank_count + GPUL_EXTRA_PORTS,
        .avoid_ports = assign->avoid_ports,
        .avoid_count = assign->n_avoid_ports,
    };
    struct gpul_error err = {0};
    ports_release(&c->lease);
    int rc = ports_lease(&c->lease, &request, &err);
    client_post(c, AGENT_EVENT_PORTS, err.text)->port_base =
        c->lease.first_port;
    if (rc == 0 && c->lease.is_ephemeral) {
        workload_notice(c->workload,
                        "no ports are free outside the kernel's ephemeral "
                        "range (net.ipv4.ip_local_port_range), so another "
                        "program's connection may take one of the job's ports");
    }
}

/* Of ranks that run: nothing can be done about a lease that is gone. */
static void renew_ports(struct client *c, uint16_t first_port)
{
    const Gpul__Assign *assign = agent_assign(c->agent);
    ports_release(&c->lease);
    ports_renew(&c->lease, first_port, assign->rank_count + GPUL_EXTRA_PORTS);
}

static void on_probe_event(void *arg, struct agent_event *event)
{
    struct client *c = arg;
    step(c, event);
    client_pump(c);
}

static void on_probe_ended(void *arg, uint32_t probe, const char *how,
                           bool is_abandoned)
{
    struct client *c = arg;
    struct waiting_event *e = client_post(c, AGENT_EVENT_PROBE_ENDED, how);
    e->probe = probe;
    e->is_unclean = is_abandoned;
    client_pump(c);
}

const struct prober_handlers client_prober_handlers = {
    .on_event = on_probe_event,
    .on_ended = on_probe_ended,
};

static void start_probe(struct client *c, const struct agent_action *action)
{
    struct gpul_error err;
    char node[NODE_ENV_BYTES];
    char **environment = NULL;
    struct prober_start start = {
        .probe = action->probe,
        .bytes = c->actions.arena.data + action->offset,
        .n = action->n,
    };
    int rc = 0;
    if (action->kind == AGENT_PROBE_SURVEY) {
        environment = node_env_make(node, c->config->node_name);
        start.environment = environment; /* NULL: ours has but no name */
    } else if (action->kind != AGENT_PROBE_HOST &&
               action->kind != AGENT_PROBE_PAIRS) {
        rc = workload_fill_probe(c->workload, c->agent, action->kind,
                                 action->rank, &start, &err);
    }
    if (rc == 0) {
        rc = prober_start(&c->prober, &start, &err);
    }
    free(environment);
    if (rc != 0) {
        client_post(c, AGENT_EVENT_PROBE_ENDED, err.text)->probe =
            action->probe;
    }
}

/* ---- the ranks ---------------------------------------------------------- */

static void on_frame(void *arg, Gpul__Frame *frame)
{
    struct client *c = arg;
    if (c->transport != NULL) {
        agent_stamp(c->agent, frame);
        gpul_transport_send(c->transport, frame, NULL);
    }
}

static void on_exits(void *arg)
{
    client_post(arg, AGENT_EVENT_RANKS_ENDED, NULL);
}

static void on_gone(void *arg)
{
    client_post(arg, AGENT_EVENT_ALL_GONE, NULL);
}

static void on_drained(void *arg)
{
    struct client *c = arg;
    client_post(c, AGENT_EVENT_OUTPUT_DRAINED, NULL);
    client_pump(c);
}

const struct workload_handlers client_workload_handlers = {
    .on_frame = on_frame,
    .on_exits = on_exits,
    .on_gone = on_gone,
    .on_drained = on_drained,
};

/* ---- addresses ---------------------------------------------------------- */

const struct linker_handlers client_linker_handlers = {
    .on_frame = on_frame,
};

static int open_links(struct client *c, uint64_t token, struct gpul_error *err)
{
    const Gpul__Assign *assign = agent_assign(c->agent);
    struct gpul_interface *found =
        calloc(GPUL_INTERFACES_FOUND_MAX, sizeof(*found));
    if (found == NULL) {
        return gpul_fail(err, GPUL_ENOMEM,
                         "out of memory for addresses of this node");
    }
    char joined[GPUL_ADDRESS_BYTES_MAX + 1] = "";
    if (c->transport != NULL) {
        gpul_transport_local_address(c->transport, joined, NULL);
    }
    facts_renew_interfaces(&c->facts);
    const struct linker_request request = {
        .token = token,
        .self = assign->node_rank,
        .node_count = assign->node_count,
        .wanted = agent_job(c->agent)->interface,
        .joined = joined,
        .found = found,
        .found_count = gpul_interfaces_read(found, "", NULL),
    };
    int rc = linker_open(&c->linker, &request, err);
    free(found);
    return rc;
}

/* ---- the clock ---------------------------------------------------------- */

static void tell_clock(struct client *c, const Gpul__ClockPing *ping)
{
    Gpul__ClockPong pong;
    gpul__clock_pong__init(&pong);
    pong.sequence = ping->sequence;
    pong.ping_sent_ns = ping->sent_ns;
    pong.received_ns = c->heard_ns;
    pong.sent_ns = gpul_clock_real_ns();
    Gpul__Frame frame;
    gpul__frame__init(&frame);
    frame.body_case = GPUL__FRAME__BODY_CLOCK_PONG;
    frame.clock_pong = &pong;
    on_frame(c, &frame);
}

/* ---- the way out -------------------------------------------------------- */

void client_leave(struct client *c, int exit_code, const char *text)
{
    if (c->has_left) {
        return;
    }
    c->has_left = true;
    c->exit_code = exit_code;
    snprintf(c->text, CLIENT_TEXT_BYTES, "%s", text != NULL ? text : "");
    uv_close((uv_handle_t *)&c->timer, NULL);
    uv_close((uv_handle_t *)&c->keeper_timer, NULL);
    uv_close((uv_handle_t *)&c->child_signal, NULL);
    keeperlink_mute(c->keeper);
    prober_release(&c->prober);
    linker_close(&c->linker);
    workload_destroy(c->workload);
    c->workload = NULL;
    client_dial_close(c);
    client_hear_close(c);
    client_disconnect(c);
}

/* ---- actions ------------------------------------------------------------ */

static void send_bytes(struct client *c, const struct agent_action *action)
{
    if (c->transport != NULL) {
        gpul_transport_send_bytes(c->transport,
                                  c->actions.arena.data + action->offset,
                                  action->n, NULL);
    }
}

void client_tell_keeper(struct client *c, enum keeper_packet_type type)
{
    const struct keeper_packet packet = {.type = type, .status = c->exit_code};
    c->has_joined |= type == KEEPER_ATTACHED;
    keeperlink_send(c->keeper, &packet, NULL, 0, NULL);
}

/* Of a member: the coordinator is told why, and need not wait for another
 * agent. The keeper stops the ranks. */
static void fail(struct client *c, const char *why)
{
    char text[GPUL_TEXT_BYTES_MAX + 1];
    snprintf(text, sizeof(text), "%s", why);
    gpul_text_clean(text, GPUL_TEXT_BYTES_MAX);
    Gpul__Leave leave;
    gpul__leave__init(&leave);
    leave.text = text;
    Gpul__Frame frame;
    gpul__frame__init(&frame);
    frame.body_case = GPUL__FRAME__BODY_LEAVE;
    frame.leave = &leave;
    on_frame(c, &frame);
    client_leave(c, AGENT_EXIT_FAILED, why);
}

static void apply_to_connection(struct client *c,
                                const struct agent_action *action)
{
    if (action->type == AGENT_CONNECT) {
        client_dial(c, action->bound_ms);
    } else if (action->type == AGENT_SEND) {
        send_bytes(c, action);
    } else {
        client_disconnect(c);
    }
}

static void apply_to_output(struct client *c, const struct agent_action *action)
{
    if (action->type == AGENT_CREDIT) {
        workload_credit(c->workload, action->bytes);
    } else if (action->type == AGENT_DISCARD_OUTPUT) {
        workload_discard_output(c->workload);
    } else {
        workload_remove_logs(c->workload);
    }
}

static void apply_to_probes(struct client *c, const struct agent_action *action)
{
    if (action->type == AGENT_START_PROBE) {
        start_probe(c, action);
    } else if (action->type == AGENT_SEND_PROBES) {
        prober_send(&c->prober, c->actions.arena.data + action->offset,
                    action->n);
    } else {
        prober_kill(&c->prober);
    }
}

static int apply_to_links(struct client *c, const struct agent_action *action,
                          struct gpul_error *err)
{
    if (action->type == AGENT_OPEN_LINKS) {
        return open_links(c, action->token, err);
    }
    if (action->type == AGENT_DIAL_LINKS) {
        return linker_add(&c->linker, action->peers, err);
    }
    linker_close(&c->linker);
    return 0;
}

static int apply_to_ranks(struct client *c, const struct agent_action *action,
                          struct gpul_error *err)
{
    switch (action->type) {
    case AGENT_START_RANKS:
        return workload_start(c->workload, c->agent, err);
    case AGENT_REPORT_ENV:
        return workload_report(c->workload, c->agent, err);
    case AGENT_FEED:
        return workload_feed(c->workload, agent_generation(c->agent),
                             action->input, err);
    case AGENT_STOP_RANKS:
        workload_stop(c->workload, action->signal);
        return 0;
    case AGENT_KILL_RANKS:
        workload_stop(c->workload, SIGKILL);
        return 0;
    case AGENT_PASS_SIGNAL:
        workload_pass_signal(c->workload, action->signal);
        return 0;
    default:
        return 0;
    }
}

static void apply(struct client *c, const struct agent_action *action)
{
    struct gpul_error err;
    int rc = 0;
    switch (action->type) {
    case AGENT_CONNECT:
    case AGENT_SEND:
    case AGENT_DISCONNECT:
        apply_to_connection(c, action);
        break;
    case AGENT_LEASE_PORTS:
        lease_ports(c);
        break;
    case AGENT_START_PROBE:
    case AGENT_SEND_PROBES:
    case AGENT_KILL_PROBES:
        apply_to_probes(c, action);
        break;
    case AGENT_START_RANKS:
    case AGENT_REPORT_ENV:
    case AGENT_FEED:
    case AGENT_STOP_RANKS:
    case AGENT_KILL_RANKS:
    case AGENT_PASS_SIGNAL:
        rc = apply_to_ranks(c, action, &err);
        break;
    case AGENT_ABANDON:
        prober_abandon(&c->prober);
        workload_abandon(c->workload);
        break;
    case AGENT_CREDIT:
    case AGENT_DISCARD_OUTPUT:
    case AGENT_REMOVE_LOGS:
        apply_to_output(c, action);
        break;
    case AGENT_OPEN_LINKS:
    case AGENT_DIAL_LINKS:
    case AGENT_CLOSE_LINKS:
        rc = apply_to_links(c, action, &err);
        break;
    case AGENT_TELL_CLOCK:
        tell_clock(c, action->ping);
        break;
    case AGENT_LEAVE:
        client_leave(c, action->exit_code, action->text);
        break;
    case AGENT_ATTACHED:
        client_tell_keeper(c, KEEPER_ATTACHED);
        break;
    case AGENT_SAY:
        fprintf(stderr, "gpulaunch-worker: %s: %s\n", c->config->node_name,
                action->text);
        break;
    case AGENT_RENEW_PORTS:
        renew_ports(c, action->port_base);
        break;
    }
    if (rc != 0) {
        fail(c, err.text);
    }
}

static void on_timer(uv_timer_t *timer)
{
    struct client *c = timer->data;
    client_post(c, AGENT_EVENT_TICK, NULL);
    client_pump(c);
}

static void arm_timer(struct client *c)
{
    uint64_t at = agent_next_deadline_ms(c->agent);
    uint64_t now = gpul_clock_ms();
    if (at == UINT64_MAX) {
        uv_timer_stop(&c->timer);
        return;
    }
    uv_update_time(&c->loop); /* its clock stands still within a turn */
    uv_timer_start(&c->timer, on_timer, at > now ? at - now : 0, 0);
}

static void step(struct client *c, struct agent_event *event)
{
    struct gpul_error err;
    if (c->has_left) {
        return;
    }
    event->now_ms = gpul_clock_ms();
    int rc = agent_step(c->agent, event, &c->actions, &err);
    bool was_pumping = c->is_pumping;
    c->is_pumping = true;
    for (size_t i = 0; rc == 0 && i < c->actions.count; i++) {
        apply(c, &c->actions.items[i]);
    }
    c->is_pumping = was_pumping;
    if (rc != 0) {
        client_leave(c, AGENT_EXIT_FAILED, err.text);
    }
}

/* Events come up while actions are applied; they wait until that is done, as
 * actions are good until the next step only. */
void client_pump(struct client *c)
{
    if (c->is_pumping) {
        return;
    }
    struct waiting_event w;
    while (!c->has_left && eventqueue_take(&c->queue, &w)) {
        struct agent_event event = {
            .type = w.type,
            .text = w.text[0] != 0 ? w.text : NULL,
            .port_base = w.port_base,
            .probe = w.probe,
            .signal = w.signal,
        };
        if (w.type == AGENT_EVENT_RANKS_ENDED) {
            event.exit_count = workload_take_exits(c->workload, &event.exits);
        } else if (w.type == AGENT_EVENT_ALL_GONE ||
                   w.type == AGENT_EVENT_KEEPER_LOST) {
            event.unclean_count = workload_unclean(c->workload, &event.unclean);
        }
        char *text = w.text;
        if (w.is_unclean) {
            event.unclean = &text;
            event.unclean_count = 1;
        }
        step(c, &event);
    }
    if (!c->has_left) {
        arm_timer(c);
    }
}
