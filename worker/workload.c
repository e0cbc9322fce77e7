/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/workload.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proto/limits.h"
#include "proto/text.h"
#include "worker/envreport.h"
#include "worker/gpu_env.h"
#include "worker/hangwatch.h"
#include "worker/input.h"
#include "worker/keyvalue.h"
#include "worker/launch.h"
#include "worker/output.h"
#include "worker/placement.h"
#include "worker/probe_site.h"
#include "worker/ranklogs.h"
#include "worker/ranks.h"
#include "worker/remains.h"
#include "worker/ulimits.h"

extern char **environ;

struct workload {
    uv_loop_t *loop;
    struct keeperlink *keeper;
    const struct facts *facts;
    const char *node_name;
    uint32_t agent; /* number of this one, from 0 */
    struct workload_handlers handlers;
    void *arg;
    struct ranklogs logs;
    struct output *output;
    struct input *input;
    struct hangwatch *watch;
    struct ranks *ranks;
    struct probe_site site;
    struct launch *launch;
    struct keyvalue *keyvalue; /* on node rank 0 while ranks run */
    bool is_running;           /* from start to on_gone */
    bool is_gone;              /* the keeper has said so since */
    bool is_abandoned;
    struct remains remains;
};

void workload_notice(struct workload *w, const char *text)
{
    char line[GPUL_TEXT_BYTES_MAX + 1];
    snprintf(line, sizeof(line), "%s", text);
    gpul_text_clean(line, GPUL_TEXT_BYTES_MAX);
    Gpul__Notice notice = GPUL__NOTICE__INIT;
    notice.text = line;
    Gpul__Frame frame = GPUL__FRAME__INIT;
    frame.body_case = GPUL__FRAME__BODY_NOTICE;
    frame.notice = &notice;
    w->handlers.on_frame(w->arg, &frame);
}

static void on_stream_frame(void *arg, Gpul__Frame *frame)
{
    struct workload *w = arg;
    w->handlers.on_frame(w->arg, frame);
}

static void on_output_written(void *arg, uint32_t local_rank)
{
    struct workload *w = arg;
    hangwatch_output(w->watch, local_rank);
}

static void on_output_notice(void *arg, const char *text)
{
    workload_notice(arg, text);
}

static void on_output_drained(void *arg)
{
    struct workload *w = arg;
    w->handlers.on_drained(w->arg);
}

int workload_create(struct workload **out, const struct workload_config *config,
                    const struct workload_handlers *handlers, void *arg,
                    struct gpul_error *err)
{
    static const struct output_handlers on_output = {
        .on_frame = on_stream_frame,
        .on_written = on_output_written,
        .on_notice = on_output_notice,
        .on_drained = on_output_drained,
    };
    struct workload *w = calloc(1, sizeof(*w));
    *out = NULL;
    if (w == NULL) {
        return gpul_fail(err, GPUL_ENOMEM, "out of memory");
    }
    w->loop = config->loop;
    w->keeper = config->keeper;
    w->facts = config->facts;
    w->node_name = config->node_name;
    w->agent = config->state.agent;
    remains_init(&w->remains, config->job_id, &config->state);
    w->handlers = *handlers;
    w->arg = arg;
    ranklogs_init(&w->logs);
    probe_site_init(&w->site);
    int rc = output_create(&w->output, w->loop, &w->logs, &on_output, w, err);
    if (rc == 0) {
        rc = input_create(&w->input, w->loop, on_stream_frame, w, err);
    }
    if (rc == 0) {
        const struct hangwatch_config watch = {w->output, w->node_name};
        rc = hangwatch_create(&w->watch, w->loop, &watch, on_stream_frame, w,
                              err);
    }
    if (rc == 0) {
        const struct ranks_streams streams = {w->input, w->output, &w->logs,
                                              w->watch};
        rc = ranks_create(&w->ranks, w->keeper, &streams, err);
    }
    if (rc == 0) {
        rc = ranks_hold(w->ranks, &config->state, err);
    }
    if (rc != 0) {
        workload_destroy(w);
        return rc;
    }
    *out = w;
    return 0;
}

