/* SPDX-License-Identifier: Apache-2.0 */
#include "proto/crosscheck.h"

#include <inttypes.h>
#include <stdbool.h>
#include <string.h>

#include "gpulaunch.pb-c.h"
#include "proto/limits.h"

int gpul_check_hello(const ProtobufCMessage *message, struct gpul_error *err)
{
    const Gpul__Hello *m = (const Gpul__Hello *)message;
    if (m->protocol_min > m->protocol_max) {
        return gpul_fail(err, GPUL_EPROTO,
                         "protocol_min %u is over protocol_max %u",
                         m->protocol_min, m->protocol_max);
    }
    return 0;
}

int gpul_check_welcome(const ProtobufCMessage *message, struct gpul_error *err)
{
    const Gpul__Welcome *m = (const Gpul__Welcome *)message;
    if (m->lease_ms <= m->heartbeat_ms) {
        return gpul_fail(err, GPUL_EPROTO,
                         "lease_ms %u is not over heartbeat_ms %u", m->lease_ms,
                         m->heartbeat_ms);
    }
    return 0;
}

int gpul_check_self_test(const ProtobufCMessage *message,
                         struct gpul_error *err)
{
    const Gpul__SelfTest *m = (const Gpul__SelfTest *)message;
    bool has_deadlines = m->listen_deadline_ms > 0 && m->run_deadline_ms > 0;
    if (m->level != GPUL__SELF_TEST__LEVEL__OFF && !has_deadlines) {
        return gpul_fail(err, GPUL_EPROTO, "has no deadlines");
    }
    return 0;
}

int gpul_check_variable(const ProtobufCMessage *message, struct gpul_error *err)
{
    const Gpul__Variable *m = (const Gpul__Variable *)message;
    for (size_t i = 0; i < m->name.len; i++) {
        if (m->name.data[i] == '=') {
            return gpul_fail(err, GPUL_EPROTO, "name has an equals sign");
        }
    }
    return 0;
}

int gpul_check_job(const ProtobufCMessage *message, struct gpul_error *err)
{
    const Gpul__Job *m = (const Gpul__Job *)message;
    if (m->log_dir[0] != 0 && m->log_dir[0] != '/') {
        return gpul_fail(err, GPUL_EPROTO, "log_dir is not absolute");
    }
    if (m->warning_signal != 0 && m->warning_ms >= m->timeout_ms) {
        return gpul_fail(err, GPUL_EPROTO,
                         "warning_ms %u is not within timeout_ms %u",
                         m->warning_ms, m->timeout_ms);
    }
    if ((m->mode == GPUL__JOB__MODE__CHECK) != (m->check != NULL)) {
        return gpul_fail(err, GPUL_EPROTO,
                         m->check != NULL ? "has a check that is not its mode"
                                          : "is a check that says nothing");
    }
    return 0;
}

int gpul_check_check(const ProtobufCMessage *message, struct gpul_error *err)
{
    const Gpul__Check *m = (const Gpul__Check *)message;
    if (m->data_dir[0] != 0 && m->data_dir[0] != '/') {
        return gpul_fail(err, GPUL_EPROTO, "data_dir is not absolute");
    }
    return 0;
}

int gpul_check_fact(const ProtobufCMessage *message, struct gpul_error *err)
{
    const Gpul__Fact *m = (const Gpul__Fact *)message;
    if (m->value[0] != 0 && m->unknown[0] != 0) {
        return gpul_fail(err, GPUL_EPROTO, "%s has a value, and is unknown",
                         m->key);
    }
    return 0;
}

