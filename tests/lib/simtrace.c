/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/lib/simtrace.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "common/bandwidth.h"

static void describe_assign(char *text, size_t n, const Gpul__Assign *a)
{
    size_t used = (size_t)snprintf(
        text, n, "assign node %u/%u, ranks %u+%u of %u, host %u/%u with %u",
        a->node_rank, a->node_count, a->first_rank, a->rank_count,
        a->world_size, a->host_node_index, a->host_node_count,
        a->host_rank_count);
    for (size_t i = 0; i < a->n_avoid_ports && used < n; i++) {
        used += (size_t)snprintf(text + used, n - used, "%s%u",
                                 i == 0 ? ", avoid " : " ", a->avoid_ports[i]);
    }
}

static void describe_roster(char *text, size_t n, const Gpul__Roster *r)
{
    snprintf(text, n, "roster %u/%u: %s ports %u ranks %u", r->page + 1,
             r->page_count, r->addresses, r->port_bases[0], r->rank_counts[0]);
}

static void describe_start(char *text, size_t n, const Gpul__ProbeStart *p)
{
    bool is_scout = p->backend == GPUL__SELF_TEST__BACKEND__BACKEND_NCCL;
    snprintf(text, n, "%s node %u/%u on %s", is_scout ? "scout" : "probe_start",
             p->node_rank, p->node_count, p->address);
}

static void describe_begin(char *text, size_t n, const Gpul__ProbeBegin *b)
{
    snprintf(text, n, "probe_begin ranks %u+%u of %u, %u a node, ids %u",
             b->first_rank, b->rank_count, b->world_size, b->ranks_per_node,
             b->id_count);
}

static void describe_ids(char *text, size_t n, const Gpul__ProbeIds *ids)
{
    size_t used = (size_t)snprintf(text, n, "probe_ids");
    for (size_t i = 0; i < ids->n_ids && used < n; i++) {
        const uint8_t *id = ids->ids[i].data;
        used += (size_t)snprintf(text + used, n - used, " %u-%u", id[0], id[1]);
    }
}

/* False: not worth a line. */
static bool describe(char *text, size_t n, const Gpul__Frame *f)
{
    switch (f->body_case) {
    case GPUL__FRAME__BODY_REFUSE:
        snprintf(text, n, "refuse %u", f->refuse->reason);
        return true;
    case GPUL__FRAME__BODY_JOB:
        snprintf(text, n, "job %s", f->job->job_id);
        return true;
    case GPUL__FRAME__BODY_ASSIGN:
        describe_assign(text, n, f->assign);
        return true;
    case GPUL__FRAME__BODY_ROSTER:
        describe_roster(text, n, f->roster);
        return true;
    case GPUL__FRAME__BODY_SURVEY_START:
        snprintf(text, n, "survey_start, %u ms", f->survey_start->deadline_ms);
        return true;
    case GPUL__FRAME__BODY_LINK_START:
        snprintf(text, n, "link_start, %u ms", f->link_start->deadline_ms);
        return true;
    case GPUL__FRAME__BODY_LINK_PEERS:
        snprintf(text, n, "link_peers %u/%u: %s", f->link_peers->page + 1,
                 f->link_peers->page_count, f->link_peers->addresses);
        return true;
    case GPUL__FRAME__BODY_PAIR_START:
        snprintf(text, n, "pair_start %s", f->pair_start->addresses[0]);
        return true;
    case GPUL__FRAME__BODY_TRIAL_START:
        snprintf(text, n, "trial %u with %u at %s:%u%s", f->trial_start->trial,
                 f->trial_start->peer_rank, f->trial_start->peer_address,
                 f->trial_start->peer_port,
                 f->trial_start->dials_first ? ", dials first" : "");
        return true;
    case GPUL__FRAME__BODY_PAIR_END:
        snprintf(text, n, "pair_end");
        return true;
    case GPUL__FRAME__BODY_PROBE_START:
        describe_start(text, n, f->probe_start);
        return true;
    case GPUL__FRAME__BODY_PROBE_BEGIN:
        describe_begin(text, n, f->probe_begin);
        return true;
    case GPUL__FRAME__BODY_PROBE_IDS:
        describe_ids(text, n, f->probe_ids);
        return true;
    case GPUL__FRAME__BODY_PROBE_CONNECT:
        snprintf(text, n, "probe_connect %s:%u", f->probe_connect->address,
                 f->probe_connect->port);
        return true;
    case GPUL__FRAME__BODY_LAUNCH:
        snprintf(text, n, "launch attempt %u", f->launch->attempt);
        return true;
    case GPUL__FRAME__BODY_STOP:
        snprintf(text, n, "stop signal %u grace %u", f->stop->signal,
                 f->stop->grace_ms);
        return true;
    case GPUL__FRAME__BODY_FINISH:
        snprintf(text, n, "finish%s",
                 f->finish->keeps_logs ? ", logs stay" : "");
        return true;
    case GPUL__FRAME__BODY_CREDIT:
        snprintf(text, n, "credit %llu", (unsigned long long)f->credit->bytes);
        return true;
    case GPUL__FRAME__BODY_SIGNAL:
        snprintf(text, n, "signal %u", f->signal->signal);
        return true;
    case GPUL__FRAME__BODY_INPUT:
        snprintf(text, n, "input %zu%s", f->input->data.len,
                 f->input->is_end ? ", end" : "");
        return true;
    default:
        return false;
    }
}