void workload_destroy(struct workload *w)
{
    if (w == NULL) {
        return;
    }
    keyvalue_stop(w->keyvalue);
    ranks_destroy(w->ranks);
    hangwatch_destroy(w->watch); /* before the output that it looks at */
    output_destroy(w->output);
    input_destroy(w->input);
    launch_destroy(w->launch);
    probe_site_release(&w->site);
    ranklogs_release(&w->logs);
    free(w);
}

/* ---- starting ----------------------------------------------------------- */

static struct launch_input launch_input(const struct workload *w,
                                        const struct agent *agent)
{
    const struct world *world = agent_world(agent);
    const Gpul__Assign *assign = agent_assign(agent);
    const char *address = world->addresses.names[assign->node_rank];
    return (struct launch_input){
        .job = agent_job(agent),
        .assign = assign,
        .world = world,
        .generation = agent_generation(agent),
        .attempt = agent_attempt(agent),
        .node_name = w->node_name,
        .cores = w->facts->message.cores,
        .devices = w->facts->devices,
        .device_count = w->facts->device_count,
        .devices_are_restricted = w->facts->devices_are_restricted,
        .interface = facts_interface_of(w->facts, address),
        .inherited = (const char *const *)environ,
    };
}

static int make_launch(struct workload *w, const struct agent *agent,
                       struct gpul_error *err)
{
    const struct launch_input in = launch_input(w, agent);
    launch_destroy(w->launch);
    int rc = launch_create(&w->launch, &in, err);
    if (rc != 0) {
        return rc;
    }
    const char *const *notices;
    size_t n = env_plan_notices(w->launch->plan, &notices);
    for (size_t i = 0; i < n; i++) {
        workload_notice(w, notices[i]);
    }
    placement_bind(w->launch, (enum binding_kind)agent_job(agent)->bind,
                   on_output_notice, w);
    return 0;
}

/* Programs that use Horovod without horovodrun meet at a key-value store. */
static void start_keyvalue(struct workload *w)
{
    struct gpul_error err;
    const struct env_world *world = &w->launch->input.world;
    if (w->launch->node_rank != 0 || world->world_size < 2) {
        return;
    }
    if (keyvalue_start(&w->keyvalue, w->loop, world->addresses[0],
                       launch_horovod_port(w->launch), &err) != 0) {
        char text[GPUL_TEXT_BYTES_MAX];
        snprintf(text, sizeof(text),
                 "no rendezvous for Horovod programs in this job: %s",
                 err.text);
        workload_notice(w, text);
    }
}

/* Files of an agent before us are ours, to add to and to remove. */
static int resume_logs(struct workload *w, uint32_t attempt,
                       struct gpul_error *err)
{
    char folder[RANKLOG_FOLDER_BYTES];
    int rc = ranklogs_resume(&w->logs, AGENT_TEST_FOLDER, err);
    for (uint32_t i = 1; rc == 0 && i <= attempt; i++) {
        snprintf(folder, sizeof(folder), "attempt-%u", i);
        rc = ranklogs_resume(&w->logs, folder, err);
    }
    return rc;
}

static int begin_output(struct workload *w, const struct agent *agent,
                        struct gpul_error *err)
{
    const Gpul__Assign *assign = agent_assign(agent);
    const Gpul__Job *job = agent_job(agent);
    uint32_t attempt = agent_attempt(agent);
    const struct output_job output_job = {
        .node_rank = assign->node_rank,
        .node_count = assign->node_count,
        .first_rank = assign->first_rank,
        .rank_count = assign->rank_count,
        .forwards = job->forwards_output,
    };
    int rc = ranklogs_begin(&w->logs, job->log_dir, attempt, err);
    if (rc == 0 && ranks_are_held(w->ranks, agent_generation(agent))) {
        rc = resume_logs(w, attempt, err);
    }
    return rc != 0 ? rc : output_begin(w->output, &output_job, err);
}

