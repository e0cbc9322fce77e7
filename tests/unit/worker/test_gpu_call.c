/* SPDX-License-Identifier: Apache-2.0
 *
 * How calls of CUDA and NCCL fail and are waited for, with libraries of four
 * functions each.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "worker/gpu_call.h"

static struct {
    int async[4]; /* results of ncclCommGetAsyncError, the last for ever */
    size_t asked;
    int async_call;
    int event; /* result of cuEventQuery */
    const char *last_error;
    char told[256];
} library;

static int get_error_name(int result, const char **text)
{
    *text = "CUDA_ERROR_SOME";
    return result == 999 ? 1 : 0;
}

static int get_error_string(int result, const char **text)
{
    (void)result;
    *text = "some error";
    return 0;
}

static int event_query(struct cuda_event *event)
{
    (void)event;
    return library.event;
}

static int event_record(struct cuda_event *event, struct cuda_stream *stream)
{
    (void)event;
    (void)stream;
    return 0;
}

static const char *nccl_error_string(int result)
{
    return result > 8 ? "unknown result code" : "an error";
}

static const char *nccl_last_error(struct nccl_comm *comm)
{
    (void)comm;
    return library.last_error;
}

static int nccl_async_error(struct nccl_comm *comm, int *result)
{
    (void)comm;
    *result = library.async[library.asked];
    library.asked += library.asked < 3;
    return library.async_call;
}

static const struct cuda_api cuda = {
    .get_error_name = get_error_name,
    .get_error_string = get_error_string,
    .event_query = event_query,
    .event_record = event_record,
};
static const struct nccl_api nccl = {
    .get_error_string = nccl_error_string,
    .get_last_error = nccl_last_error,
    .comm_get_async_error = nccl_async_error,
};

static struct gpu gpu;
static struct gpul_error err;

static void on_words(void *arg, const char *words)
{
    snprintf(library.told, sizeof(library.told), "%s", words);
    atomic_store(&((struct gpu *)arg)->stop, true);
}

static int setup(void **state)
{
    static char a_communicator;
    (void)state;
    memset(&library, 0, sizeof(library));
    memset(&gpu, 0, sizeof(gpu));
    gpu.cuda = &cuda;
    gpu.nccl = &nccl;
    atomic_store(&gpu.comm, (struct nccl_comm *)(void *)&a_communicator);
    return 0;
}

/* The driver's words, number and name; a number alone where it has none. */
static void test_cuda_error(void **state)
{
    (void)state;
    assert_int_equal(gpu_cuda_check(&gpu, "memory", 0, &err), 0);
    assert_int_equal(gpu_cuda_check(&gpu, "memory", 2, &err), GPUL_ESYS);
    assert_string_equal(err.text,
                        "memory: some error (CUDA error 2, CUDA_ERROR_SOME)");
    assert_int_equal(gpu_cuda_check(&gpu, "memory", 999, &err), GPUL_ESYS);
    assert_string_equal(err.text, "memory: CUDA error 999");
    assert_string_equal(gpu.words, "");
}

/* NCCL's text and number, its last words without what they begin and end
 * with; the first failure's words stay. */
static void test_nccl_error(void **state)
{
    (void)state;
    library.last_error = "\n rank 3 \x01 said no \n";
    assert_int_equal(gpu_nccl_check(&gpu, "ncclSend", 0, &err), 0);
    assert_int_equal(gpu_nccl_check(&gpu, "ncclSend", 5, &err), GPUL_ESYS);
    assert_string_equal(err.text, "ncclSend: an error (NCCL error 5)");
    assert_string_equal(gpu.words, "rank 3 ? said no");
    assert_false(gpu.is_remote);
    library.last_error = "another";
    assert_int_equal(gpu_nccl_check(&gpu, "ncclSend", 77, &err), GPUL_ESYS);
    assert_string_equal(err.text,
                        "ncclSend: unknown result code (NCCL error 77)");
    assert_string_equal(gpu.words, "rank 3 ? said no");
}

/* Code 6, or words of a connection that a peer has ended, are remote; a
 * library without last words has none. */
