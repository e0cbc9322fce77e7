/* SPDX-License-Identifier: Apache-2.0
 *
 * Describing a cluster: what its job and its nodes are before it runs, and what
 * will befall them.
 */
#include "tests/lib/cluster.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "coordinator/text.h"
#include "proto/limits.h"

enum { TRACE_BYTES_MAX = 1 << 20 };

static void init_node(struct fake_node *node, const char *prefix,
                      uint32_t index)
{
    char name[64];
    snprintf(name, sizeof(name), "%s%u", prefix, index);
    *node = (struct fake_node){
        .name = strdup(name),
        .job_id = "job",
        .hostname = "host",
        .boot_id = "boot",
        .address = "127.0.0.1",
        .instance = 1000 + index,
        .protocol_min = GPUL_PROTOCOL_MIN,
        .protocol_max = GPUL_PROTOCOL,
        .ready_ms = 1,
        .listen_ms = 1,
        .probe_ms = 10,
        .pair_gbps = 1,
        .trial_ms = 500,
        .probe_ns = 1000000,
        .stop_ms = 5,
        .take_ms = 2,
        .nccl_version = "2.28.9",
        .driver_version = 13000,
        .model = "NVIDIA H200",
        .step_ms = 10,
        .restart_ms = 20,
    };
}

static void init_job(struct cluster *c, const char *prefix, uint32_t count,
                     uint32_t ranks_per_node)
{
    char names[64];
    static char command[] = "true";
    snprintf(names, sizeof(names), "%s[0-%u]", prefix, count - 1);
    c->names = strdup(count > 1 ? names : c->nodes[0].name);
    gpul__job__init(&c->job);
    gpul__self_test__init(&c->self_test);
    gpul__command__init(&c->command);
    gpul__environment__init(&c->environment);
    gpul__input_target__init(&c->input_target);
    c->argument.data = (uint8_t *)command;
    c->argument.len = sizeof(command) - 1;
    c->command.arguments = &c->argument;
    c->command.n_arguments = 1;
    c->self_test.level = GPUL__SELF_TEST__LEVEL__QUICK;
    c->self_test.listen_deadline_ms = 20000;
    c->self_test.run_deadline_ms = 60000;
    gpul__sweep__init(&c->sweep);
    c->self_test.sweep = &c->sweep;
    c->job.self_test = &c->self_test;
    c->job.command = &c->command;
    c->job.environment = &c->environment;
    c->job.job_id = wire_text("job");
    c->job.mode = GPUL__JOB__MODE__RUN;
    c->job.node_count = count;
    c->job.ranks_per_node = ranks_per_node;
    c->job.node_names = &c->names;
    c->job.n_node_names = 1;
    c->job.join_timeout_ms = 600000;
    c->job.grace_ms = 30000;
    c->job.forwards_output = true;
}

void cluster_init(struct cluster *c, const char *prefix, uint32_t count,
                  uint32_t ranks_per_node)
{
    *c = (struct cluster){.node_count = count,
                          .has_operator = true,
                          .gives_credit = true,
                          .ends_input = true,
                          .input_window = GPUL_INPUT_WINDOW_BYTES_MAX};
    c->nodes = calloc(count, sizeof(*c->nodes));
    for (uint32_t i = 0; i < count; i++) {
        init_node(&c->nodes[i], prefix, i);
    }
    sim_queue_init(&c->queue);
    gpul_buf_init(&c->trace, TRACE_BYTES_MAX);
    gpul_rng_init(&c->rng, 1);
    init_job(c, prefix, count, ranks_per_node);
    struct rendezvous_config config = {
        .epoch = 1, .seed = 7, .version = "0.1.0"};
    if (rendezvous_create(&c->core, &config, 0, NULL) != 0) {
        abort();
    }
}

void cluster_release(struct cluster *c)
{
    for (uint32_t i = 0; i < c->node_count; i++) {
        free(wire_text(c->nodes[i].name));
    }
    while (c->links != NULL) {
        struct sim_link *next = c->links->next;
        free(c->links);
        c->links = next;
    }
    free(c->nodes);
    free(c->names);
    free(c->by_conn);
    free(c->free_conns);
    sim_queue_release(&c->queue);
    gpul_buf_release(&c->trace);
    rendezvous_destroy(c->core);
}

