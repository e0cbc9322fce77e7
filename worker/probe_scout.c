/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/probe_scout.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "common/clock.h"
#include "proto/limits.h"
#include "proto/text.h"
#include "worker/facts.h"
#include "worker/gpu_env.h"
#include "worker/gpu_facts.h"
#include "worker/gpu_pulse.h"
#include "worker/nics.h"
#include "worker/wait.h"

extern char **environ;

/* How it is, in eighths of the bound: the first, then each. */
enum { REPORT_FROM = 3, REPORT_PARTS = 8 };

_Static_assert((int)GPU_DEVICES_MAX <= (int)GPUL_DEVICES_MAX &&
                   (int)GPU_FINDINGS_MAX <= (int)GPUL_FINDINGS_MAX &&
                   (int)GPU_FINDING_BYTES <= (int)GPUL_FINDING_BYTES_MAX + 1,
               "what is read of a device must fit its message");

/* All that the message refers to. */
struct scout {
    struct gpu_facts facts;
    Gpul__Library libraries[3];
    Gpul__Device devices[GPU_DEVICES_MAX];
    Gpul__Device *device_list[GPU_DEVICES_MAX];
    char findings[GPU_DEVICES_MAX][GPU_FINDINGS_MAX][GPU_FINDING_BYTES];
    char *finding_list[GPU_DEVICES_MAX][GPU_FINDINGS_MAX];
    char settings[GPUL_SETTINGS_MAX][GPU_ENV_SETTING_BYTES];
    char *setting_list[GPUL_SETTINGS_MAX];
    struct gpul_error why; /* there is no fact but this one */
    struct nic nics[GPUL_NICS_MAX];
    Gpul__Nic nic_messages[GPUL_NICS_MAX];
    Gpul__Nic *nic_list[GPUL_NICS_MAX];
};

/* A library's own words may hold anything; a fact is one line. */
static char *clean(char *text, size_t bytes_max)
{
    gpul_text_clean(text, bytes_max);
    for (char *c = text; *c != 0; c++) {
        *c = *c == '\n' || *c == '\t' ? ' ' : *c;
    }
    return text;
}

static void set_library(Gpul__Library *out, struct gpu_library *lib)
{
    gpul__library__init(out);
    out->path = clean(lib->file.path, GPUL_PATH_BYTES_MAX);
    out->version = clean(lib->version, GPUL_VERSION_BYTES_MAX);
    out->build_id = clean(lib->file.build_id, GPUL_BUILD_ID_BYTES_MAX);
    out->version_code = lib->version_code;
    out->error = clean(lib->error, GPUL_TEXT_BYTES_MAX);
    out->passed_over = clean(lib->file.passed_over, GPUL_TEXT_BYTES_MAX);
}

static Gpul__Device__Switch read_switch(const struct gpu_device *d,
                                        enum gpu_number n)
{
    uint64_t is_on;
    if (!gpu_device_get(d, n, &is_on)) {
        return GPUL__DEVICE__SWITCH__UNKNOWN;
    }
    return is_on != 0 ? GPUL__DEVICE__SWITCH__ON : GPUL__DEVICE__SWITCH__OFF;
}

static void set_device(struct scout *s, size_t i)
{
    struct gpu_device *from = &s->facts.devices[i];
    Gpul__Device *out = &s->devices[i];
    gpul__device__init(out);
    out->index = (uint32_t)i; /* among those that the ranks will see */
    out->uuid = clean(from->uuid, GPUL_DEVICE_UUID_BYTES_MAX);
    out->bus_id = clean(from->bus_id, GPUL_TOKEN_BYTES_MAX);
    out->model = clean(from->model, GPUL_DEVICE_MODEL_BYTES_MAX);
    gpu_device_get(from, GPU_MEMORY, &out->memory_bytes);
    gpu_device_get(from, GPU_MEMORY_USED, &out->memory_used_bytes);
    enum gpul_link kind;
    out->link_gbps = gpu_device_link_gbps(from, &kind);
    out->link_kind = (Gpul__Link)kind;
    out->pcie_gbps = gpu_device_pcie_gbps(from);
    out->ecc = read_switch(from, GPU_ECC_ON);
    out->mig = read_switch(from, GPU_MIG_ON);
    out->n_findings = gpu_device_findings(s->findings[i], from);
    out->findings = s->finding_list[i];
    for (size_t f = 0; f < out->n_findings; f++) {
        s->finding_list[i][f] =
            clean(s->findings[i][f], GPUL_FINDING_BYTES_MAX);
    }
    s->device_list[i] = out;
}