int gpul_check_assign(const ProtobufCMessage *message, struct gpul_error *err)
{
    const Gpul__Assign *m = (const Gpul__Assign *)message;
    if (m->node_rank >= m->node_count) {
        return gpul_fail(err, GPUL_EPROTO, "node_rank %u is not below %u",
                         m->node_rank, m->node_count);
    }
    if (m->rank_count > m->world_size ||
        m->first_rank > m->world_size - m->rank_count) {
        return gpul_fail(err, GPUL_EPROTO, "ranks %u+%u are not within %u",
                         m->first_rank, m->rank_count, m->world_size);
    }
    if (m->host_node_index >= m->host_node_count ||
        m->host_node_count > m->node_count || m->host_count > m->node_count) {
        return gpul_fail(err, GPUL_EPROTO, "the host's counts do not add up");
    }
    return 0;
}

int gpul_check_ready(const ProtobufCMessage *message, struct gpul_error *err)
{
    const Gpul__Ready *m = (const Gpul__Ready *)message;
    if (m->error[0] == 0 && m->port_base == 0) {
        return gpul_fail(err, GPUL_EPROTO, "has neither a port nor an error");
    }
    return 0;
}

/* Every node's last port: one for each rank and the extra ones. */
static int check_roster_ports(const Gpul__Roster *m, struct gpul_error *err)
{
    for (size_t i = 0; i < m->node_count; i++) {
        uint32_t base = m->port_bases[m->n_port_bases == 1 ? 0 : i];
        uint32_t ranks = m->rank_counts[m->n_rank_counts == 1 ? 0 : i];
        if (base + ranks + GPUL_EXTRA_PORTS - 1 > GPUL_PORT_MAX) {
            return gpul_fail(err, GPUL_EPROTO,
                             "%u ranks have no room from port %u on", ranks,
                             base);
        }
    }
    return 0;
}

/* Of what is told of all nodes. */
static int check_page(uint32_t page, uint32_t page_count, uint32_t first_node,
                      uint32_t node_count, struct gpul_error *err)
{
    if (page >= page_count) {
        return gpul_fail(err, GPUL_EPROTO, "page %u is not below page_count %u",
                         page, page_count);
    }
    if (first_node > GPUL_NODES_MAX - node_count) {
        return gpul_fail(err, GPUL_EPROTO, "nodes %u+%u are over the limit",
                         first_node, node_count);
    }
    return 0;
}

int gpul_check_roster(const ProtobufCMessage *message, struct gpul_error *err)
{
    const Gpul__Roster *m = (const Gpul__Roster *)message;
    int rc =
        check_page(m->page, m->page_count, m->first_node, m->node_count, err);
    if (rc != 0) {
        return rc;
    }
    if ((m->n_port_bases != 1 && m->n_port_bases != m->node_count) ||
        (m->n_rank_counts != 1 && m->n_rank_counts != m->node_count)) {
        return gpul_fail(err, GPUL_EPROTO,
                         "%zu port_bases and %zu rank_counts for %u nodes",
                         m->n_port_bases, m->n_rank_counts, m->node_count);
    }
    return check_roster_ports(m, err);
}

int gpul_check_probe_start(const ProtobufCMessage *message,
                           struct gpul_error *err)
{
    const Gpul__ProbeStart *m = (const Gpul__ProbeStart *)message;
    if (m->node_rank >= m->node_count) {
        return gpul_fail(err, GPUL_EPROTO, "node_rank %u is not below %u",
                         m->node_rank, m->node_count);
    }
    return 0;
}

int gpul_check_probe_begin(const ProtobufCMessage *message,
                           struct gpul_error *err)
{
    const Gpul__ProbeBegin *m = (const Gpul__ProbeBegin *)message;
    if (m->first_rank >= m->world_size ||
        m->rank_count > m->world_size - m->first_rank) {
        return gpul_fail(err, GPUL_EPROTO,
                         "ranks %u and %u more are not within a world of %u",
                         m->first_rank, m->rank_count, m->world_size);
    }
    if (m->id_count > m->world_size) {
        return gpul_fail(err, GPUL_EPROTO, "has %u ids for %u ranks",
                         m->id_count, m->world_size);
    }
    if (m->node_rank_count > 0 &&
        (m->first_rank < m->node_first_rank ||
         m->first_rank - m->node_first_rank >= m->node_rank_count)) {
        return gpul_fail(err, GPUL_EPROTO,
                         "rank %u is none of the %u from %u on of its node",
                         m->first_rank, m->node_rank_count, m->node_first_rank);
    }
    return 0;
}

