/* SPDX-License-Identifier: Apache-2.0
 *
 * What the front end asked for, checked as a whole: the part of a Job that
 * the coordinator acts on, and the bytes that go on to every node. Pure.
 */
#ifndef COORDINATOR_JOB_H
#define COORDINATOR_JOB_H

#include <stdbool.h>
#include <stdint.h>

#include "common/error.h"
#include "common/rolemap.h"
#include "proto/limits.h"
#include "proto/message.h"

struct job {
    char job_id[GPUL_JOB_ID_BYTES_MAX + 1];
    bool is_env;   /* mode ENV: report, start nothing */
    bool is_check; /* mode CHECK: judge, start nothing */
    struct {
        bool is_strict;
        uint32_t survey_deadline_ms;
    } check;
    uint32_t node_count;
    uint32_t ranks_per_node; /* 0: one per GPU of each node */
    uint32_t join_timeout_ms;
    uint32_t timeout_ms; /* 0: none */
    uint32_t grace_ms;
    uint32_t warning_signal; /* 0: none */
    uint32_t warning_ms;     /* below timeout_ms */
    Gpul__Hang__Watch hang;  /* of training */
    bool hang_stops_job;
    bool has_input_rank;
    uint32_t input_rank; /* whose standard input is the front end's */
    Gpul__SelfTest__Level self_test; /* OFF in mode ENV */
    uint32_t listen_deadline_ms;
    uint32_t run_deadline_ms;
    Gpul__SelfTest__Backend backend;
    Gpul__Sweep sweep;
    char *nccl_library;   /* owned; the user's choice, "" without one */
    bool wants_interface; /* the user has named some */
    bool wants_metrics;
    uint32_t report_rank;
    bool reports_all_ranks;
    bool forwards_output;
    bool keeps_logs;
    bool has_roles;
    struct gpul_rolemap roles;
    uint64_t window_bytes; /* of Output that a node may have on the way */
    struct gpul_buf frame; /* the Job as it goes to the nodes, encoded */
};

/* Read a decoded Job, and encode it for the nodes of generation 1. On
 * failure `job` is empty. Errors: GPUL_EINVAL with a sentence for the user,
 * GPUL_ELIMIT (command line and variables too long), GPUL_ENOMEM. */
int job_init(struct job *job, const Gpul__Job *message, uint32_t epoch,
             struct gpul_error *err);

/* An all-zero job may be released too. */
void job_release(struct job *job);

/* Who plays which part in a world of this size. Errors: GPUL_EINVAL when the
 * roles do not add up to it, or the reported rank is not in it. */
int job_check_world(const struct job *job, struct gpul_rolemap *roles,
                    uint32_t world_size, struct gpul_error *err);

#endif