/* Why there can be no self-test on GPUs here, "" if there can. */
static char *reason(struct gpu_facts *facts)
{
    if (facts->error[0] != 0) {
        return clean(facts->error, GPUL_TEXT_BYTES_MAX);
    }
    if (facts->cuda.error[0] != 0) {
        return clean(facts->cuda.error, GPUL_TEXT_BYTES_MAX);
    }
    return clean(facts->nccl.error, GPUL_TEXT_BYTES_MAX);
}

/* Every report has them, empty where none could be looked for. */
static void set_libraries(Gpul__ProbeFacts *out, struct scout *s)
{
    set_library(&s->libraries[0], &s->facts.nccl);
    set_library(&s->libraries[1], &s->facts.cuda);
    set_library(&s->libraries[2], &s->facts.nvml);
    out->nccl = &s->libraries[0];
    out->cuda = &s->libraries[1];
    out->nvml = &s->libraries[2];
}

/* The cards are none of NCCL's business, so they do not depend on it. */
static void set_nics(Gpul__ProbeFacts *out, struct scout *s,
                     const struct facts *host, const char *address)
{
    const char *names[GPUL_INTERFACES_MAX];
    for (size_t i = 0; i < host->message.n_interfaces; i++) {
        names[i] = host->message.interfaces[i]->name;
    }
    const struct nics_request request = {
        .root = "",
        .interfaces = names,
        .interface_count = host->message.n_interfaces,
        .interface = facts_interface_of(host, address),
        .environment = (const char *const *)environ,
    };
    out->n_nics = nics_read(s->nics, &request);
    for (size_t i = 0; i < out->n_nics; i++) {
        Gpul__Nic *to = &s->nic_messages[i];
        gpul__nic__init(to);
        to->name = clean(s->nics[i].name, GPUL_NIC_NAME_BYTES_MAX);
        to->kind = (Gpul__Link)s->nics[i].kind;
        to->gbits = s->nics[i].gbits;
        to->is_down = s->nics[i].is_down;
        s->nic_list[i] = to;
    }
    out->nics = s->nic_list;
}

static void set_facts(Gpul__ProbeFacts *out, struct scout *s)
{
    struct gpu_facts *facts = &s->facts;
    out->error = reason(facts);
    for (size_t i = 0; i < facts->device_count; i++) {
        set_device(s, i);
    }
    out->n_devices = facts->device_count;
    out->devices = s->device_list;
    out->driver_version = clean(facts->driver_version, GPUL_VERSION_BYTES_MAX);
    out->refused_device = clean(facts->refused, GPUL_DEVICE_UUID_BYTES_MAX);
    out->is_simulated = gpu_facts_are_simulated(facts);
    out->has_scalable_init = facts->nccl_api.comm_init_rank_scalable != NULL;
    out->has_comm_split = facts->nccl_api.comm_split != NULL;
    out->n_settings =
        gpu_env_settings(s->settings, (const char *const *)environ);
    for (size_t i = 0; i < out->n_settings; i++) {
        s->setting_list[i] = s->settings[i];
    }
    out->settings = s->setting_list;
}

/* ---- looking, in a thread of its own --------------------------------------
 */

/* One look, of which the other thread reads `pulse` until `done_fd` is set. */
struct look {
    const Gpul__ProbeStart *start;
    const char *command;
    struct gpu_pulse pulse;
    int done_fd;
    struct facts host;
    struct scout scout;
    Gpul__ProbeFacts facts;
};

