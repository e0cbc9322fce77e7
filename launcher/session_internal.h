/* SPDX-License-Identifier: Apache-2.0
 *
 * The state of a session, shared by the files that are its parts: session.c
 * (start), session_prepare.c, session_desk.c (what the coordinator says),
 * session_input.c, session_signals.c, session_end.c (children, deadlines),
 * session_wait.c and session_report.c. Edge.
 */
#ifndef LAUNCHER_SESSION_INTERNAL_H
#define LAUNCHER_SESSION_INTERNAL_H

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#include "common/buf.h"
#include "launcher/checkbook.h"
#include "launcher/console.h"
#include "launcher/ending.h"
#include "launcher/envbook.h"
#include "launcher/inlet.h"
#include "launcher/invite.h"
#include "launcher/logdir.h"
#include "launcher/patience.h"
#include "launcher/plan.h"
#include "launcher/progress.h"
#include "launcher/reach.h"
#include "launcher/record.h"
#include "launcher/signalplan.h"
#include "proto/secret.h"
#include "proto/transport.h"

enum {
    SESSION_JOB_ID_BYTES = GPUL_JOB_ID_BYTES_MAX + 1,
    SESSION_EXIT_LOST = 75, /* coordinator_lost */
    SESSION_READERS = 2,
};

struct session {
    const struct plan *plan;
    char job_id[SESSION_JOB_ID_BYTES];
    char *log_root; /* owned; the job's logs are in <log_root>/<job_id> */
    char *log_dir;  /* owned */
    struct logdir_made made;
    struct gpul_buf job_frame;
    struct gpul_secret secret; /* of the control channel, if it is_sealed */
    bool is_sealed;
    struct invite invite; /* of nodes that join */

    uv_loop_t loop;
    uv_signal_t signals[SIGNALPLAN_MAX];
    size_t signal_count;
    uv_signal_t *suspend; /* of SIGTSTP */
    uv_timer_t timer;
    uv_prepare_t prepare; /* sends the credits of one turn of the loop */
    bool has_loop;

    struct console *console;
    struct inlet *inlet; /* NULL before there is credit */
    struct progress progress;
    struct reach reach;
    struct listening listening;  /* of the coordinator */
    struct gpul_transport *desk; /* NULL once closed */
    struct envbook envbook;
    struct record record;
    struct checkbook checkbook;
    struct ending ending;

    uint64_t *credits; /* by node rank, owed to the coordinator */
    bool has_credits;
    int stop_signal;    /* first signal that asked us to end, 0: none */
    int lost_output;    /* errno that ended standard output, 0: none */
    int lost_input;     /* and standard input */
    bool is_suspending; /* once the coordinator has been told */
    bool is_loss_late;  /* by then the job was over */
    bool is_drain_cut;  /* the user would not wait for slow output */
    struct patience readers[SESSION_READERS]; /* by console_stream */
    bool are_ranks_over;                      /* all have ended */
    bool is_wait_told;
    bool has_lost_record; /* of a check: a file could not be written */
    bool is_reported;
    bool is_closing;
};

/* session_prepare.c: all that can be found out before anything is started.
 * Errors are for the user. */
int session_prepare(struct session *s, struct gpul_error *err);

/* session_desk.c */
int session_open_desk(struct session *s, int fd, struct gpul_error *err);
void session_cancel(struct session *s, int number, bool is_immediate);
void session_node_gone(struct session *s, uint32_t index,
                       Gpul__NodeGone__Why why, const char *words);
void session_credit(struct session *s, uint32_t node_rank, uint64_t bytes);
void session_send_credits(struct session *s);

/* session_input.c */
void session_input_credit(struct session *s, const Gpul__InputCredit *credit);
void session_input_look_again(struct session *s);

/* session_signals.c. Watching returns an error of libuv. */
int session_watch_signals(struct session *s);
void session_suspend_if_told(struct session *s);
void session_close_signals(struct session *s);

/* session_end.c */
void session_step(struct session *s, enum ending_event event);
int session_watch(struct session *s, struct gpul_error *err);
void session_reap(struct session *s);
void session_nodes_changed(struct session *s);
void session_check_output(struct session *s);
void session_output_moved(struct session *s);
void session_judge_coordinator(struct session *s);

/* session_wait.c. A look gives up on readers, or tells of the wait; it is due
 * at the least deadline of s->readers. */
void session_init_wait(struct session *s);
void session_look_at_readers(struct session *s);

/* session_report.c */
void session_report(struct session *s);
void session_say_loss(struct session *s);

/* session_check.c */
void session_report_check(struct session *s);
int session_exit_code(const struct session *s);

/* Record an end that no coordinator told. */
void session_end_by_ourselves(struct session *s, uint32_t exit_code,
                              const char *reason, const char *text);

#endif
