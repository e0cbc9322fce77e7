/* SPDX-License-Identifier: Apache-2.0
 *
 * The double of libcuda: devices, contexts, memory, streams and events. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/doubles/ranks.h"

#define TWO "node * gpus 2 memory 1GiB context 64MiB\n"

enum { MIB = 1 << 20 };

static int no_device(struct rank *rank)
{
    struct cuda_api *cuda = &rank->doubles.cuda;
    char missing[RANKS_TEXT];
    const char *text;
    int count = 7;

    CHECK(doubles_open(&rank->doubles, missing));
    CHECK(cuda->device_get_count(&count) == CUDA_RESULT_NOT_INITIALIZED);
    CHECK(cuda->init(0) == CUDA_RESULT_NO_DEVICE);
    CHECK(count == 0);
    CHECK(cuda->get_error_name(100, &text) == 0);
    CHECK(strcmp(text, "CUDA_ERROR_NO_DEVICE") == 0);
    CHECK(cuda->get_error_string(100, &text) == 0);
    CHECK(strcmp(text, "no CUDA-capable device is detected") == 0);
    CHECK(cuda->get_error_name(12345, &text) == 1 && !text);
    return 0;
}

/* Without a scenario there is no device, and every call says so. */
static void test_no_device(void **state)
{
    (void)state;
    story_run(NULL, no_device);
    story_run("node elsewhere gpus 2", no_device);
}

static int init_fails(struct rank *rank)
{
    char missing[RANKS_TEXT];

    CHECK(doubles_open(&rank->doubles, missing));
    CHECK(rank->doubles.cuda.init(0) == CUDA_RESULT_SYSTEM_NOT_READY);
    return 0;
}

/* cuInit fails as the scenario says. */
static void test_init_fails(void **state)
{
    (void)state;
    story_run(TWO "node * cuda-init 802", init_fails);
    story_run(TWO "fault code 802 at cuinit", init_fails);
}

static int facts(struct rank *rank)
{
    struct cuda_api *cuda = &rank->doubles.cuda;
    struct cuda_uuid uuid;
    char text[64];
    size_t bytes;
    int value;

    rank_open(rank);
    CHECK(cuda->driver_get_version(&value) == 0 && value == 12080);
    CHECK(cuda->device_get_count(&value) == 0 && value == 2);
    CHECK(cuda->device_get(&value, 2) == CUDA_RESULT_INVALID_DEVICE);
    CHECK(cuda->device_get_name(text, sizeof text, 1) == 0);
    CHECK(strcmp(text, "NVIDIA H200") == 0);
    CHECK(cuda->device_get_pci_bus_id(text, sizeof text, 1) == 0);
    CHECK(strcmp(text, "0002:3b:00.0") == 0);
    CHECK(cuda->device_get_pci_bus_id(text, 12, 1) == 1);
    CHECK(cuda->device_total_mem(&bytes, 1) == 0 && bytes == 1 << 30);
    CHECK(cuda->device_get_uuid_v2(&uuid, 1) == 0);
    CHECK(memcmp(uuid.bytes,
                 "\x01\x23\x45\x67\x89\xab\xcd\xef"
                 "\xfe\xdc\xba\x98\x76\x54\x32\x10",
                 16) == 0);
    CHECK(cuda->device_get_attribute(
              &value, CUDA_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 0) == 0);
    CHECK(value == 9);
    CHECK(cuda->device_get_attribute(&value, 9999, 0) == 1);
    return 0;
}

/* Facts of a device are those of the scenario. */
static void test_facts(void **state)
{
    (void)state;
    story_run(TWO "node * cuda 12080\n"
                  "gpu * 1 model \"NVIDIA H200\" bus 0002:3b:00.0 "
                  "uuid GPU-01234567-89ab-cdef-fedc-ba9876543210",
              facts);
}

/* Which device ordinal 0 is, by the list in the environment; -1: none. */
static int seen(const char *list)
{
    struct doubles doubles;
    char missing[RANKS_TEXT], text[64];
    int status = 0;

    (void)setenv("CUDA_VISIBLE_DEVICES", list, 1);
    pid_t pid = fork(); /* the driver reads the list once */
    if (pid == 0) {
        CHECK(doubles_open(&doubles, missing));
        if (doubles.cuda.init(0) != 0)
            _exit(77);
        CHECK(doubles.cuda.device_get_pci_bus_id(text, sizeof text, 0) == 0);
        _exit(text[6] - '0'); /* 0000:1N:00.0 */
    }
    (void)waitpid(pid, &status, 0);
    return WEXITSTATUS(status) == 77 ? -1 : WEXITSTATUS(status);
}