int gpul_check_leave(const ProtobufCMessage *message, struct gpul_error *err)
{
    const Gpul__Leave *m = (const Gpul__Leave *)message;
    if (m->is_clean && m->n_unclean > 0) {
        return gpul_fail(err, GPUL_EPROTO, "is clean, and has %zu left",
                         m->n_unclean);
    }
    return 0;
}

int gpul_check_hang(const ProtobufCMessage *message, struct gpul_error *err)
{
    const Gpul__Hang *m = (const Gpul__Hang *)message;
    if ((m->watch == GPUL__HANG__WATCH__GIVEN) != (m->limit_ms > 0)) {
        return gpul_fail(err, GPUL_EPROTO,
                         m->limit_ms > 0 ? "has a limit that is not given"
                                         : "has no limit, and it is given");
    }
    return 0;
}

int gpul_check_input_target(const ProtobufCMessage *message,
                            struct gpul_error *err)
{
    const Gpul__InputTarget *m = (const Gpul__InputTarget *)message;
    if (m->is_all && m->rank != 0) {
        return gpul_fail(err, GPUL_EPROTO, "is for all, and for rank %u",
                         m->rank);
    }
    return 0;
}

int gpul_check_input(const ProtobufCMessage *message, struct gpul_error *err)
{
    const Gpul__Input *m = (const Gpul__Input *)message;
    if (m->data.len == 0 && !m->is_end) {
        return gpul_fail(err, GPUL_EPROTO, "has neither data nor an end");
    }
    return 0;
}

int gpul_check_input_credit(const ProtobufCMessage *message,
                            struct gpul_error *err)
{
    const Gpul__InputCredit *m = (const Gpul__InputCredit *)message;
    if (m->bytes == 0 && !m->is_closed) {
        return gpul_fail(err, GPUL_EPROTO, "says nothing");
    }
    return 0;
}

static int check_evidence(Gpul__Exit *const *exits, size_t n,
                          struct gpul_error *err)
{
    size_t count = 0;
    for (size_t i = 0; i < n; i++) {
        count += exits[i]->evidence != NULL ? 1 : 0;
    }
    if (count > GPUL_EVIDENCES_MAX) {
        return gpul_fail(err, GPUL_EPROTO,
                         "has the evidence of %zu ranks, at most %u", count,
                         GPUL_EVIDENCES_MAX);
    }
    return 0;
}

int gpul_check_exits(const ProtobufCMessage *message, struct gpul_error *err)
{
    const Gpul__Exits *m = (const Gpul__Exits *)message;
    return check_evidence(m->exits, m->n_exits, err);
}

int gpul_check_job_end(const ProtobufCMessage *message, struct gpul_error *err)
{
    const Gpul__JobEnd *m = (const Gpul__JobEnd *)message;
    return check_evidence(m->exits, m->n_exits, err);
}

/* ---- addresses ----------------------------------------------------------- */

/* Candidates come first; each has a port and no reason against it. */
int gpul_check_link_listening(const ProtobufCMessage *message,
                              struct gpul_error *err)
{
    const Gpul__LinkListening *m = (const Gpul__LinkListening *)message;
    size_t candidates = 0;
    for (size_t i = 0; i < m->n_interfaces; i++) {
        const Gpul__LinkInterface *interface = m->interfaces[i];
        bool is_candidate = interface->rejection[0] == 0;
        if (is_candidate != (interface->port != 0)) {
            return gpul_fail(err, GPUL_EPROTO, "%s",
                             is_candidate ? "a candidate without a port"
                                          : "a port of no candidate");
        }
        if (is_candidate && candidates++ != i) {
            return gpul_fail(err, GPUL_EPROTO, "a candidate behind others");
        }
    }
    if (candidates > GPUL_LINKS_MAX) {
        return gpul_fail(err, GPUL_EPROTO, "%zu candidates, at most %u",
                         candidates, GPUL_LINKS_MAX);
    }
    if ((candidates == 0) != (m->error[0] != 0)) {
        return gpul_fail(err, GPUL_EPROTO, "has %zu candidates and %s error",
                         candidates, m->error[0] != 0 ? "an" : "no");
    }
    return 0;
}