void trace_node_frame(struct cluster *c, const struct sim_link *link,
                      const Gpul__Frame *frame)
{
    char text[1024];
    if (c->is_traced && describe(text, sizeof(text), frame)) {
        cluster_note(c, "%s <- %s",
                     link == NULL ? "all" : c->nodes[link->node].name, text);
    }
}

static void trace_pairs(struct cluster *c, const Gpul__Event *e)
{
    static const char *const states[] = {
        "unknown", "ok", "slow", "lossy", "blocked", "unreachable", "congested",
    };
    for (size_t i = 0; i < e->n_pairs; i++) {
        const Gpul__PairRow *row = e->pairs[i];
        cluster_note(c, "user:   round %u%s: %s > %s %.3f, < %.3f GB/s%s%s",
                     row->round, row->is_alone ? " alone" : "", row->a, row->b,
                     row->a_to_b_gbps, row->b_to_a_gbps,
                     row->error[0] != 0 ? "; " : "", row->error);
    }
    for (size_t i = 0; i < e->n_verdicts; i++) {
        const Gpul__PairVerdict *v = e->verdicts[i];
        if (v->state != GPUL__PAIR_VERDICT__STATE__OK) {
            cluster_note(c, "user:   %s%s%s %s %s, round %u: %s", v->a,
                         v->b[0] != 0 ? " - " : "", v->b, states[v->state],
                         v->direction, v->rounds, v->text);
        }
    }
}

static void trace_links(struct cluster *c, const Gpul__Event *e)
{
    for (size_t i = 0; i < e->n_members; i++) {
        const Gpul__Member *m = e->members[i];
        cluster_note(c, "user:   %s %s %s", m->node_name, m->address,
                     m->interface);
        for (size_t k = 0; k < m->n_rejected; k++) {
            cluster_note(c, "user:     not %s", m->rejected[k]);
        }
    }
}

/* Of the many that nodes have nothing to say of, or that passed, none. */
static bool is_worth_it(const Gpul__Finding *f)
{
    bool is_plain = f->severity == GPUL__FINDING__SEVERITY__PASS ||
                    f->severity == GPUL__FINDING__SEVERITY__UNKNOWN;
    return !is_plain || strncmp(f->id, "TEST", 4) == 0 ||
           strncmp(f->id, "CLOCK", 5) == 0;
}

static void trace_findings(struct cluster *c, const Gpul__Event *e)
{
    static const char *const words[] = {"", "pass", "warn", "fail", "unknown"};
    for (size_t i = 0; i < e->n_findings; i++) {
        const Gpul__Finding *f = e->findings[i];
        if (is_worth_it(f)) {
            cluster_note(c, "user:   %s %s%s%s: %s", words[f->severity], f->id,
                         f->nodes[0] != 0 ? " " : "", f->nodes, f->text);
        }
    }
}

