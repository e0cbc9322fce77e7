/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/lib/dossier_sample.h"

#include <stdio.h>

enum { SLOW = 5 };

static const char *name_of(struct dossier *d, int i)
{
    char name[8];
    snprintf(name, sizeof(name), "n%d", i);
    return dossier_text(d, name);
}

static void add_run(struct dossier *d)
{
    char python[] = "python", script[] = "train.py", token[] = "--token=hide";
    char *command[] = {python, script, token};
    struct dossier_run *run = dossier_add(d, DOSSIER_RUN);
    run->schema_version = DOSSIER_SCHEMA_VERSION;
    run->version = "1.2.3";
    run->verb = "check";
    run->job_id = "20261201-1";
    run->started_unix_s = 1796040000;
    run->node_count = DOSSIER_SAMPLE_NODES;
    run->backend = "host-tcp";
    dossier_put_command(d, run, command, 3);
}

static void add_nodes(struct dossier *d)
{
    for (int i = 0; i < DOSSIER_SAMPLE_NODES; i++) {
        struct dossier_node *node = dossier_add(d, DOSSIER_NODE);
        node->node_rank = i;
        node->name = name_of(d, i);
        node->host = node->name;
        node->address = "10.0.0.1";
        node->interface = i == 3 ? "ens5" : "eth0";
        node->gpus = 8;
        dossier_append(d, &node->rejected,
                       "docker0 172.17.0.1 (bridge): no port to the network");
        dossier_put(d, &node->facts, "gpu.driver",
                    i == 2 ? "565.57" : "570.86");
        dossier_put(d, &node->facts, "memory.available", "1");
        dossier_put(d, &node->unknown, "rdma.devices", "no answer within 5 s");
    }
}

static void add_finding(struct dossier *d, const char *id, const char *severity,
                        const char *node, const char *text, const char *remedy)
{
    struct dossier_finding *f = dossier_add(d, DOSSIER_FINDING);
    f->id = id;
    f->severity = severity;
    f->text = text;
    f->remedy = remedy;
    if (node != NULL) {
        dossier_append(d, &f->nodes, node);
    }
}

static void add_findings(struct dossier *d)
{
    add_finding(d, "VER-304", "fail", "n2",
                "driver 565.57 on n2, 570.86 on 7 nodes",
                "install driver 570.86 on n2");
    add_finding(d, "NET-110", "fail", "n1",
                "n1->n2 timed out <at 10.0.0.3:40001>",
                "let ephemeral ports through \"both\" firewalls");
    add_finding(d, "RDMA-601", "unknown", NULL, "could not be read", NULL);
    add_finding(d, "HOST-502", "warn", "n0", "memlock is 8192 kB",
                "set it to unlimited");
    add_finding(d, "HOST-501", "pass", NULL, "/dev/shm has room", NULL);
}

static void add_pairs(struct dossier *d)
{
    for (int round = 0; round < 2; round++) {
        for (int i = round; i < DOSSIER_SAMPLE_NODES; i += 2) {
            int k = (i + 1) % DOSSIER_SAMPLE_NODES;
            bool is_slow = i == SLOW || k == SLOW;
            struct dossier_pair *pair = dossier_add(d, DOSSIER_PAIR);
            pair->round = round + 1;
            pair->a = name_of(d, i);
            pair->b = name_of(d, k);
            pair->rail = "eth0";
            if (i == 1) {
                pair->error = "n1->n2 timed out";
            } else {
                pair->a_to_b = is_slow ? 0.3e9 : 1.2e9 + i * 1e7;
                pair->b_to_a = is_slow ? 1.0e9 : 1.2e9 - i * 1e7;
                pair->round_trip_s = 50e-6;
            }
        }
    }
    struct dossier_verdict *v = dossier_add(d, DOSSIER_VERDICT);
    v->what = "node";
    dossier_append(d, &v->nodes, "n5");
    v->state = "slow";
    v->direction = "send";
    v->rail = "eth0";
    v->rounds = 3;
    v->text = "0.3 GB/s with n4 and n6, the others 1.2 GB/s";
}

static void add_bandwidths(struct dossier *d)
{
    for (int nodes = 2; nodes <= DOSSIER_SAMPLE_NODES; nodes *= 4) {
        for (int64_t bytes = 8; bytes <= 256 << 20; bytes *= 8) {
            struct dossier_bandwidth *b = dossier_add(d, DOSSIER_BANDWIDTH);
            double time_s = 60e-6 * nodes + (double)bytes / 1.1e9;
            b->node_count = nodes;
            b->collective = "all-reduce";
            b->scope = "world";
            b->bytes = bytes;
            b->median_s = time_s;
            b->busbw = (double)bytes / time_s;
            b->ceiling = 1.25e9;
            b->ceiling_kind = "TCP";
            b->verdict = bytes < 1 << 20 ? "small" : "good";
        }
    }
}

static void add_scaling(struct dossier *d)
{
    for (int nodes = 1; nodes <= DOSSIER_SAMPLE_NODES; nodes *= 2) {
        struct dossier_efficiency *e = dossier_add(d, DOSSIER_EFFICIENCY);
        e->node_count = nodes;
        e->reference_node_count = 1;
        e->scaling = "weak";
        e->unit = "images/s";
        e->efficiency = 1 - 0.03 * (nodes - 1);
        e->efficiency_low = e->efficiency - 0.02;
        e->efficiency_high = e->efficiency + 0.01;
        e->throughput = 100 * nodes * e->efficiency;
        e->throughput_low = e->throughput - 2;
        e->throughput_high = e->throughput + 1;
        e->note = nodes == 2 ? "not comparable" : NULL;
    }
    struct dossier_prediction *p = dossier_add(d, DOSSIER_PREDICTION);
    p->node_count = 64;
    p->efficiency = 0.5;
    p->efficiency_low = 0.4;
    p->efficiency_high = 0.6;
    p->extrapolation = 8;
    struct dossier_prediction *q = dossier_add(d, DOSSIER_PREDICTION);
    q->node_count = 4096;
    q->refused = "the fit is off by 31 %";
    struct dossier_fit *fit = dossier_add(d, DOSSIER_FIT);
    fit->model = "universal scalability law";
    dossier_put_figure(d, &fit->parameters, "sigma", 0.03);
    fit->max_relative_error = 0.04;
    fit->is_usable = true;
}

void dossier_sample(struct dossier *d)
{
    add_run(d);
    add_nodes(d);
    add_findings(d);
    add_pairs(d);
    add_bandwidths(d);
    add_scaling(d);
    struct dossier_end *end = dossier_add(d, DOSSIER_END);
    end->exit_code = 20;
    end->reason = "check_failed";
    end->message = "2 checks failed: VER-304 on n2, NET-110 from n1 to n2";
    end->duration_s = 12.5;
    dossier_count_findings(d, end);
}