static int start_ranks(struct workload *w, const struct agent *agent,
                       struct gpul_error *err)
{
    const Gpul__Job *job = agent_job(agent);
    const struct ranks_begin begin = {
        .job = job,
        .generation = agent_generation(agent),
        .attempt = agent_attempt(agent),
        .grace_ms = job->grace_ms,
        .orphan_ms = job->orphan_timeout_ms != 0 ? job->orphan_timeout_ms
                                                 : GPUL_ORPHAN_TIMEOUT_MS,
    };
    return ranks_start(w->ranks, w->launch, &begin, err);
}

/* The user is told what a restarted agent may have cost. */
static void tell_restart(struct workload *w)
{
    char text[GPUL_TEXT_BYTES_MAX];
    ranks_tell_restart(w->ranks, w->agent, text);
    workload_notice(w, text);
}

int workload_start(struct workload *w, const struct agent *agent,
                   struct gpul_error *err)
{
    bool are_held = ranks_are_held(w->ranks, agent_generation(agent));
    const Gpul__Assign *assign = agent_assign(agent);
    w->is_running = true;
    w->is_gone = w->is_gone && are_held;
    w->is_abandoned = w->is_abandoned && are_held;
    probe_site_end(&w->site);
    int rc = begin_output(w, agent, err);
    if (rc != 0) {
        return rc;
    }
    if (are_held) {
        tell_restart(w);
    } else {
        remains_begin(&w->remains, agent_generation(agent), assign->first_rank,
                      assign->rank_count);
    }
    struct gpul_error why;
    rc = make_launch(w, agent, &why);
    if (rc == 0) {
        ulimits_tell(on_output_notice, w);
        start_keyvalue(w);
        rc = start_ranks(w, agent, err);
    } else if (!are_held) {
        rc = ranks_fail(w->ranks, assign, &why, err);
    } else {
        return gpul_fail(err, rc, "%s", why.text);
    }
    workload_settle(w);
    return rc;
}

static int report_rank(struct workload *w, uint32_t local_rank,
                       struct gpul_error *err)
{
    struct env env;
    int rc = env_build(&env, w->launch->plan, local_rank, err);
    if (rc == 0) {
        rc = envreport_make(&env, w->launch, local_rank, w->handlers.on_frame,
                            w->arg, err);
        env_release(&env);
    }
    return rc;
}

int workload_report(struct workload *w, const struct agent *agent,
                    struct gpul_error *err)
{
    const Gpul__Job *job = agent_job(agent);
    const Gpul__Assign *assign = agent_assign(agent);
    if (!envreport_is_any_asked(job, assign)) {
        return 0;
    }
    struct gpul_error why;
    int rc = make_launch(w, agent, &why);
    for (uint32_t i = 0; rc == 0 && i < assign->rank_count; i++) {
        if (envreport_is_asked(job, assign->first_rank + i)) {
            rc = report_rank(w, i, &why);
        }
    }
    if (rc == 0) {
        return 0;
    }
    rc = ranks_fail(w->ranks, assign, &why, err);
    w->handlers.on_exits(w->arg);
    return rc;
}

/* The scout comes first, and makes the site for all after it. */
static int begin_site(struct workload *w, const struct agent *agent,
                      struct gpul_error *err)
{
    const char *warnings[GPU_ENV_WARNINGS_MAX];
    const struct launch_input in = launch_input(w, agent);
    int rc = probe_site_begin(&w->site, &in, err);
    if (rc != 0) {
        return rc;
    }
    size_t n =
        gpu_env_warnings(warnings, (const char *const *)w->site.rank.strings);
    for (size_t i = 0; i < n; i++) {
        workload_notice(w, warnings[i]);
    }
    return 0;
}

