/* SPDX-License-Identifier: Apache-2.0
 *
 * gpulaunch-worker with other probes: the agent is the real one, and what its
 * probes on GPUs do stands in GPULAUNCH_TEST_PLAN, a list of "WHO:DEED" with
 * blanks between, WHO being "scout" or a rank of the self-test. Who is not
 * named does what it should.
 */
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/hostport.h"
#include "worker/agent.h"
#include "worker/client.h"
#include "worker/keeper.h"
#include "worker/probe_channel.h"

static bool is_planned(const char *who, const char *deed)
{
    char wanted[64];
    const char *plan = getenv("GPULAUNCH_TEST_PLAN");
    snprintf(wanted, sizeof(wanted), "%s:%s", who, deed);
    return plan != NULL && strstr(plan, wanted) != NULL;
}

static void tell(struct probe_channel *c, Gpul__Frame *frame)
{
    if (probe_channel_write(c, frame, NULL) != 0) {
        _exit(125);
    }
}

static Gpul__Frame *hear(struct probe_channel *c)
{
    Gpul__Frame *frame;
    if (probe_channel_read(c, &frame, GPUL_MESSAGE_ANY, UINT64_MAX, NULL)) {
        _exit(125);
    }
    return frame;
}

static void wait_for_death(void)
{
    for (;;) {
        pause();
    }
}

/* ---- the scout ----------------------------------------------------------- */

/* Memory in use, in MiB: what the file GPULAUNCH_TEST_MEMORY says; each look
 * takes its first line away. */
static uint64_t look_at_memory(void)
{
    const char *path = getenv("GPULAUNCH_TEST_MEMORY");
    char rest[256] = "";
    unsigned long mib = 0;
    FILE *f = path != NULL ? fopen(path, "r+") : NULL;
    if (f == NULL) {
        return 0;
    }
    if (fscanf(f, "%lu\n", &mib) == 1) {
        size_t n = fread(rest, 1, sizeof(rest), f);
        rewind(f);
        fwrite(rest, 1, n, f);
        fflush(f);
        if (ftruncate(fileno(f), (off_t)n) != 0) {
            _exit(125);
        }
    }
    fclose(f);
    return mib;
}

static void tell_facts(struct probe_channel *c)
{
    enum { DEVICES = 2 };
    char uuids[DEVICES][8];
    static char nvml_path[] = "/lib/libnvidia-ml.so.1";
    Gpul__Library nvml = GPUL__LIBRARY__INIT;
    Gpul__Library library = GPUL__LIBRARY__INIT;
    Gpul__Device devices[DEVICES];
    Gpul__Device *list[DEVICES];
    uint64_t used_bytes = look_at_memory() << 20;
    for (uint32_t i = 0; i < DEVICES; i++) {
        gpul__device__init(&devices[i]);
        snprintf(uuids[i], sizeof(uuids[i]), "GPU-%u", i);
        devices[i].index = i;
        devices[i].uuid = uuids[i];
        devices[i].memory_used_bytes = used_bytes;
        list[i] = &devices[i];
    }
    Gpul__ProbeFacts facts = GPUL__PROBE_FACTS__INIT;
    facts.nccl = facts.cuda = &library;
    nvml.path = nvml_path;
    facts.nvml = &nvml;
    facts.devices = list;
    facts.n_devices = DEVICES;
    Gpul__Frame frame = GPUL__FRAME__INIT;
    frame.body_case = GPUL__FRAME__BODY_PROBE_FACTS;
    frame.probe_facts = &facts;
    tell(c, &frame);
}

static int scout(struct probe_channel *c)
{
    if (is_planned("scout", "hang")) {
        wait_for_death();
    }
    if (is_planned("scout", "crash")) {
        fprintf(stderr, "libcuda: bad magic\n");
        abort();
    }
    tell_facts(c);
    return 0;
}

/* ---- a probe on a device ------------------------------------------------- */

static void show(const char *name)
{
    const char *value = getenv(name);
    printf("%s=%s\n", name, value != NULL ? value : "(unset)");
}

/* What it was started with, for the test to read in the log. */
static void show_all(const char *command, const Gpul__ProbeBegin *begin)
{
    char folder[256];
    printf("command=%s\n", command != NULL ? command : "(none)");
    printf("folder=%s\n", getcwd(folder, sizeof(folder)));
    printf("device=%u %s\n", begin->device_index, begin->device_uuid);
    printf("interface=%s\n", begin->interface);
    printf("debug_file=%s\n", begin->debug_file);
    show("GPULAUNCH_NODE_NAME");
    show("CUDA_VISIBLE_DEVICES");
    show("NCCL_ALGO");
    show("PMI_RANK");
    fflush(stdout);
}

