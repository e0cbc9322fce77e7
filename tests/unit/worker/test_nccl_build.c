/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <elf.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "worker/nccl_build.h"

/* The text of this version, and of no other, with digits behind its mark. */
static void test_find(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        const char *version;
        const char *expected;
    } cases[] = {
        {"x\nNCCL version 2.28.9+cuda13.0 and on", "2.28.9", "+cuda13.0"},
        {"NCCL version 2.8.3rc1+cuda11.10", "2.8.3", "+cuda11.10"},
        {"NCCL version 2.28.9+cuda12.4", "2.28.8", ""},
        {"NCCL version 2.28.91+cuda12.4", "2.28.9", ""},
        {"NCCL version 2.28.9 compiled with CUDA 13.0", "2.28.9", ""},
        {"NCCL version 2.28.9 %s NCCL version 2.28.9+cuda9.2", "2.28.9",
         "+cuda9.2"},
        {"NCCL version 2.28.9+cuda", "2.28.9", ""},
        {"NCCL version 2.28.9+cuda13", "2.28.9", ""},
        {"NCCL version 2.28.9+cuda13.", "2.28.9", ""},
        {"NCCL version 2.28.9+cuda.1", "2.28.9", ""},
        {"NCCL version 2.28.9+hip6.0", "2.28.9", ""},
        {"NCCL version 2.28.9", "2.28.9", ""},
        {"NCCL version +cuda13.0", "", ""},
        {"NCCL version 2.28.9+cuda13.00000000000000000000000000000000",
         "2.28.9", ""},
        {"", "2.28.9", ""},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char out[NCCL_BUILD_BYTES];
        nccl_build_find(out, cases[i].text, strlen(cases[i].text),
                        cases[i].version);
        assert_string_equal(out, cases[i].expected);
    }
}

/* A file with one section of constants and one with their names. */
struct fake {
    ElfW(Ehdr) head;
    ElfW(Shdr) sections[3];
    char names[32];
    char text[64];
};

static struct fake make_file(const char *section, const char *text)
{
    struct fake f;
    memset(&f, 0, sizeof(f));
    memcpy(f.head.e_ident, ELFMAG, SELFMAG);
    f.head.e_shoff = offsetof(struct fake, sections);
    f.head.e_shentsize = sizeof(ElfW(Shdr));
    f.head.e_shnum = 3;
    f.head.e_shstrndx = 1;
    snprintf(f.names + 1, sizeof(f.names) - 1, "%s", section);
    f.sections[1].sh_offset = offsetof(struct fake, names);
    f.sections[1].sh_size = sizeof(f.names);
    snprintf(f.text, sizeof(f.text), "%s", text);
    f.sections[2].sh_type = SHT_PROGBITS;
    f.sections[2].sh_name = 1;
    f.sections[2].sh_offset = offsetof(struct fake, text);
    f.sections[2].sh_size = sizeof(f.text);
    return f;
}

static void expect_of(const struct fake *f, size_t bytes, const char *expected)
{
    char out[NCCL_BUILD_BYTES] = "x";
    char path[] = "/tmp/gpul-nccl-XXXXXX";
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, f, bytes), bytes);
    close(fd);
    nccl_build_read(out, path, "2.28.9");
    unlink(path);
    assert_string_equal(out, expected);
}

static const char wanted[] = "NCCL version 2.28.9+cuda13.0";

/* It is read from the constants, and from nothing that is not whole. */
static void test_read(void **state)
{
    (void)state;
    struct fake f = make_file(".rodata", wanted);
    expect_of(&f, sizeof(f), "+cuda13.0");
    expect_of(&f, sizeof(f) - 1, "");
    expect_of(&f, sizeof(f.head), "");
    expect_of(&f, 10, "");
    expect_of(&f, 0, "");
    f = make_file(".rodata.str1.1", wanted);
    expect_of(&f, sizeof(f), "+cuda13.0");
    f = make_file(".nv_fatbin", wanted);
    expect_of(&f, sizeof(f), "");
    f = make_file(".rodata", "other words");
    expect_of(&f, sizeof(f), "");
}

/* A file that lies about itself is not followed. */
static void test_damaged(void **state)
{
    (void)state;
    char out[NCCL_BUILD_BYTES] = "x";
    struct fake f = make_file(".rodata", wanted);
    f.head.e_shstrndx = 3;
    expect_of(&f, sizeof(f), "");
    f = make_file(".rodata", wanted);
    f.head.e_shentsize = 1;
    expect_of(&f, sizeof(f), "");
    f = make_file(".rodata", wanted);
    f.head.e_shnum = 0;
    expect_of(&f, sizeof(f), "");
    f = make_file(".rodata", wanted);
    f.head.e_shoff = UINT64_MAX;
    expect_of(&f, sizeof(f), "");
    f = make_file(".rodata", wanted);
    f.sections[1].sh_size = UINT64_MAX;
    expect_of(&f, sizeof(f), "");
    f = make_file(".rodata", wanted);
    f.sections[2].sh_size = UINT64_MAX;
    expect_of(&f, sizeof(f), "");
    f = make_file(".rodata", wanted);
    f.sections[2].sh_name = UINT32_MAX;
    expect_of(&f, sizeof(f), "");
    f = make_file(".rodata", wanted);
    f.head.e_ident[0] = 0;
    expect_of(&f, sizeof(f), "");
    nccl_build_read(out, "/nonexistent", "2.28.9");
    assert_string_equal(out, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_find),
        cmocka_unit_test(test_read),
        cmocka_unit_test(test_damaged),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
