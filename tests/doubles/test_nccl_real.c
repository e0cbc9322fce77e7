/* SPDX-License-Identifier: Apache-2.0
 *
 * Double and real library side by side, in what the real one does without a
 * device. Skipped where there is no real libnccl. */
#include <dlfcn.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <arpa/inet.h>
#include <cmocka.h>

#include "tests/doubles/ranks.h"

static struct nccl_api real;
static struct doubles doubles;

/* The real library, by its name or where a toolkit puts it. */
static bool real_open(void)
{
    static const char *const names[] = {
        "libnccl.so.2",
        "/usr/local/cuda/lib64/libnccl.so.2",
        "/usr/local/cuda/lib/libnccl.so.2",
    };
    void *library = NULL;

    for (size_t i = 0; !library && i < sizeof names / sizeof names[0]; i++)
        library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
    if (!library || dlsym(library, GPU_DOUBLE_MARKER))
        return false;
#define X(need, result, member, parameters, symbol)                            \
    {                                                                          \
        void *found = dlsym(library, #symbol);                                 \
        memcpy(&real.member, &found, sizeof found);                            \
    }
    NCCL_API_MAP(X)
#undef X
    return real.get_version && real.get_unique_id && real.get_error_string;
}

/* All texts of codes are the same, known or not, as far as the real one's
 * release goes. */
static void test_error_strings(void **state)
{
    (void)state;
    for (int code = -1; code < 12; code++) {
        if (code == 8) /* new in 2.29 */
            continue;
        assert_string_equal(doubles.nccl.get_error_string(code),
                            real.get_error_string(code));
    }
}

/* Both tell a version, and refuse to tell it to nobody. */
static void test_version(void **state)
{
    int version = 0;

    (void)state;
    assert_int_equal(real.get_version(&version), NCCL_SUCCESS);
    print_message("real libnccl: version %d\n", version);
    assert_in_range(version, NCCL_VERSION_LEAST, 99999);
    assert_int_equal(doubles.nccl.get_version(&version), NCCL_SUCCESS);
    assert_int_equal(real.get_version(NULL), doubles.nccl.get_version(NULL));
}

/* Where the ID of a library says that its root listens. */
static void listens(const struct nccl_api *nccl)
{
    struct nccl_unique_id id;
    struct sockaddr_in address;

    assert_int_equal(nccl->get_unique_id(&id), NCCL_SUCCESS);
    memcpy(&address, id.internal + 8, sizeof address);
    assert_int_equal(address.sin_family, AF_INET);
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    assert_int_equal(connect(fd, (void *)&address, sizeof address), 0);
    assert_int_equal(close(fd), 0);
}

/* Both IDs hold, at the same place, an address where a root listens. */
static void test_unique_id(void **state)
{
    (void)state;
    listens(&real);
    listens(&doubles.nccl);
}

/* Arguments that are missing: the same code and the same words. */
static void test_missing_arguments(void **state)
{
    const struct nccl_api *both[] = {&real, &doubles.nccl};
    char texts[2][4][RANKS_TEXT];
    int codes[2][4], value = 0;

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        const struct nccl_api *nccl = both[i];
        codes[i][0] = nccl->get_unique_id(NULL);
        (void)snprintf(texts[i][0], RANKS_TEXT, "%s",
                       nccl->get_last_error(NULL));
        codes[i][1] = nccl->comm_get_async_error(NULL, &value);
        (void)snprintf(texts[i][1], RANKS_TEXT, "%s",
                       nccl->get_last_error(NULL));
        codes[i][2] = nccl->comm_count(NULL, &value);
        (void)snprintf(texts[i][2], RANKS_TEXT, "%s",
                       nccl->get_last_error(NULL));
        codes[i][3] =
            nccl->all_reduce(NULL, NULL, 1, NCCL_INT32, NCCL_SUM, NULL, NULL);
        (void)snprintf(texts[i][3], RANKS_TEXT, "%s",
                       nccl->get_last_error(NULL));
    }
    for (size_t call = 0; call < 4; call++) {
        assert_int_equal(codes[1][call], codes[0][call]);
        assert_string_equal(texts[1][call], texts[0][call]);
    }
}

/* What is nothing may be aborted, destroyed and finalized; a group that was
 * not begun cannot end. */
static void test_nothing(void **state)
{
    (void)state;
    assert_int_equal(doubles.nccl.comm_abort(NULL), real.comm_abort(NULL));
    assert_int_equal(doubles.nccl.comm_destroy(NULL), real.comm_destroy(NULL));
    assert_int_equal(doubles.nccl.comm_finalize(NULL),
                     real.comm_finalize(NULL));
    assert_int_equal(doubles.nccl.group_end(), real.group_end());
    assert_string_equal(doubles.nccl.get_last_error(NULL),
                        real.get_last_error(NULL));
    assert_int_equal(real.group_start(), NCCL_SUCCESS);
    assert_int_equal(doubles.nccl.group_start(), NCCL_SUCCESS);
    assert_int_equal(doubles.nccl.group_end(), real.group_end());
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_error_strings),
        cmocka_unit_test(test_version),
        cmocka_unit_test(test_unique_id),
        cmocka_unit_test(test_missing_arguments),
        cmocka_unit_test(test_nothing),
    };
    char missing[RANKS_TEXT];

    (void)unsetenv("GPULAUNCH_DOUBLE_SCENARIO");
    if (!real_open()) {
        (void)puts("skipped: no libnccl.so.2 on this machine");
        return 77;
    }
    if (!doubles_open(&doubles, missing))
        return 1;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