int workload_fill_probe(struct workload *w, const struct agent *agent,
                        enum agent_probe_kind kind, uint32_t rank,
                        struct prober_start *start, struct gpul_error *err)
{
    int rc = kind == AGENT_PROBE_SCOUT ? begin_site(w, agent, err) : 0;
    if (rc == 0) {
        probe_site_fill(&w->site, kind, rank, start);
    }
    return rc;
}

/* ---- ending ------------------------------------------------------------- */

static void end(struct workload *w)
{
    w->is_running = false;
    keyvalue_stop(w->keyvalue);
    w->keyvalue = NULL;
    input_finish(w->input);
    hangwatch_end(w->watch);
    w->handlers.on_gone(w->arg);
    output_finish(w->output);
}

/* Ranks that the keeper has never heard of are gone by themselves. */
void workload_settle(struct workload *w)
{
    if (!w->is_running) {
        return;
    }
    if (ranks_have_exits(w->ranks)) {
        w->handlers.on_exits(w->arg);
    }
    if (w->is_gone || !ranks_have_begun(w->ranks)) {
        end(w);
    }
}

/* A keeper that is gone does not hear it; then nothing is left to be told. */
static void tell_keeper(struct workload *w, enum keeper_packet_type type,
                        int signal)
{
    const struct keeper_packet packet = {
        .type = type, .slot = KEEPER_ALL_SLOTS, .signal = signal};
    if (ranks_have_begun(w->ranks)) {
        keeperlink_send(w->keeper, &packet, NULL, 0, NULL);
    }
}

void workload_stop(struct workload *w, int signal)
{
    tell_keeper(w, KEEPER_STOP, signal);
}

void workload_pass_signal(struct workload *w, int signal)
{
    tell_keeper(w, KEEPER_PASS, signal);
}

int workload_feed(struct workload *w, uint32_t generation,
                  const Gpul__Input *input, struct gpul_error *err)
{
    return input_put(w->input, generation, input, err);
}

void workload_abandon(struct workload *w)
{
    w->is_abandoned = true;
    tell_keeper(w, KEEPER_ABANDON, 0);
}

/* A stop that crosses the end is answered once more, maybe when other ranks
 * run already: that is not about them. */
static void on_gone(struct workload *w)
{
    if (w->is_running && ranks_are_alive(w->ranks) && !w->is_abandoned) {
        return;
    }
    w->is_gone = true;
    if (!w->is_running) {
        w->handlers.on_gone(w->arg); /* of held ranks */
    }
}

void workload_take_mail(struct workload *w, struct keeper_mail *mail)
{
    switch ((enum keeper_packet_type)mail->packet.type) {
    case KEEPER_RANK:
    case KEEPER_STARTED:
    case KEEPER_EXIT:
        ranks_take_mail(w->ranks, mail);
        break;
    case KEEPER_UNCLEAN:
        remains_add(&w->remains, mail->packet.text);
        break;
    case KEEPER_GONE:
        on_gone(w);
        break;
    default:
        break;
    }
    keeperwire_close_fds(mail);
}

void workload_bury(struct workload *w)
{
    remains_bury(&w->remains);
}

void workload_orphan(struct workload *w)
{
    w->is_running = false;
    hangwatch_end(w->watch);
    output_finish(w->output);
}

size_t workload_take_exits(struct workload *w, Gpul__Exit ***exits)
{
    return ranks_take_exits(w->ranks, exits);
}

size_t workload_unclean(const struct workload *w, char ***unclean)
{
    *unclean = (char **)(uintptr_t)w->remains.list;
    return w->remains.count;
}

/* ---- output ------------------------------------------------------------- */

void workload_credit(struct workload *w, uint64_t bytes)
{
    output_credit(w->output, bytes);
}

void workload_discard_output(struct workload *w)
{
    output_discard(w->output);
}

void workload_remove_logs(struct workload *w)
{
    ranklogs_remove(&w->site.logs);
    ranklogs_remove(&w->logs);
}