int gpul_check_link_peers(const ProtobufCMessage *message,
                          struct gpul_error *err)
{
    const Gpul__LinkPeers *m = (const Gpul__LinkPeers *)message;
    size_t total = 0;
    int rc =
        check_page(m->page, m->page_count, m->first_node, m->node_count, err);
    if (rc != 0) {
        return rc;
    }
    if (m->n_counts != 1 && m->n_counts != m->node_count) {
        return gpul_fail(err, GPUL_EPROTO, "%zu counts for %u nodes",
                         m->n_counts, m->node_count);
    }
    for (size_t i = 0; i < m->node_count; i++) {
        total += m->counts[m->n_counts == 1 ? 0 : i];
    }
    if (m->n_ports != total) {
        return gpul_fail(err, GPUL_EPROTO, "%zu ports for %zu endpoints",
                         m->n_ports, total);
    }
    return 0;
}

int gpul_check_link_report(const ProtobufCMessage *message,
                           struct gpul_error *err)
{
    const Gpul__LinkReport *m = (const Gpul__LinkReport *)message;
    if (m->failure_count < m->n_failures) {
        return gpul_fail(err, GPUL_EPROTO, "%zu failures of %u", m->n_failures,
                         m->failure_count);
    }
    if ((m->missed.len == 0) != (m->failure_count == 0)) {
        return gpul_fail(err, GPUL_EPROTO,
                         "%u failures, and %zu bytes of what was missed",
                         m->failure_count, m->missed.len);
    }
    return 0;
}

int gpul_check_pair_start(const ProtobufCMessage *message,
                          struct gpul_error *err)
{
    const Gpul__PairStart *m = (const Gpul__PairStart *)message;
    if (m->node_rank >= m->node_count) {
        return gpul_fail(err, GPUL_EPROTO, "node_rank %u is not below %u",
                         m->node_rank, m->node_count);
    }
    return 0;
}

int gpul_check_pair_listening(const ProtobufCMessage *message,
                              struct gpul_error *err)
{
    const Gpul__PairListening *m = (const Gpul__PairListening *)message;
    if ((m->n_ports == 0) != (m->error[0] != 0)) {
        return gpul_fail(err, GPUL_EPROTO, "has %zu ports and %s error",
                         m->n_ports, m->error[0] != 0 ? "an" : "no");
    }
    return 0;
}

int gpul_check_trial_way(const ProtobufCMessage *message,
                         struct gpul_error *err)
{
    const Gpul__TrialWay *m = (const Gpul__TrialWay *)message;
    bool is_good = m->failure == GPUL__TRIAL_WAY__FAILURE__NONE;
    if (is_good == (m->text[0] != 0)) {
        return gpul_fail(err, GPUL_EPROTO, "%s",
                         is_good ? "has a text and no failure"
                                 : "has a failure and no text");
    }
    if ((m->bytes == 0) != (m->ns == 0)) {
        return gpul_fail(err, GPUL_EPROTO,
                         "has bytes without a time, or a "
                         "time without bytes");
    }
    if (m->retransmits > m->segments || m->lone_retransmits > m->retransmits) {
        return gpul_fail(err, GPUL_EPROTO,
                         "%" PRIu64 " lone retransmits of %" PRIu64
                         " in %" PRIu64 " segments",
                         m->lone_retransmits, m->retransmits, m->segments);
    }
    return 0;
}