static int visible_devices(struct rank *rank)
{
    (void)rank;
    CHECK(seen("2") == 2);
    CHECK(seen("3,0") == 3);
    CHECK(seen("GPU-01234567-89ab-cdef-fedc-ba9876543210") == 1);
    CHECK(seen("GPU-0123") == 1);
    CHECK(seen("9,0") == -1);
    CHECK(seen("") == -1);
    CHECK(seen("-1") == -1);
    CHECK(seen("0,0") == -1);
    CHECK(seen("GPU-ffff") == -1);
    return 0;
}

/* The environment chooses by number or UUID; what it does not name ends it. */
static void test_visible_devices(void **state)
{
    (void)state;
    story_run("node * gpus 4\n"
              "gpu * 1 uuid GPU-01234567-89ab-cdef-fedc-ba9876543210",
              visible_devices);
}

static int contexts(struct rank *rank)
{
    struct cuda_api *cuda = &rank->doubles.cuda;
    struct cuda_context *context;
    cuda_address address;
    size_t bytes, total;
    char missing[RANKS_TEXT];

    CHECK(doubles_open(&rank->doubles, missing));
    CHECK(cuda->init(0) == 0);
    CHECK(cuda->mem_alloc(&address, 8) == 201); /* no context */
    CHECK(cuda->device_primary_ctx_retain(&context, 1) == 0);
    CHECK(cuda->ctx_set_current(context) == 0);
    CHECK(cuda->mem_get_info(&bytes, &total) == 0);
    CHECK(total == 1 << 30 && bytes == (size_t)(1024 - 64) * MIB);
    CHECK(cuda->mem_alloc(&address, 100 * MIB) == 0);
    CHECK(cuda->device_primary_ctx_release(1) == 0); /* takes all with it */
    CHECK(cuda->mem_alloc(&address, 8) == 201);
    CHECK(cuda->device_primary_ctx_retain(&context, 1) == 0);
    CHECK(cuda->mem_get_info(&bytes, &total) == 0);
    CHECK(bytes == (size_t)(1024 - 64) * MIB);
    CHECK(cuda->device_primary_ctx_release(1) == 0);
    CHECK(cuda->device_primary_ctx_release(1) == 201);
    return 0;
}

/* A context takes memory of its device, and gives back all of it. */
static void test_contexts(void **state)
{
    (void)state;
    story_run(TWO, contexts);
}

static int unavailable(struct rank *rank)
{
    struct cuda_api *cuda = &rank->doubles.cuda;
    struct cuda_context *context;
    char missing[RANKS_TEXT];
    const char *text;

    CHECK(doubles_open(&rank->doubles, missing));
    CHECK(cuda->init(0) == 0);
    for (int device = 0; device < 2; device++) {
        CHECK(cuda->device_primary_ctx_retain(&context, device) == 46);
        CHECK(!context);
    }
    CHECK(cuda->device_primary_ctx_retain(&context, 2) == 0);
    CHECK(cuda->device_primary_ctx_release(2) == 0);
    CHECK(cuda->get_error_name(46, &text) == 0);
    CHECK(strcmp(text, "CUDA_ERROR_DEVICE_UNAVAILABLE") == 0);
    return 0;
}

/* A device in mode "prohibited", or lost, is seen and gives no context. */
static void test_unavailable(void **state)
{
    (void)state;
    story_run("node * gpus 3\ngpu * 0 compute-mode 2\ngpu * 1 lost on",
              unavailable);
}

/* What a second process gets from device 0. */
static int retained_by_another(struct cuda_api *cuda)
{
    struct cuda_context *context;
    int status = 0;

    pid_t pid = fork();
    if (pid == 0)
        _exit(cuda->device_primary_ctx_retain(&context, 0));
    CHECK(waitpid(pid, &status, 0) == pid && WIFEXITED(status));
    return WEXITSTATUS(status);
}

static int exclusive(struct rank *rank)
{
    struct cuda_api *cuda = &rank->doubles.cuda;
    struct cuda_context *context;
    char missing[RANKS_TEXT];

    CHECK(doubles_open(&rank->doubles, missing));
    CHECK(cuda->init(0) == 0);
    CHECK(retained_by_another(cuda) == 0);
    CHECK(cuda->device_primary_ctx_retain(&context, 0) == 0);
    CHECK(cuda->device_primary_ctx_retain(&context, 0) == 0); /* its own */
    return 0;
}