struct fake_node *cluster_add(struct cluster *c, uint32_t like)
{
    size_t bytes = (c->node_count + 1) * sizeof(*c->nodes);
    c->nodes = realloc(c->nodes, bytes);
    struct fake_node *node = &c->nodes[c->node_count];
    *node = c->nodes[like];
    node->name = strdup(node->name);
    node->instance = 1000 + c->node_count;
    c->node_count++;
    return node;
}

void cluster_note(struct cluster *c, const char *format, ...)
{
    char line[2048];
    va_list args;
    if (c->is_traced) {
        va_start(args, format);
        vsnprintf(line, sizeof(line), format, args);
        va_end(args);
        gpul_buf_appendf(&c->trace, "%llu %s\n", (unsigned long long)c->now_ms,
                         line);
    }
}

/* ---- what befalls it ---- */

void cluster_cancel(struct cluster *c, uint64_t at_ms, uint32_t signal,
                    bool is_immediate, bool is_timeout)
{
    Gpul__Cancel cancel = GPUL__CANCEL__INIT;
    cancel.signal = signal;
    cancel.is_immediate = is_immediate;
    cancel.is_timeout = is_timeout;
    Gpul__Frame frame = GPUL__FRAME__INIT;
    frame.body_case = GPUL__FRAME__BODY_CANCEL;
    frame.cancel = &cancel;
    cluster_operate(c, at_ms, &frame);
}

void cluster_signal(struct cluster *c, uint64_t at_ms, uint32_t number)
{
    Gpul__Signal signal = GPUL__SIGNAL__INIT;
    signal.signal = number;
    Gpul__Frame frame = GPUL__FRAME__INIT;
    frame.body_case = GPUL__FRAME__BODY_SIGNAL;
    frame.signal = &signal;
    cluster_operate(c, at_ms, &frame);
}

void cluster_operator_leaves(struct cluster *c, uint64_t at_ms)
{
    sim_queue_push(&c->queue, (struct sim_event){.at_ms = at_ms,
                                                 .kind = SIM_OPERATOR_GONE});
}

void cluster_tell_gone(struct cluster *c, uint32_t node, uint64_t at_ms)
{
    Gpul__NodeGone gone = GPUL__NODE_GONE__INIT;
    gone.node_name = wire_text(c->nodes[node].name);
    gone.text = wire_text("gpulaunch-worker ended by signal 9 (SIGKILL)");
    Gpul__Frame frame = GPUL__FRAME__INIT;
    frame.body_case = GPUL__FRAME__BODY_NODE_GONE;
    frame.node_gone = &gone;
    cluster_operate(c, at_ms, &frame);
}

static void befall(struct cluster *c, enum sim_kind kind, uint32_t node,
                   uint64_t at_ms)
{
    sim_queue_push(&c->queue, (struct sim_event){
                                  .at_ms = at_ms, .kind = kind, .node = node});
}

void cluster_kill(struct cluster *c, uint32_t node, uint64_t at_ms)
{
    befall(c, SIM_NODE_DIES, node, at_ms);
}

void cluster_crash(struct cluster *c, uint32_t node, uint64_t at_ms)
{
    befall(c, SIM_AGENT_CRASHES, node, at_ms);
}

void cluster_kill_keeper(struct cluster *c, uint32_t node, uint64_t at_ms)
{
    befall(c, SIM_KEEPER_DIES, node, at_ms);
}

void cluster_start(struct cluster *c)
{
    Gpul__Frame frame = GPUL__FRAME__INIT;
    frame.body_case = GPUL__FRAME__BODY_JOB;
    frame.job = &c->job;
    cluster_operate(c, c->now_ms, &frame);
    for (uint32_t i = 0; i < c->node_count; i++) {
        if (!c->nodes[i].never_dials) {
            cluster_plan(c, SIM_DIAL, i, 0, 0, c->nodes[i].dial_ms);
        }
    }
}
