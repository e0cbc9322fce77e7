/* SPDX-License-Identifier: Apache-2.0
 *
 * Thousands of jobs, each drawn from a seed: its size, delays, and what goes
 * wrong with whom and when. The watch judges every step and the end.
 * `--seed N` reruns one with its trace; `--seeds N [FIRST]` sets how many, and
 * with which they begin.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/lib/cluster.h"
#include "tests/lib/watch.h"
#include "tests/sim/random_draw.h"

enum {
    SEEDS = 10000,
    NODES_MAX = 8,
    RANKS_MAX = 64,
    /* No bound below is over a minute, and a job passes each at most twice
     * (a restart), so that it must have ended by then. */
    END_MS = 30 * 60 * 1000,
};

/* What was drawn for the ranks; the cluster's plan looks here. */
struct fate {
    struct rank_plan ranks[2][RANKS_MAX]; /* by generation */
    uint64_t delay_max_ms;
    bool has_crashes[NODES_MAX]; /* its agent may end before the job */
};

static uint64_t draw_delay(struct cluster *c)
{
    const struct fate *fate = c->arg;
    if (random_chance(c, 1)) {
        return 1 + random_below(c, 40 * fate->delay_max_ms);
    }
    return 1 + random_below(c, fate->delay_max_ms);
}

static struct rank_plan plan(struct cluster *c, uint32_t rank,
                             uint32_t generation)
{
    const struct fate *fate = c->arg;
    return fate->ranks[generation > 1][rank];
}

static struct rank_plan draw_rank(struct cluster *c, bool has_faults)
{
    struct rank_plan plan = {.run_ms = random_below(c, 3000)};
    if (random_chance(c, 20)) {
        plan.output_bytes = (uint32_t)random_below(c, 8000);
    }
    if (!has_faults || !random_chance(c, 15)) {
        return plan;
    }
    switch (random_below(c, 5)) {
    case 0:
        plan.code = 1 + (uint32_t)random_below(c, 255);
        break;
    case 1:
        plan.signal = SIGSEGV;
        break;
    case 2:
        plan.exec_errno = random_chance(c, 50) ? 2 : 13;
        break;
    case 3:
        plan.code = 1;
        plan.is_bind_error = true;
        break;
    default:
        plan.runs_for_ever = true;
        break;
    }
    return plan;
}

static void draw_ranks(struct cluster *c, struct fate *fate, bool has_faults)
{
    for (uint32_t generation = 0; generation < 2; generation++) {
        for (uint32_t rank = 0; rank < RANKS_MAX; rank++) {
            fate->ranks[generation][rank] = draw_rank(c, has_faults);
        }
    }
    if (has_faults && random_chance(c, 15)) {
        uint32_t ranks = c->job.node_count * c->job.ranks_per_node;
        struct rank_plan *unlucky = &fate->ranks[0][random_below(c, ranks)];
        *unlucky = (struct rank_plan){.code = 1, .is_bind_error = true};
        unlucky->run_ms = random_below(c, 200);
    }
}

static void draw_death(struct cluster *c, uint32_t index)
{
    static const unsigned at[] = {
        GPUL__FRAME__BODY_WELCOME,       GPUL__FRAME__BODY_JOB,
        GPUL__FRAME__BODY_ASSIGN,        GPUL__FRAME__BODY_ROSTER,
        GPUL__FRAME__BODY_PROBE_START,   GPUL__FRAME__BODY_PROBE_CONNECT,
        GPUL__FRAME__BODY_LAUNCH,        GPUL__FRAME__BODY_STOP,
        GPUL__FRAME__BODY_HEARTBEAT_ACK, GPUL__FRAME__BODY_FINISH,
        GPUL__FRAME__BODY_PROBE_BEGIN,   GPUL__FRAME__BODY_PROBE_IDS,
        GPUL__FRAME__BODY_LINK_START,    GPUL__FRAME__BODY_LINK_PEERS,
    };
    struct fake_node *node = &c->nodes[index];
    ((struct fate *)c->arg)->has_crashes[index] = true;
    node->dies_silently = random_chance(c, 40);
    node->redials = random_chance(c, 50);
    if (random_chance(c, 50)) {
        node->dies_at = at[random_below(c, sizeof(at) / sizeof(at[0]))];
    } else if (random_chance(c, 30)) {
        node->loses_welcome = 1;
    } else {
        cluster_kill(c, index, random_below(c, 6000));
    }
}