/* Holds the device until it has seen what another process gets. */
static int exclusive_held(struct rank *rank)
{
    struct cuda_api *cuda = &rank->doubles.cuda;
    struct doubles other;
    struct cuda_context *context;
    char missing[RANKS_TEXT];
    int go[2], status = 0;
    char byte;

    CHECK(pipe(go) == 0);
    pid_t pid = fork(); /* before the driver is there, as any other process */
    if (pid == 0) {
        CHECK(read(go[0], &byte, 1) == 1);
        CHECK(doubles_open(&other, missing) && other.cuda.init(0) == 0);
        _exit(other.cuda.device_primary_ctx_retain(&context, 0));
    }
    CHECK(doubles_open(&rank->doubles, missing));
    CHECK(cuda->init(0) == 0);
    CHECK(cuda->device_primary_ctx_retain(&context, 0) == 0);
    CHECK(write(go[1], "", 1) == 1);
    CHECK(waitpid(pid, &status, 0) == pid && WIFEXITED(status));
    CHECK(WEXITSTATUS(status) == 46);
    CHECK(cuda->device_primary_ctx_release(0) == 0);
    return 0;
}

/* Mode "exclusive process": one process at a time, as often as it likes. */
static void test_exclusive(void **state)
{
    (void)state;
    story_run("node * gpus 1\ngpu * 0 compute-mode 3", exclusive);
    story_run("node * gpus 1\ngpu * 0 compute-mode 3", exclusive_held);
}

static int memory(struct rank *rank)
{
    struct cuda_api *cuda = &rank->doubles.cuda;
    char out[256], in[256];
    cuda_address a, b;
    void *host;
    int status;

    rank_open(rank);
    CHECK(cuda->mem_alloc(&a, 0) == 1);
    CHECK(cuda->mem_alloc(&a, (size_t)2048 * MIB) == CUDA_RESULT_OUT_OF_MEMORY);
    CHECK(cuda->mem_alloc(&a, 256) == 0 && cuda->mem_alloc(&b, 256) == 0);
    for (size_t i = 0; i < sizeof out; i++)
        out[i] = (char)i;
    CHECK(cuda->memcpy_h_to_d(a, out, 256) == 0);
    CHECK(cuda->memcpy_d_to_d(b + 1, a, 255) == 0);
    CHECK(cuda->memcpy_d_to_h(in, b + 1, 255) == 0);
    CHECK(memcmp(in, out, 255) == 0);
    CHECK(cuda->memcpy_h_to_d(a + 1, out, 256) == 1); /* beyond its end */
    CHECK(cuda->memcpy_d_to_h(in, 4096, 1) == 1);
    CHECK(cuda->mem_host_alloc(&host, 100, CUDA_HOST_PORTABLE) == 0);
    memset(host, 1, 100);
    CHECK(cuda->mem_free_host(host) == 0);
    CHECK(cuda->mem_free(b) == 0 && cuda->mem_free(b) == 1);
    CHECK(cuda->mem_free(0) == 0);
    pid_t pid = fork();
    if (pid == 0) { /* device memory is not ours to read */
        (void)signal(SIGSEGV, SIG_DFL);
        (void)signal(SIGBUS, SIG_DFL);
        _exit(*(volatile char *)(uintptr_t)a);
    }
    CHECK(waitpid(pid, &status, 0) == pid && WIFSIGNALED(status));
    CHECK(cuda->mem_free(a) == 0);
    return 0;
}

/* Copies go where they are to, within allocations, and nobody else reads. */
static void test_memory(void **state)
{
    (void)state;
    story_run(TWO, memory);
}

static int fills(struct rank *rank)
{
    struct cuda_api *cuda = &rank->doubles.cuda;
    unsigned char in[16];
    cuda_address a;

    rank_open(rank);
    CHECK(cuda->mem_alloc(&a, 16) == 0);
    CHECK(cuda->memset_d32_async(a, 0x04030201, 2, rank->stream) == 0);
    CHECK(cuda->memset_d16_async(a + 8, 0x0605, 2, rank->stream) == 0);
    CHECK(cuda->memset_d8_async(a + 12, 7, 4, rank->stream) == 0);
    CHECK(cuda->memset_d32_async(a + 2, 0, 1, rank->stream) == 1);
    CHECK(cuda->memset_d16_async(a, 0, 9, rank->stream) == 1);
    CHECK(cuda->memcpy_d_to_h_async(in, a, 16, rank->stream) == 0);
    CHECK(rank_finish(rank, 10000));
    CHECK(memcmp(in, "\1\2\3\4\1\2\3\4\5\6\5\6\7\7\7\7", 16) == 0);
    return cuda->mem_free(a);
}

