/* SPDX-License-Identifier: Apache-2.0 */
#include "coordinator/job.h"

#include <stdio.h>
#include <stdlib.h>

#include "common/units.h"
#include "coordinator/text.h"

static uint64_t window_bytes(uint32_t node_count)
{
    uint64_t share = GPUL_OUTPUT_WINDOW_TOTAL_BYTES / node_count;
    if (share > GPUL_OUTPUT_WINDOW_BYTES_MAX) {
        return GPUL_OUTPUT_WINDOW_BYTES_MAX;
    }
    return share < GPUL_OUTPUT_WINDOW_BYTES_MIN ? GPUL_OUTPUT_WINDOW_BYTES_MIN
                                                : share;
}

static int check_size(const Gpul__Job *m, struct gpul_error *err)
{
    if (m->node_count == 0 || m->node_count > GPUL_NODES_MAX) {
        return gpul_fail(err, GPUL_EINVAL,
                         "%u nodes: the number must be from 1 to %u",
                         m->node_count, GPUL_NODES_MAX);
    }
    if (m->ranks_per_node > GPUL_RANKS_PER_NODE_MAX) {
        return gpul_fail(err, GPUL_EINVAL,
                         "%u ranks on a node: at most %u are possible",
                         m->ranks_per_node, GPUL_RANKS_PER_NODE_MAX);
    }
    return 0;
}

static int check_mode(const Gpul__Job *m, struct gpul_error *err)
{
    bool is_known = m->mode == GPUL__JOB__MODE__RUN ||
                    m->mode == GPUL__JOB__MODE__ENV ||
                    (m->mode == GPUL__JOB__MODE__CHECK && m->check != NULL);
    if (!is_known) {
        return gpul_fail(err, GPUL_EINVAL, "the job has no known mode");
    }
    if (m->join_timeout_ms == 0) {
        return gpul_fail(err, GPUL_EINVAL,
                         "a join timeout of 0 leaves no time to join");
    }
    const Gpul__SelfTest *test = m->self_test;
    if (test != NULL && test->level != GPUL__SELF_TEST__LEVEL__OFF &&
        (test->listen_deadline_ms == 0 || test->run_deadline_ms == 0)) {
        return gpul_fail(err, GPUL_EINVAL, "the self-test has a deadline of 0");
    }
    return 0;
}

static int read_roles(struct job *job, const Gpul__Job *m,
                      struct gpul_error *err)
{
    job->has_roles = m->n_roles > 0;
    for (size_t i = 0; i < m->n_roles; i++) {
        int rc = gpul_rolemap_add(&job->roles, m->roles[i]->name,
                                  m->roles[i]->count, err);
        if (rc != 0) {
            return rc;
        }
    }
    return job->has_roles ? gpul_rolemap_check(&job->roles, err) : 0;
}

static int read_self_test(struct job *job, const Gpul__SelfTest *m,
                          struct gpul_error *err)
{
    gpul__sweep__init(&job->sweep);
    job->self_test = m->level;
    job->listen_deadline_ms = m->listen_deadline_ms;
    job->run_deadline_ms = m->run_deadline_ms;
    job->backend = m->backend;
    if (m->sweep != NULL) {
        job->sweep = *m->sweep;
    }
    job->nccl_library = text_copy(m->nccl_library);
    return job->nccl_library != NULL
               ? 0
               : gpul_fail(err, GPUL_ENOMEM, "out of memory for the job");
}

static void read_fields(struct job *job, const Gpul__Job *m)
{
    snprintf(job->job_id, sizeof(job->job_id), "%s", m->job_id);
    job->is_env = m->mode == GPUL__JOB__MODE__ENV;
    job->is_check = m->mode == GPUL__JOB__MODE__CHECK;
    if (job->is_check) {
        job->check.is_strict = m->check->is_strict;
        job->check.survey_deadline_ms = m->check->survey_deadline_ms;
    }
    job->node_count = m->node_count;
    job->ranks_per_node = m->ranks_per_node;
    job->join_timeout_ms = m->join_timeout_ms;
    job->timeout_ms = m->timeout_ms;
    job->grace_ms = m->grace_ms;
    job->warning_signal = m->warning_signal;
    job->warning_ms = m->warning_ms;
    job->hang = m->hang != NULL ? m->hang->watch : GPUL__HANG__WATCH__LEARNED;
    job->hang_stops_job = m->hang != NULL && m->hang->stops_job;
    job->has_input_rank = m->input_target != NULL && !m->input_target->is_all;
    job->input_rank = job->has_input_rank ? m->input_target->rank : 0;
    job->wants_interface = m->interface[0] != 0;
    job->wants_metrics = m->wants_metrics;
    job->report_rank = m->report_rank;
    job->reports_all_ranks = m->report_all_ranks;
    job->forwards_output = m->forwards_output;
    job->keeps_logs = m->keeps_logs;
    job->window_bytes = window_bytes(m->node_count);
}

static int encode(struct job *job, const Gpul__Job *m, uint32_t epoch,
                  struct gpul_error *err)
{
    Gpul__Job copy = *m;
    Gpul__Frame frame = GPUL__FRAME__INIT;
    frame.epoch = epoch;
    frame.generation = 1;
    frame.body_case = GPUL__FRAME__BODY_JOB;
    frame.job = &copy;
    return gpul_message_encode(&job->frame, &frame, err);
}

int job_init(struct job *job, const Gpul__Job *message, uint32_t epoch,
             struct gpul_error *err)
{
    *job = (struct job){0};
    gpul_buf_init(&job->frame, GPUL_JOB_BYTES_MAX + GPUL_FRAME_PREFIX_BYTES);
    int rc = check_size(message, err);
    if (rc == 0) {
        rc = check_mode(message, err);
    }
    if (rc == 0) {
        read_fields(job, message);
        rc = read_roles(job, message, err);
    }
    if (rc == 0 && message->self_test != NULL && !job->is_env) {
        rc = read_self_test(job, message->self_test, err);
    }
    if (rc == 0) {
        rc = encode(job, message, epoch, err);
    }
    if (rc != 0) {
        job_release(job);
    }
    return rc;
}

void job_release(struct job *job)
{
    gpul_buf_release(&job->frame);
    free(job->nccl_library);
    *job = (struct job){0};
}

int job_check_world(const struct job *job, struct gpul_rolemap *roles,
                    uint32_t world_size, struct gpul_error *err)
{
    if (job->has_roles) {
        *roles = job->roles;
    } else {
        gpul_rolemap_all_workers(roles, world_size);
    }
    uint32_t total = gpul_rolemap_total(roles);
    if (total != world_size) {
        return gpul_fail(err, GPUL_EINVAL,
                         "the roles are for %u rank%s and the nodes have %u; "
                         "make --roles add up to %u",
                         total, gpul_plural(total), world_size, world_size);
    }
    if (job->is_env && !job->reports_all_ranks &&
        job->report_rank >= world_size) {
        return world_size == 1
                   ? gpul_fail(err, GPUL_EINVAL,
                               "rank %u was asked for and the only one is 0",
                               job->report_rank)
                   : gpul_fail(err, GPUL_EINVAL,
                               "rank %u was asked for and the ranks are 0 to "
                               "%u",
                               job->report_rank, world_size - 1);
    }
    if (job->has_input_rank && job->input_rank >= world_size) {
        return gpul_fail(err, GPUL_EINVAL,
                         "standard input is for rank %u and the ranks are 0 "
                         "to %u; change --stdin",
                         job->input_rank, world_size - 1);
    }
    return 0;
}