static void *look_around(void *arg)
{
    struct look *l = arg;
    struct scout *s = &l->scout;
    const char *nccl_path = l->start->nccl_library;
    const struct gpu_facts_request request = {
        .nccl_path = nccl_path[0] != 0 ? nccl_path : NULL,
        .command = l->command,
        .environment = (const char *const *)environ,
        .has_amd = l->host.devices_are_amd,
        .pulse = &l->pulse,
    };
    int status = gpu_facts_read(&s->facts, &request, &s->why);
    set_libraries(&l->facts, s);
    set_nics(&l->facts, s, &l->host, l->start->address);
    if (status == 0) {
        set_facts(&l->facts, s);
    } else {
        l->facts.error = clean(s->why.text, GPUL_TEXT_BYTES_MAX);
    }
    (void)!eventfd_write(l->done_fd, 1);
    return NULL;
}

/* How the look is going. */
static int tell_pulse(struct probe_channel *channel, const struct look *l,
                      struct gpul_error *err)
{
    char call[GPUL_CALL_BYTES_MAX + 1];
    struct gpu_pulse_view view;
    gpu_pulse_look(&l->pulse, &view, gpul_clock_ms());
    snprintf(call, sizeof(call), "%s", view.call);
    Gpul__ProbePhase message = GPUL__PROBE_PHASE__INIT;
    message.state = view.state;
    message.call = call;
    message.since_ms = view.since_ms;
    Gpul__Frame frame = GPUL__FRAME__INIT;
    frame.body_case = GPUL__FRAME__BODY_PROBE_PHASE;
    frame.probe_phase = &message;
    return probe_channel_write(channel, &frame, err);
}

/* A look that never ends is the agent's to end. */
static int wait_look(struct probe_channel *channel, const struct look *l,
                     struct gpul_error *err)
{
    struct pollfd fd = {.fd = l->done_fd, .events = POLLIN};
    uint64_t every_ms = l->start->deadline_ms / REPORT_PARTS + 1;
    uint64_t report_ms = gpul_clock_ms() + REPORT_FROM * every_ms;
    for (;;) {
        int status = wait_any(&fd, 1, report_ms, err);
        if (status != GPUL_ETIMEOUT) {
            return status;
        }
        status = tell_pulse(channel, l, err);
        if (status != 0) {
            return status;
        }
        report_ms = gpul_clock_ms() + every_ms;
    }
}

static int tell_facts(struct probe_channel *channel, struct look *l,
                      struct gpul_error *err)
{
    Gpul__Frame frame = GPUL__FRAME__INIT;
    frame.body_case = GPUL__FRAME__BODY_PROBE_FACTS;
    frame.probe_facts = &l->facts;
    return probe_channel_write(channel, &frame, err);
}

static int start_look(struct look *l, pthread_t *thread, struct gpul_error *err)
{
    l->done_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (l->done_fd < 0) {
        return gpul_fail_errno(err, errno, "eventfd for the scout");
    }
    gpu_pulse_step(&l->pulse);
    int rc = pthread_create(thread, NULL, look_around, l);
    if (rc != 0) {
        close(l->done_fd);
        return gpul_fail_errno(err, rc, "a thread for the scout");
    }
    return 0;
}

/* Where it fails while the look goes on, nothing that this uses is given
 * back: it ends with the process. */
static int run_look(struct probe_channel *channel, struct look *l,
                    struct gpul_error *err)
{
    pthread_t thread;
    int status = start_look(l, &thread, err);
    if (status == 0) {
        status = wait_look(channel, l, err);
        if (status != 0) {
            pthread_detach(thread);
            return status;
        }
        pthread_join(thread, NULL);
        close(l->done_fd);
        status = tell_facts(channel, l, err);
        gpu_facts_release(&l->scout.facts);
    }
    facts_release(&l->host);
    free(l);
    return status;
}

int probe_scout_serve(struct probe_channel *channel,
                      const Gpul__ProbeStart *start, const char *command,
                      struct gpul_error *err)
{
    struct look *l = calloc(1, sizeof(*l));
    if (l == NULL || facts_read(&l->host, "", NULL, NULL) != 0) {
        free(l);
        return gpul_fail(err, GPUL_ENOMEM, "no memory for the scout");
    }
    l->start = start;
    l->command = command;
    gpul__probe_facts__init(&l->facts);
    return run_look(channel, l, err);
}