static void trace_event(struct cluster *c, const Gpul__Event *e)
{
    static const char *const kinds[] = {
        "none",
        "joined",
        "left",
        "refused",
        "waiting",
        "assigned",
        "testing",
        "test passed",
        "test skipped",
        "launched",
        "exited",
        "stopping",
        "retrying",
        "notice",
        "facts",
        "settings",
        "stall",
        "away",
        "back",
        "test slow",
        [GPUL__EVENT__KIND__LINKS] = "links",
        [GPUL__EVENT__KIND__LINKS_FAILED] = "links failed",
        [GPUL__EVENT__KIND__PAIRS] = "pairs",
        [GPUL__EVENT__KIND__VERDICTS] = "verdicts",
        [GPUL__EVENT__KIND__FINDINGS] = "findings",
        [GPUL__EVENT__KIND__FACTS] = "facts",
        [GPUL__EVENT__KIND__SURVEYING] = "surveying",
    };
    char count[32] = "";
    if (e->need > 0) {
        snprintf(count, sizeof(count), " %u/%u", e->have, e->need);
    }
    cluster_note(c, "user: %s%s%s%s%s%s%s%s%s", kinds[e->kind],
                 e->node_name[0] != 0 ? " " : "", e->node_name, count,
                 e->backend[0] != 0 ? " by " : "", e->backend,
                 e->is_simulated ? " SIMULATED" : "",
                 e->text[0] != 0 ? ": " : "", e->text);
    if (e->kind >= GPUL__EVENT__KIND__LINKS) {
        trace_links(c, e);
    }
    trace_findings(c, e);
    trace_pairs(c, e);
    for (size_t i = 0; i < e->n_rows; i++) {
        const Gpul__SelfTestRow *row = e->rows[i];
        cluster_note(c, "user:   %llu B: %llu ns, algbw %.3f busbw %.3f GB/s",
                     (unsigned long long)row->bytes,
                     (unsigned long long)row->median_ns, row->algbw_gbps,
                     row->busbw_gbps);
        if (row->collective != GPUL__COLLECTIVE__COLLECTIVE_NONE) {
            cluster_note(c, "user:     collective %u%s, slowest rank %u",
                         row->collective,
                         row->scope == GPUL__SCOPE__SCOPE_NODE
                             ? " within each node"
                             : "",
                         row->slowest_rank);
        }
        if (row->ceiling_gbps > 0) {
            cluster_note(c, "user:     ceiling %.3f by %s, wire %.3f GB/s",
                         row->ceiling_gbps,
                         gpul_link_name((enum gpul_link)row->ceiling_kind),
                         row->wire_gbps);
        }
    }
}

static void trace_end(struct cluster *c, const Gpul__JobEnd *end)
{
    static const char *const doubles[] = {
        [GPUL__JOB_END__DOUBLES__NONE] = "",
        [GPUL__JOB_END__DOUBLES__SOME] = " on doubles",
        [GPUL__JOB_END__DOUBLES__UNKNOWN] = " perhaps on doubles",
    };
    cluster_note(c, "user: end %u %s%s: %s", end->exit_code, end->reason,
                 doubles[end->doubles], end->text);
    for (size_t i = 0; i < end->n_unclean; i++) {
        cluster_note(c, "user:   unclean %s", end->unclean[i]);
    }
    for (size_t i = 0; i < end->n_exits; i++) {
        cluster_note(c, "user:   rank %u code %u signal %u",
                     end->exits[i]->rank, end->exits[i]->code,
                     end->exits[i]->signal);
    }
    if (end->stopped_count > 0) {
        cluster_note(c, "user:   stopped %u: %s", end->stopped_count,
                     end->stopped_ranks);
    }
    if (end->stranger_count > 0) {
        cluster_note(c, "user:   strangers %" PRIu64 ": %s",
                     end->stranger_count, end->strangers);
    }
}

void trace_operator_frame(struct cluster *c, const Gpul__Frame *frame)
{
    if (!c->is_traced) {
        return;
    }
    switch (frame->body_case) {
    case GPUL__FRAME__BODY_EVENT:
        trace_event(c, frame->event);
        return;
    case GPUL__FRAME__BODY_JOB_END:
        trace_end(c, frame->job_end);
        return;
    case GPUL__FRAME__BODY_OUTPUT:
        cluster_note(c, "user: output of rank %u, %zu bytes from node %u",
                     frame->output->rank, frame->output->data.len,
                     frame->output->node_rank);
        return;
    case GPUL__FRAME__BODY_INPUT_CREDIT:
        cluster_note(c, "user: may send %llu",
                     (unsigned long long)frame->input_credit->bytes);
        return;
    case GPUL__FRAME__BODY_ENV_REPORT:
        cluster_note(c, "user: report of rank %u%s", frame->env_report->rank,
                     frame->env_report->is_last ? ", last" : "");
        return;
    default:
        return;
    }
}