/* As NCCL does with NCCL_DEBUG_FILE. */
static void write_nccl_log(const Gpul__ProbeBegin *begin)
{
    FILE *log =
        begin->debug_file[0] != 0 ? fopen(begin->debug_file, "w") : NULL;
    if (log != NULL) {
        fputs("what NCCL says\n", log);
        fclose(log);
    }
}

static void tell_phase(struct probe_channel *c, Gpul__ProbePhase__Phase done)
{
    Gpul__ProbePhase phase = GPUL__PROBE_PHASE__INIT;
    phase.phase = done;
    Gpul__Frame frame = GPUL__FRAME__INIT;
    frame.body_case = GPUL__FRAME__BODY_PROBE_PHASE;
    frame.probe_phase = &phase;
    tell(c, &frame);
}

static void tell_id(struct probe_channel *c)
{
    static uint8_t bytes[GPUL_UNIQUE_ID_BYTES] = {7};
    Gpul__ProbeId id = GPUL__PROBE_ID__INIT;
    id.id.data = bytes;
    id.id.len = sizeof(bytes);
    Gpul__Frame frame = GPUL__FRAME__INIT;
    frame.body_case = GPUL__FRAME__BODY_PROBE_ID;
    frame.probe_id = &id;
    tell(c, &frame);
}

static void tell_result(struct probe_channel *c, const char *error)
{
    char phase[] = "coll";
    Gpul__ProbeResult result = GPUL__PROBE_RESULT__INIT;
    result.phase = phase;
    result.error = (char *)(uintptr_t)error;
    Gpul__Frame frame = GPUL__FRAME__INIT;
    frame.body_case = GPUL__FRAME__BODY_PROBE_RESULT;
    frame.probe_result = &result;
    tell(c, &frame);
}

static void flood(void)
{
    for (int i = 0; i < 30000; i++) {
        printf("%099d\n", i);
    }
    fflush(stdout);
}

/* The deeds that keep it from going on. */
static void maybe_end(struct probe_channel *c, const char *who)
{
    if (is_planned(who, "crash")) {
        fprintf(stderr, "first words\nfree(): invalid pointer\n\n");
        signal(SIGSEGV, SIG_DFL); /* a sanitizer would make an exit of it */
        raise(SIGSEGV);
    } else if (is_planned(who, "exit")) {
        _exit(9);
    } else if (is_planned(who, "nonsense")) {
        if (write(c->fd, "\0\0\0\3abc", 7) != 7) {
            _exit(125);
        }
        wait_for_death();
    } else if (is_planned(who, "error")) {
        tell_result(c, "no memory");
        wait_for_death();
    } else if (is_planned(who, "deaf")) {
        wait_for_death();
    }
}

static int probe(struct probe_channel *c, const Gpul__ProbeBegin *begin,
                 const char *command)
{
    char who[16];
    snprintf(who, sizeof(who), "%u", begin->first_rank);
    show_all(command, begin);
    write_nccl_log(begin);
    tell_phase(c, GPUL__PROBE_PHASE__PHASE__CUDA);
    if (begin->first_rank == 0) {
        tell_id(c);
    }
    Gpul__Frame *next = hear(c);
    if (next->body_case == GPUL__FRAME__BODY_STOP) {
        return 0;
    }
    maybe_end(c, who);
    tell_phase(c, GPUL__PROBE_PHASE__PHASE__INIT);
    if (is_planned(who, "flood")) {
        flood();
    }
    tell_phase(c, GPUL__PROBE_PHASE__PHASE__COLL);
    tell_result(c, "");
    return 0;
}

static int run_probe(const char *command)
{
    struct probe_channel c;
    probe_channel_init(&c, 3);
    Gpul__Frame *first = hear(&c);
    c.epoch = first->epoch;
    c.generation = first->generation;
    return first->body_case == GPUL__FRAME__BODY_PROBE_START
               ? scout(&c)
               : probe(&c, first->probe_begin, command);
}

/* As tests/lib/desk.c starts it. */
static int run_agent(void *arg, int keeper)
{
    return client_run(arg, keeper);
}

int main(int argc, char *argv[])
{
    static const char job[] = "--job=";
    struct client_config config = {
        .node_name = "node-0",
        .join_timeout_ms = 60000,
        .coordinator_count = 1,
    };
    signal(SIGPIPE, SIG_IGN);
    if (argc > 1 && strcmp(argv[1], "probe") == 0) {
        int code = run_probe(argc > 2 ? argv[2] : NULL);
        fflush(NULL);
        _exit(code); /* what it has heard is not given back */
    }
    if (argc < 4 || strncmp(argv[3], job, strlen(job)) != 0 ||
        gpul_hostport_parse(&config.coordinators[0], argv[2], NULL) != 0) {
        return AGENT_EXIT_FAILED;
    }
    config.job_id = argv[3] + strlen(job);
    const struct keeper_config keeper = {
        .agent_main = run_agent,
        .arg = &config,
        .node_name = config.node_name,
    };
    return keeper_run(&keeper);
}