/* Its keeper lives longer than its agents, most of the time. */
static void draw_crashes(struct cluster *c, uint32_t index)
{
    struct fake_node *node = &c->nodes[index];
    struct fate *fate = c->arg;
    fate->has_crashes[index] = true;
    uint32_t crashes = 1 + (uint32_t)random_below(c, 4);
    node->restart_ms = random_chance(c, 10) ? 9000 + random_below(c, 2000)
                                            : random_below(c, 500);
    for (uint32_t i = 0; i < crashes; i++) {
        cluster_crash(c, index, random_below(c, 8000));
    }
    if (random_chance(c, 20)) {
        uint64_t at_ms = random_below(c, 8000);
        node->leaves_silently = random_chance(c, 50);
        cluster_kill_keeper(c, index, at_ms);
        if (random_chance(c, 60)) {
            cluster_tell_gone(c, index, at_ms + random_below(c, 100));
        }
    }
}

static void draw_weakness(struct cluster *c, struct fake_node *node)
{
    switch (random_below(c, 13)) {
    case 10:
        node->never_links = true;
        break;
    case 11:
        node->never_dials_links = true;
        break;
    case 12:
        node->link_error = "no candidate";
        break;
    case 0:
        node->never_dials = true;
        break;
    case 1:
        node->never_ready = true;
        break;
    case 2:
        node->never_listens = true;
        break;
    case 3:
        node->never_results = true;
        break;
    case 4:
        node->never_idle = true;
        break;
    case 5:
        node->never_reports = true;
        break;
    case 6:
        node->ready_error = "no port is free";
        break;
    case 7:
        node->probe_error = "connection refused";
        node->probe_is_remote = random_chance(c, 70);
        node->probe_repents = random_chance(c, 30);
        break;
    case 8:
        node->wrong_elements = 3;
        break;
    default:
        node->unclean = "4711 python";
        break;
    }
}

static void draw_node(struct cluster *c, uint32_t index, bool has_faults)
{
    struct fake_node *node = &c->nodes[index];
    node->dial_ms = random_below(c, 2000);
    node->ready_ms = 1 + random_below(c, 500);
    node->listen_ms = 1 + random_below(c, 500);
    node->probe_ms = 1 + random_below(c, 1500);
    node->stop_ms = 1 + random_below(c, 1000);
    node->notice = random_chance(c, 30) ? "OMP_NUM_THREADS was kept" : NULL;
    node->is_stale = random_chance(c, 30);
    node->goodbye = random_chance(c, 20) ? "some output was lost" : NULL;
    if (has_faults && random_chance(c, 10)) {
        node->ready_ms = 29900 + random_below(c, 200); /* around the deadline */
    }
    if (has_faults && random_chance(c, 10)) {
        draw_death(c, index);
    }
    if (has_faults && random_chance(c, 8)) {
        draw_weakness(c, node);
    }
    if (has_faults && random_chance(c, 20)) {
        draw_crashes(c, index);
    }
}

/* Several machines, each on two networks, some of them cut for some. */
static void draw_links(struct cluster *c, bool has_faults)
{
    for (uint32_t i = 0; i < c->job.node_count; i++) {
        struct fake_node *node = &c->nodes[i];
        bool is_second = i % 2 == 1;
        node->network_namespace = 1 + i;
        node->address = is_second ? "10.0.0.2" : "10.0.0.1";
        node->link_count = 2;
        node->links[0] = (struct fake_link){
            .name = "eth0", .address = node->address, .mbits = 1000};
        node->links[1] = (struct fake_link){
            .name = "ib0", .address = "10.1.0.1", .is_rdma = true};
        if (has_faults && random_chance(c, 15)) {
            node->links[random_chance(c, 80)].cut_for = random_below(c, 256);
        }
        if (has_faults && random_chance(c, 3)) {
            node->links[0].cut_for = node->links[1].cut_for =
                random_below(c, 256);
        }
    }
}

/* Nodes that should not get in. */
static void draw_strangers(struct cluster *c)
{
    uint32_t count = (uint32_t)random_below(c, 4);
    for (uint32_t i = 0; i < count; i++) {
        uint32_t like = (uint32_t)random_below(c, c->job.node_count);
        struct fake_node *node = cluster_add(c, like);
        node->dial_ms = random_below(c, 4000);
        switch (random_below(c, 4)) {
        case 0:
            node->job_id = "another";
            break;
        case 1:
            node->protocol_min = 90;
            node->protocol_max = 99;
            break;
        case 2:
            /* It dials twice, or else is a twin. */
            if (!((struct fate *)c->arg)->has_crashes[like]) {
                node->instance = c->nodes[like].instance;
            }
            break;
        default:
            break; /* a twin */
        }
    }
}

