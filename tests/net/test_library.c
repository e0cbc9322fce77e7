/* SPDX-License-Identifier: Apache-2.0 */
#include <elf.h>
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "worker/gpu_symbols.h"
#include "worker/library.h"
#include "worker/nccl_api.h"

/* PART has a build ID, DOUBLE is a double and has none; both know
 * ncclGetVersion only. NOT_A_LIBRARY is a text. */
static const char part[] = GPUL_TEST_PART;
static const char double_part[] = GPUL_TEST_DOUBLE;
static const char no_library[] = GPUL_TEST_SOURCE;

static const struct library_symbol symbols[] = {
    {"ncclGetVersion", offsetof(struct nccl_api, get_version), true},
    {"ncclGetLastError", offsetof(struct nccl_api, get_last_error), false},
};
static const struct library_table table = {"Test", "do something", symbols, 2,
                                           sizeof(struct nccl_api)};

/* What a failed call must have cleared. */
static void assert_closed(const struct library *lib, const struct nccl_api *api)
{
    assert_null(lib->handle);
    assert_string_equal(lib->path, "");
    assert_string_equal(lib->build_id, "");
    assert_string_equal(lib->passed_over, "");
    const struct nccl_api empty = {0};
    assert_memory_equal(api, &empty, sizeof(empty));
}

static int open_as(const struct library_table *as, const char *const *list,
                   size_t count, struct library *lib, struct gpul_error *err)
{
    struct nccl_api api;
    memset(lib, 0x55, sizeof(*lib));
    memset(&api, 0x55, sizeof(api));
    *err = (struct gpul_error){0};
    int rc = library_open(lib, &api, as, list, count, err);
    if (rc != 0) {
        assert_closed(lib, &api);
    } else {
        int version = 0;
        assert_int_equal(api.get_version(&version), NCCL_SUCCESS);
        assert_int_equal(version, 20304);
        assert_null(api.get_last_error);
        assert_null(api.comm_abort);
    }
    return rc;
}

/* The functions work, and the file and its build ID are named. */
static void test_open(void **state)
{
    (void)state;
    struct library lib;
    struct gpul_error err;
    const char *const list[] = {part};
    char path[PATH_MAX];
    assert_int_equal(open_as(&table, list, 1, &lib, &err), 0);
    assert_non_null(realpath(part, path));
    assert_string_equal(lib.path, path);
    assert_string_equal(lib.build_id, "0123456789abcdef0123456789abcdef");
    assert_false(lib.is_simulated);
    library_close(&lib);
    assert_null(lib.handle);
}

/* A link is followed to the file that was loaded. */
static void test_link(void **state)
{
    (void)state;
    char name[64];
    snprintf(name, sizeof(name), "./library-link-%d", (int)getpid());
    assert_int_equal(symlink(part, name), 0);
    struct library lib;
    struct gpul_error err;
    const char *const list[] = {name};
    char path[PATH_MAX];
    int rc = open_as(&table, list, 1, &lib, &err);
    unlink(name);
    assert_int_equal(rc, 0);
    assert_non_null(realpath(part, path));
    assert_string_equal(lib.path, path);
    library_close(&lib);
}

/* A double shows its mark; a file without build ID has an empty one. */
static void test_double(void **state)
{
    (void)state;
    struct library lib;
    struct gpul_error err;
    const char *const list[] = {double_part};
    assert_int_equal(open_as(&table, list, 1, &lib, &err), 0);
    assert_true(lib.is_simulated);
    assert_string_equal(lib.build_id, "");
    library_close(&lib);
}

/* Candidates that do not exist are passed over, the first that does is it. */
static void test_order(void **state)
{
    (void)state;
    struct library lib;
    struct gpul_error err;
    const char *const list[] = {"/nowhere/libx.so", "libgpul-nowhere.so", part,
                                double_part};
    assert_int_equal(open_as(&table, list, 4, &lib, &err), 0);
    assert_false(lib.is_simulated);
    library_close(&lib);
}

/* Where nothing exists, the last place and the remedy are named. */
static void test_not_found(void **state)
{
    (void)state;
    struct library lib;
    struct gpul_error err;
    const char *const files[] = {"libgpul-nowhere.so", "/nowhere/libx.so"};
    assert_int_equal(open_as(&table, files, 2, &lib, &err), GPUL_ENOTFOUND);
    assert_string_equal(err.text, "Test: /nowhere/libx.so: no such file; do "
                                  "something");
    const char *const names[] = {"/nowhere/libx.so", "libgpul-nowhere.so"};
    assert_int_equal(open_as(&table, names, 2, &lib, &err), GPUL_ENOTFOUND);
    assert_string_equal(err.text,
                        "Test: libgpul-nowhere.so: cannot open shared object "
                        "file: No such file or directory; do something");
    assert_int_equal(open_as(&table, NULL, 0, &lib, &err), GPUL_ENOTFOUND);
    assert_string_equal(err.text, "Test: no place to look at; do something");
}

/* A file that is there and is no library is the error: the search does not go
 * on, since training would stumble over the same file. */
static void test_damaged(void **state)
{
    (void)state;
    struct library lib;
    struct gpul_error err;
    char expected[PATH_MAX + 64];
    const char *const list[] = {no_library, part};
    assert_int_equal(open_as(&table, list, 2, &lib, &err), GPUL_EINVAL);
    snprintf(expected, sizeof(expected), "Test: %s: invalid ELF header",
             no_library);
    assert_string_equal(err.text, expected);
}

/* A copy of PART whose header has been changed at one place, for this test's
 * process only. */
