/* SPDX-License-Identifier: Apache-2.0
 *
 * The front end's side of the operator channel.
 */
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "common/clock.h"
#include "launcher/session.h"
#include "launcher/session_internal.h"
#include "proto/text.h"

static enum console_when when_of(enum plan_choice choice)
{
    return choice == PLAN_CHOICE_AUTO  ? CONSOLE_AUTO
           : choice == PLAN_CHOICE_YES ? CONSOLE_ALWAYS
                                       : CONSOLE_NEVER;
}

static void configure_console(struct session *s)
{
    const struct plan *plan = s->plan;
    uint32_t world = record_world_size(&s->record);
    struct console_options options = {
        .labels = when_of(plan->label),
        .folding = when_of(plan->fold),
        .has_stamps = plan->has_timestamps,
        .sends_stdout_to_stderr = plan->is_json,
        .rank_count_max = world,
        .shown = plan->has_shown_ranks ? &plan->shown_ranks : NULL,
    };
    console_configure(s->console, &options);
    if (options.shown != NULL &&
        gpul_rankset_size_below(options.shown, world) == 0) {
        progress_note(&s->progress,
                      "%s %.80s: the job has %" PRIu32 " ranks, 0 to %" PRIu32
                      "; the output of none is shown",
                      plan->settings[OPTION_RANKS].spelling,
                      plan->settings[OPTION_RANKS].value, world, world - 1);
    }
}

static void on_event(struct session *s, const Gpul__Event *event)
{
    uint64_t now_ms = gpul_clock_ms();
    record_event(&s->record, event, now_ms);
    checkbook_event(&s->checkbook, event);
    if (event->kind == GPUL__EVENT__KIND__ASSIGNED) {
        configure_console(s);
    }
    if (event->kind == GPUL__EVENT__KIND__RETRYING) {
        console_finish_lines(s->console);
        session_check_output(s);
    }
    s->are_ranks_over |= event->kind == GPUL__EVENT__KIND__RANK_EXITED &&
                         event->have == event->need;
    progress_event(&s->progress, event, now_ms);
    session_step(s, ENDING_TICK);
}

static void on_job_end(struct session *s, const Gpul__JobEnd *end)
{
    console_finish_lines(s->console);
    console_live(s->console, NULL, 0);
    int rc = record_end(&s->record, end, gpul_clock_ms());
    if (rc != 0) { /* too large to be kept, maybe; this is not */
        session_end_by_ourselves(s, SESSION_EXIT_INTERNAL, "internal",
                                 "out of memory for the end of the job");
    }
    session_check_output(s);
    session_step(s, rc == 0 ? ENDING_JOB_END : ENDING_DESK_LOST);
}

static void on_env_report(struct session *s, const Gpul__EnvReport *report)
{
    struct gpul_error err = {0};
    if (envbook_add(&s->envbook, report, &err) == 0) {
        return;
    }
    session_end_by_ourselves(s, SESSION_EXIT_INTERNAL, "internal", err.text);
    session_cancel(s, SIGTERM, true);
}

static void on_message(void *arg, const Gpul__Frame *frame)
{
    struct session *s = arg;
    switch (frame->body_case) {
    case GPUL__FRAME__BODY_EVENT:
        on_event(s, frame->event);
        break;
    case GPUL__FRAME__BODY_OUTPUT:
        console_output(s->console, frame->output);
        session_check_output(s);
        break;
    case GPUL__FRAME__BODY_INPUT_CREDIT:
        session_input_credit(s, frame->input_credit);
        break;
    case GPUL__FRAME__BODY_NOTICE: {
        Gpul__Event event = GPUL__EVENT__INIT;
        event.kind = GPUL__EVENT__KIND__NOTICE;
        event.text = frame->notice->text;
        on_event(s, &event);
        break;
    }
    case GPUL__FRAME__BODY_ENV_REPORT:
        on_env_report(s, frame->env_report);
        break;
    case GPUL__FRAME__BODY_JOB_END:
        on_job_end(s, frame->job_end);
        break;
    default: /* message.c lets nothing else pass from a coordinator */
        break;
    }
}

static void on_closed(void *arg, const struct gpul_error *why)
{
    struct session *s = arg;
    s->desk = NULL;
    if (s->is_closing) {
        return;
    }
    if (why != NULL && why->status == GPUL_ENOMEM && s->record.end == NULL) {
        session_end_by_ourselves(s, SESSION_EXIT_INTERNAL, "internal",
                                 why->text);
    } else if (why != NULL && why->status != GPUL_ECLOSED &&
               s->record.end == NULL) {
        session_end_by_ourselves(s, SESSION_EXIT_LOST, "coordinator_lost",
                                 why->text);
    }
    session_judge_coordinator(s);
    session_step(s, ENDING_DESK_LOST);
}

int session_open_desk(struct session *s, int fd, struct gpul_error *err)
{
    static const struct gpul_transport_handlers handlers = {
        .on_message = on_message,
        .on_closed = on_closed,
    };
    int rc = gpul_transport_open(&s->desk, &s->loop, fd, GPUL_PEER_DESK,
                                 &handlers, s, err);
    if (rc != 0) {
        return rc;
    }
    rc = gpul_transport_send_bytes(s->desk, s->job_frame.data,
                                   s->job_frame.used, err);
    /* A coordinator that has ended already: the loop learns how. */
    return rc == GPUL_ECLOSED ? 0 : rc;
}

void session_cancel(struct session *s, int number, bool is_immediate)
{
    Gpul__Frame frame = GPUL__FRAME__INIT;
    Gpul__Cancel cancel = GPUL__CANCEL__INIT;
    console_hasten(s->console);
    cancel.signal = (uint32_t)number;
    cancel.is_immediate = is_immediate;
    frame.body_case = GPUL__FRAME__BODY_CANCEL;
    frame.cancel = &cancel;
    if (s->desk != NULL) {
        gpul_transport_send(s->desk, &frame, NULL);
    }
}

void session_node_gone(struct session *s, uint32_t index,
                       Gpul__NodeGone__Why why, const char *words)
{
    char text[GPUL_TEXT_BYTES_MAX + 1];
    Gpul__Frame frame = GPUL__FRAME__INIT;
    Gpul__NodeGone gone = GPUL__NODE_GONE__INIT;
    snprintf(text, sizeof(text), "%s", words);
    gpul_text_clean_line(text, sizeof(text) - 1); /* it may be cut */
    gone.node_name = s->plan->nodes.list[index].name;
    gone.text = text;
    gone.why = why;
    frame.body_case = GPUL__FRAME__BODY_NODE_GONE;
    frame.node_gone = &gone;
    if (s->desk != NULL) {
        gpul_transport_send(s->desk, &frame, NULL);
    }
}

void session_credit(struct session *s, uint32_t node_rank, uint64_t bytes)
{
    if (node_rank >= s->plan->node_count) {
        return;
    }
    s->credits[node_rank] += bytes;
    s->has_credits = true;
}

void session_send_credits(struct session *s)
{
    if (!s->has_credits) {
        return;
    }
    s->has_credits = false;
    for (uint32_t i = 0; i < s->plan->node_count; i++) {
        if (s->credits[i] == 0) {
            continue;
        }
        Gpul__Frame frame = GPUL__FRAME__INIT;
        Gpul__Credit credit = GPUL__CREDIT__INIT;
        credit.node_rank = i;
        credit.bytes = s->credits[i];
        frame.body_case = GPUL__FRAME__BODY_CREDIT;
        frame.credit = &credit;
        s->credits[i] = 0;
        if (s->desk != NULL) {
            gpul_transport_send(s->desk, &frame, NULL);
        }
    }
}