/* List the names backwards: the ranks must follow the numbers all the same. */
static void turn_names(struct cluster *c)
{
    char names[128] = "";
    for (uint32_t i = c->job.node_count; i > 0; i--) {
        size_t used = strlen(names);
        snprintf(names + used, sizeof(names) - used, "node%u%s", i - 1,
                 i > 1 ? "," : "");
    }
    free(c->names);
    c->names = strdup(names);
}

static void draw_job(struct cluster *c, bool has_faults)
{
    c->job.join_timeout_ms = 2500 + (uint32_t)random_below(c, 20000);
    c->job.grace_ms = (uint32_t)random_below(c, 5000);
    c->self_test.listen_deadline_ms = 1000 + (uint32_t)random_below(c, 10000);
    c->self_test.run_deadline_ms = 2000 + (uint32_t)random_below(c, 10000);
    if (random_chance(c, 30)) {
        c->self_test.level = GPUL__SELF_TEST__LEVEL__OFF;
    }
    if (has_faults && random_chance(c, 5)) {
        c->sweep.busbw_min_gbps = 400; /* more than any double has */
    }
    if (random_chance(c, 50)) {
        turn_names(c);
    }
    if (random_chance(c, 10)) {
        c->job.mode = GPUL__JOB__MODE__ENV;
        c->job.report_all_ranks = random_chance(c, 50);
    }
    /* Ranks that run for ever need it. */
    c->job.timeout_ms = has_faults || random_chance(c, 20)
                            ? 20000 + (uint32_t)random_below(c, 40000)
                            : 0;
    if (c->job.timeout_ms > 0 && random_chance(c, 30)) {
        c->job.warning_signal = SIGUSR1;
        c->job.warning_ms = (uint32_t)random_below(c, c->job.timeout_ms);
    }
}

/* Standard input: mostly little, so that ten thousand jobs take seconds. */
static void draw_input(struct cluster *c)
{
    if (c->job.mode == GPUL__JOB__MODE__ENV || random_chance(c, 40)) {
        return;
    }
    c->job.input_target = &c->input_target;
    c->input_target.is_all = random_chance(c, 50);
    if (!c->input_target.is_all) {
        uint32_t ranks = c->job.node_count * c->job.ranks_per_node;
        c->input_target.rank = (uint32_t)random_below(c, ranks);
    }
    c->input_bytes = random_below(c, random_chance(c, 2) ? 5u << 20 : 50000);
    c->ends_input = random_chance(c, 80);
    for (uint32_t i = 0; i < c->job.node_count; i++) {
        c->nodes[i].take_ms = random_below(c, 100);
        c->nodes[i].never_takes = random_chance(c, 5);
    }
}

static void draw_operator(struct cluster *c)
{
    uint32_t signals = (uint32_t)random_below(c, 3);
    for (uint32_t i = 0; i < signals; i++) {
        cluster_signal(c, random_below(c, 8000), SIGUSR1);
    }
    uint32_t cancels =
        random_chance(c, 30) ? 1 + (uint32_t)random_below(c, 2) : 0;
    for (uint32_t i = 0; i < cancels; i++) {
        /* One draw a statement: their order is the same everywhere. */
        uint64_t at_ms = random_below(c, 8000);
        uint32_t signal = random_chance(c, 50) ? SIGINT : SIGTERM;
        bool is_immediate = random_chance(c, 20);
        bool is_timeout = random_chance(c, 20);
        cluster_cancel(c, at_ms, signal, is_immediate, is_timeout);
    }
    if (random_chance(c, 8)) {
        cluster_operator_leaves(c, random_below(c, 8000));
    }
}

static void draw_roles(struct cluster *c, Gpul__Role *roles,
                       Gpul__Role **pointers)
{
    uint32_t ranks = c->job.node_count * c->job.ranks_per_node;
    if (ranks < 3 || !random_chance(c, 30)) {
        return;
    }
    static const char *const last[] = {"ps", "evaluator"};
    const char *names[] = {"chief", "worker", last[random_below(c, 2)]};
    uint32_t counts[] = {1, ranks - 2, 1};
    for (size_t i = 0; i < 3; i++) {
        gpul__role__init(&roles[i]);
        roles[i].name = (char *)(uintptr_t)names[i];
        roles[i].count = counts[i];
        pointers[i] = &roles[i];
    }
    c->job.roles = pointers;
    c->job.n_roles = 3;
}