static void make_changed(char name[64], const char *what, size_t offset,
                         unsigned char value)
{
    static char bytes[1 << 16];
    snprintf(name, 64, "./library-%s-%d", what, (int)getpid());
    FILE *in = fopen(part, "rb");
    FILE *out = fopen(name, "wb");
    assert_true(in != NULL && out != NULL);
    size_t n = fread(bytes, 1, sizeof(bytes), in);
    assert_in_range(n, sizeof(Elf64_Ehdr), sizeof(bytes) - 1);
    bytes[offset] = (char)value;
    assert_int_equal(fwrite(bytes, 1, n, out), n);
    fclose(in);
    fclose(out);
}

/* ld.so goes on past a library of another class or machine, and so do we; the
 * first one is told, and with nothing behind it it is in the error. */
static void test_foreign(void **state)
{
    (void)state;
    static const struct {
        const char *what;
        size_t offset;
        unsigned char value;
        const char *why;
    } cases[] = {
        {"class", EI_CLASS, 3, "not a 64-bit library"},
        {"machine", offsetof(Elf64_Ehdr, e_machine), EM_MIPS,
         "a library for another machine"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct library lib;
        struct gpul_error err;
        char name[64];
        char expected[200];
        make_changed(name, cases[i].what, cases[i].offset, cases[i].value);
        const char *const list[] = {name, "/nowhere/libx.so", part};
        assert_int_equal(open_as(&table, list, 3, &lib, &err), 0);
        snprintf(expected, sizeof(expected), "%s (%s)", name, cases[i].why);
        assert_string_equal(lib.passed_over, expected);
        library_close(&lib);
        assert_int_equal(open_as(&table, list, 2, &lib, &err), GPUL_ENOTFOUND);
        snprintf(expected, sizeof(expected),
                 "Test: /nowhere/libx.so: no such file; passed over: %s (%s); "
                 "do something",
                 name, cases[i].why);
        assert_string_equal(err.text, expected);
        assert_int_equal(open_as(&table, list, 1, &lib, &err), GPUL_EINVAL);
        unlink(name);
    }
}

/* A byte order that nothing here can read is an error of ld.so's, and ours. */
static void test_byte_order(void **state)
{
    (void)state;
    struct library lib;
    struct gpul_error err;
    char name[64];
    make_changed(name, "order", EI_DATA, ELFDATA2MSB);
    const char *const list[] = {name, part};
    int rc = open_as(&table, list, 2, &lib, &err);
    unlink(name);
    assert_int_equal(rc, GPUL_EINVAL);
    assert_non_null(strstr(err.text, "data encoding"));
}

/* The first required symbol that is missing is named, and the file with it. */
static void test_missing_symbol(void **state)
{
    (void)state;
    struct library lib;
    struct gpul_error err;
    char path[PATH_MAX];
    char expected[PATH_MAX + 64];
    const char *const list[] = {part, double_part};
    assert_int_equal(open_as(gpu_symbols_nccl(GPU_NVIDIA), list, 2, &lib, &err),
                     GPUL_EINVAL);
    assert_non_null(realpath(part, path));
    snprintf(expected, sizeof(expected),
             "NCCL: %s has no symbol ncclGetUniqueId: too old or damaged",
             path);
    assert_string_equal(err.text, expected);
    assert_int_equal(open_as(gpu_symbols_nccl(GPU_AMD), list, 1, &lib, &err),
                     GPUL_EINVAL);
    assert_memory_equal(err.text, "RCCL: ", strlen("RCCL: "));
}

/* Each table names every pointer of its struct once, in order, and no symbol
 * twice but "NONE". */
static void test_tables(void **state)
{
    (void)state;
    const struct library_table *const tables[] = {
        gpu_symbols_nccl(GPU_NVIDIA), gpu_symbols_nccl(GPU_AMD),
        gpu_symbols_cuda(GPU_NVIDIA), gpu_symbols_cuda(GPU_AMD),
        gpu_symbols_nvml(),
    };
    for (size_t t = 0; t < sizeof(tables) / sizeof(tables[0]); t++) {
        const struct library_table *one = tables[t];
        assert_int_equal(one->symbol_count * sizeof(void *), one->api_bytes);
        for (size_t i = 0; i < one->symbol_count; i++) {
            const struct library_symbol *symbol = &one->symbols[i];
            assert_int_equal(symbol->offset, i * sizeof(void *));
            if (strcmp(symbol->name, "NONE") == 0) {
                assert_false(symbol->is_required);
                continue;
            }
            for (size_t k = 0; k < i; k++) {
                assert_string_not_equal(symbol->name, one->symbols[k].name);
            }
        }
    }
}

/* Stubs are told by their folder, wherever that lies. */
static void test_stub_path(void **state)
{
    (void)state;
    assert_true(library_is_stub("/usr/local/cuda/lib64/stubs/libcuda.so"));
    assert_true(library_is_stub(GPUL_TEST_STUB));
    assert_false(library_is_stub("/usr/lib/x86_64-linux-gnu/libcuda.so.1"));
    assert_false(library_is_stub(""));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_open),
        cmocka_unit_test(test_link),
        cmocka_unit_test(test_double),
        cmocka_unit_test(test_order),
        cmocka_unit_test(test_not_found),
        cmocka_unit_test(test_damaged),
        cmocka_unit_test(test_tables),
        cmocka_unit_test(test_missing_symbol),
        cmocka_unit_test(test_stub_path),
        cmocka_unit_test(test_foreign),
        cmocka_unit_test(test_byte_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