static void test_remote(void **state)
{
    (void)state;
    static const struct {
        int code;
        const char *words;
        bool is_remote;
    } rows[] = {
        {6, NULL, true},
        {6, "x", true},
        {2, "recv: Connection closed by remote peer 10.0.0.2<4711>", true},
        {2, "connect: connection refused", true},
        {2, "Connection reset by peer", true},
        {2, "Broken pipe", true},
        {2, "No space left on device", false},
        {1, NULL, false},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        setup(NULL);
        library.last_error = rows[i].words;
        assert_int_equal(gpu_nccl_check(&gpu, "c", rows[i].code, &err),
                         GPUL_ESYS);
        assert_int_equal(gpu.is_remote, rows[i].is_remote);
    }
}

/* In progress is waited for: to a success, to an error, or until asking
 * itself fails. */
static void test_in_progress(void **state)
{
    (void)state;
    library.async[0] = NCCL_IN_PROGRESS;
    library.async[1] = NCCL_IN_PROGRESS;
    assert_int_equal(gpu_nccl_check(&gpu, "c", NCCL_IN_PROGRESS, &err), 0);
    assert_int_equal(library.asked, 3);

    setup(NULL);
    library.async[0] = NCCL_IN_PROGRESS;
    library.async[1] = NCCL_SYSTEM_ERROR;
    assert_int_equal(gpu_nccl_check(&gpu, "c", NCCL_IN_PROGRESS, &err),
                     GPUL_ESYS);
    assert_string_equal(err.text, "c: an error (NCCL error 2)");

    setup(NULL);
    library.async_call = NCCL_INVALID_ARGUMENT;
    assert_int_equal(gpu_nccl_check(&gpu, "c", NCCL_IN_PROGRESS, &err),
                     GPUL_ESYS);
    assert_string_equal(err.text,
                        "ncclCommGetAsyncError: an error (NCCL error 4)");
}

/* An event: reached, failed, or in the way of an error of the communicator. */
static void test_event(void **state)
{
    (void)state;
    assert_int_equal(gpu_stream_wait(&gpu, "copy", &err), 0);
    library.event = 700;
    assert_int_equal(gpu_stream_wait(&gpu, "copy", &err), GPUL_ESYS);
    assert_string_equal(err.text,
                        "copy: some error (CUDA error 700, CUDA_ERROR_SOME)");
    library.event = CUDA_RESULT_NOT_READY;
    library.async[1] = NCCL_REMOTE_ERROR;
    assert_int_equal(gpu_stream_wait(&gpu, "copy", &err), GPUL_ESYS);
    assert_string_equal(err.text, "copy: an error (NCCL error 6)");
    assert_true(gpu.is_remote);
}

/* Told to stop, either wait ends; without a communicator too. */
static void test_stop(void **state)
{
    (void)state;
    atomic_store(&gpu.stop, true);
    library.event = CUDA_RESULT_NOT_READY;
    for (size_t i = 0; i < 4; i++) {
        library.async[i] = NCCL_IN_PROGRESS;
    }
    assert_int_equal(gpu_nccl_check(&gpu, "c", NCCL_IN_PROGRESS, &err),
                     GPUL_ECLOSED);
    assert_string_equal(err.text, "c: stopped");
    assert_int_equal(gpu_stream_wait(&gpu, "copy", &err), GPUL_ECLOSED);
    atomic_store(&gpu.comm, NULL);
    assert_int_equal(gpu_stream_wait(&gpu, "copy", &err), GPUL_ECLOSED);
    assert_string_equal(err.text, "copy: stopped");
}

/* In a long wait NCCL's words are told. */
static void test_words_while_waiting(void **state)
{
    (void)state;
    gpu.on_words = on_words;
    gpu.arg = &gpu;
    library.last_error = "retrying\n";
    for (size_t i = 0; i < 4; i++) {
        library.async[i] = NCCL_IN_PROGRESS;
    }
    assert_int_equal(gpu_nccl_check(&gpu, "c", NCCL_IN_PROGRESS, &err),
                     GPUL_ECLOSED);
    assert_string_equal(library.told, "retrying");
    assert_string_equal(gpu.words, ""); /* of failures only */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_cuda_error, setup),
        cmocka_unit_test_setup(test_nccl_error, setup),
        cmocka_unit_test_setup(test_remote, setup),
        cmocka_unit_test_setup(test_in_progress, setup),
        cmocka_unit_test_setup(test_event, setup),
        cmocka_unit_test_setup(test_stop, setup),
        cmocka_unit_test_setup(test_words_while_waiting, setup),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