/* Jobs that were a success after agents had come back. */
static unsigned survivals[2]; /* while the ranks ran, before */
static unsigned hangs;        /* jobs in which training was said to hang */

static uint32_t run_seed(uint64_t seed, bool is_traced)
{
    static struct fate fate;
    struct cluster c;
    struct watch watch;
    struct gpul_rng rng;
    Gpul__Role roles[3];
    Gpul__Role *pointers[3];
    gpul_rng_init(&rng, seed);
    uint32_t nodes = 1 + (uint32_t)gpul_rng_below(&rng, NODES_MAX);
    cluster_init(&c, "node", nodes, 1 + (uint32_t)gpul_rng_below(&rng, 3));
    c.rng = rng;
    c.is_traced = is_traced;
    c.delay_ms = draw_delay;
    c.plan = plan;
    c.arg = &fate;
    memset(fate.has_crashes, 0, sizeof(fate.has_crashes));
    fate.delay_max_ms = 1 + random_below(&c, 50);
    bool has_faults = random_chance(&c, 75);
    draw_job(&c, has_faults);
    draw_roles(&c, roles, pointers);
    draw_ranks(&c, &fate, has_faults);
    for (uint32_t i = 0; i < nodes; i++) {
        draw_node(&c, i, has_faults);
    }
    if (random_chance(&c, 50)) {
        random_draw_gpus(&c);
    }
    if (random_chance(&c, 40)) {
        draw_links(&c, has_faults);
    }
    if (has_faults && random_chance(&c, 50)) {
        random_draw_gpu_faults(&c);
    }
    draw_input(&c);
    random_draw_stalls(&c, fate.ranks[0], 2 * RANKS_MAX);
    if (has_faults) {
        draw_strangers(&c);
        draw_operator(&c);
    }
    if (seed % 4 == 0) {
        c.job.n_node_names = 0; /* the same nodes, but nobody expects them */
    }
    watch_init(&watch, &c, seed);
    cluster_start(&c);
    cluster_run(&c, END_MS);
    if (is_traced) {
        printf("%s", gpul_buf_text(&c.trace));
        fflush(stdout);
    }
    watch_end(&c);
    uint32_t code = (uint32_t)c.finish_code;
    survivals[0] += code == 0 && watch.returns > 0;
    survivals[1] += code == 0 && watch.anew > 0;
    hangs += watch.stall_reports > 0;
    watch_release(&watch);
    cluster_release(&c);
    return code;
}

/* A simulation that never fails, or always, tests nothing. */
static int check_variety(const unsigned counts[256], uint64_t seeds)
{
    static const uint32_t codes[] = {0,  1,   20,  21,  30,  40,  41,
                                     75, 124, 126, 127, 130, 139, 143};
    for (size_t i = 0; i < sizeof(codes) / sizeof(codes[0]); i++) {
        printf("%s%u: %u", i == 0 ? "exit codes " : ", ", codes[i],
               counts[codes[i]]);
        if (seeds >= SEEDS && counts[codes[i]] == 0) {
            printf("\nno job ended with %u\n", codes[i]);
            return 1;
        }
    }
    printf("\nsuccess with an agent that came back: %u, begun anew: %u; "
           "training that hung: %u\n",
           survivals[0], survivals[1], hangs);
    return seeds >= SEEDS &&
           (survivals[0] == 0 || survivals[1] == 0 || hangs == 0);
}

int main(int argc, char *argv[])
{
    unsigned counts[256] = {0};
    uint64_t seeds = SEEDS;
    uint64_t first = 1;
    if (argc == 3 && strcmp(argv[1], "--seed") == 0) {
        run_seed(strtoull(argv[2], NULL, 10), true);
        return 0;
    }
    if (argc >= 3 && strcmp(argv[1], "--seeds") == 0) {
        seeds = strtoull(argv[2], NULL, 10);
        first = argc > 3 ? strtoull(argv[3], NULL, 10) : first;
    }
    for (uint64_t i = 0; i < seeds; i++) {
        counts[run_seed(first + i, false) & 255]++;
    }
    return check_variety(counts, seeds);
}