/* Fills of 1, 2 and 4 bytes, aligned, in the order of their stream. */
static void test_fills(void **state)
{
    (void)state;
    story_run(TWO, fills);
}

static int stream_order(struct rank *rank)
{
    enum { BYTES = 8 * MIB, ROUNDS = 20 };
    struct cuda_api *cuda = &rank->doubles.cuda;
    unsigned char *in = malloc(BYTES);
    struct cuda_event *first, *last;
    cuda_address a;
    float ms = -1;

    rank_open(rank);
    CHECK(in && cuda->mem_alloc(&a, BYTES) == 0);
    CHECK(cuda->event_create(&first, CUDA_EVENT_DEFAULT) == 0);
    CHECK(cuda->event_create(&last, CUDA_EVENT_DEFAULT) == 0);
    CHECK(cuda->event_query(last) == 0); /* nothing recorded: nothing to do */
    CHECK(cuda->event_elapsed_time(&ms, first, last) == 400);
    CHECK(cuda->event_record(first, rank->stream) == 0);
    for (unsigned char i = 1; i <= ROUNDS; i++)
        CHECK(cuda->memset_d8_async(a, i, BYTES, rank->stream) == 0);
    CHECK(cuda->memcpy_d_to_h_async(in, a, BYTES, rank->stream) == 0);
    CHECK(cuda->event_record(last, rank->stream) == 0);
    uint64_t start = now_ms();
    while (cuda->event_query(last) == CUDA_RESULT_NOT_READY)
        CHECK(now_ms() < start + 20000);
    for (size_t i = 0; i < BYTES; i++)
        CHECK(in[i] == ROUNDS);
    CHECK(cuda->event_query(first) == 0);
    CHECK(cuda->event_elapsed_time(&ms, first, last) == 0 && ms > 0);
    CHECK(cuda->event_destroy(first) == 0 && cuda->event_destroy(last) == 0);
    CHECK(cuda->event_create(&last, CUDA_EVENT_DISABLE_TIMING) == 0);
    CHECK(cuda->event_record(last, rank->stream) == 0);
    CHECK(cuda->event_elapsed_time(&ms, last, last) == 400);
    CHECK(cuda->event_destroy(last) == 0); /* perhaps before it is reached */
    CHECK(cuda->stream_destroy(rank->stream) == 0);
    free(in);
    return 0;
}

/* Work is done in the order given, and an event is reached after it. */
static void test_stream_order(void **state)
{
    (void)state;
    story_run(TWO, stream_order);
}

static int late_context(struct rank *rank)
{
    uint64_t start = now_ms();

    rank_open(rank);
    return now_ms() - start < 300;
}

/* A context can take its time, and can be refused. */
static void test_context_faults(void **state)
{
    (void)state;
    story_run(TWO "fault late 300ms at context", late_context);
    story_run(TWO "fault gpu 1 late 9m at context\n"
                  "fault gpu 0 late 300ms at context call 1",
              late_context);
}

static int never_gets_here(struct rank *rank)
{
    (void)doubles_open(&rank->doubles, rank->account->text);
    return 0;
}

/* A wrong scenario ends every process that opens a double. */
static void test_wrong_scenario(void **state)
{
    struct account account;

    (void)state;
    ranks_run(&(struct plan){"node * gpus many", 1, 1, 0, never_gets_here},
              &account);
    assert_int_equal(account.exit_code, -SIGABRT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_no_device),
        cmocka_unit_test(test_init_fails),
        cmocka_unit_test(test_facts),
        cmocka_unit_test(test_visible_devices),
        cmocka_unit_test(test_contexts),
        cmocka_unit_test(test_unavailable),
        cmocka_unit_test(test_exclusive),
        cmocka_unit_test(test_memory),
        cmocka_unit_test(test_fills),
        cmocka_unit_test(test_stream_order),
        cmocka_unit_test(test_context_faults),
        cmocka_unit_test(test_wrong_scenario),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
