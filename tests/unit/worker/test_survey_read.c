/* SPDX-License-Identifier: Apache-2.0
 *
 * Settings, files and storage; and all themes at once, one of which hangs or
 * crashes.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/children.h"
#include "common/clock.h"
#include "proto/limits.h"
#include "tests/unit/worker/survey_stage.h"

static char *below(const char *path)
{
    static char whole[512];
    snprintf(whole, sizeof(whole), "%s%s", stage_root, path);
    return whole;
}

/* ---- settings ------------------------------------------------------------ */

static void test_environment(void **state)
{
    (void)state;
    char home[600], chosen[600];
    snprintf(home, sizeof(home), "HOME=%s", below("/home"));
    char longest[512] = "NCCL_LONG=";
    memset(longest + strlen(longest), 'x', 400);
    const char *environment[] = {home,
                                 "NCCL_DEBUG=INFO",
                                 "NCCL_EMPTY=",
                                 "NCCL_API_KEY=hunter2",
                                 "MY_TOKEN=hunter2",
                                 longest,
                                 NULL,
                                 NULL};
    stage_request.environment = environment;
    stage_look(survey_environment);
    stage_expect("env.NCCL_DEBUG", "INFO");
    stage_expect("env.NCCL_EMPTY", "empty");
    stage_expect_absent("env.MY_TOKEN");
    stage_expect("environment.count", "4");
    stage_expect("nccl.conf.etc", "none");
    stage_expect("nccl.conf.user", "none");
    char digest[64], other[64];
    snprintf(digest, sizeof(digest), "%s", stage_value("env.NCCL_API_KEY"));
    assert_int_equal(strlen(digest), strlen("digest ") + 32);
    assert_memory_equal(stage_value("env.NCCL_LONG"), "digest ", 7);
    for (size_t i = 0; i < stage_survey.message.n_facts; i++) {
        assert_null(strstr(stage_survey.message.facts[i]->value, "hunter2"));
    }
    /* Equal for one job, and another one in the next. */
    stage_look(survey_environment);
    stage_expect("env.NCCL_API_KEY", digest);
    stage_request.salt = "another job";
    stage_look(survey_environment);
    snprintf(other, sizeof(other), "%s", stage_value("env.NCCL_API_KEY"));
    assert_string_not_equal(digest, other);

    stage_put("/etc/nccl.conf", "# all\nNCCL_ALGO=Ring\nNCCL_PROTO=LL\n");
    stage_put("/home/.nccl.conf", "NCCL_DEBUG=WARN\n");
    stage_look(survey_environment);
    assert_memory_equal(stage_value("nccl.conf.etc"),
                        "sets NCCL_ALGO NCCL_PROTO, digest ", 34);
    assert_memory_equal(stage_value("nccl.conf.user"),
                        "sets NCCL_DEBUG, digest ", 24);
    snprintf(chosen, sizeof(chosen), "NCCL_CONF_FILE=%s", below("/other"));
    environment[6] = chosen;
    stage_look(survey_environment);
    stage_expect("nccl.conf.user", "none");
    stage_request.environment = NULL;
}

/* An ELF file with a build ID, of one header and one note. */
static void put_library(const char *path, uint8_t last)
{
    uint8_t file[256] = {0x7f, 'E', 'L', 'F', 2, 1, 1};
    file[32] = 64;      /* e_phoff */
    file[54] = 56;      /* e_phentsize */
    file[56] = 1;       /* e_phnum */
    file[64] = 4;       /* PT_NOTE */
    file[64 + 8] = 128; /* p_offset */
    file[64 + 32] = 24; /* p_filesz */
    file[128] = 4;      /* n_namesz */
    file[132] = 8;      /* n_descsz */
    file[136] = 3;      /* NT_GNU_BUILD_ID */
    memcpy(file + 140, "GNU", 4);
    memcpy(file + 144, (uint8_t[]){0xde, 0xad, 0xbe, 0xef, 1, 2, 3, last}, 8);
    stage_put_bytes(path, file, sizeof(file));
}

static void test_software(void **state)
{
    (void)state;
    char expected[600], libraries[600], path[600];
    snprintf(libraries, sizeof(libraries), "LD_LIBRARY_PATH=%s", below("/lib"));
    snprintf(path, sizeof(path), "PATH=%s", below("/bin"));
    const char *const environment[] = {libraries, path, NULL};
    stage_request.environment = environment;
    stage_request.command = "train";
    put_library("/lib/libcudart.so.12", 4);
    stage_put("/bin/python3", "");
    chmod(below("/bin/python3"), 0700);
    stage_put("/bin/train", "");
    stage_look(survey_software);
    snprintf(expected, sizeof(expected),
             "%s (256 bytes, build deadbeef01020304)",
             below("/lib/libcudart.so.12"));
    stage_expect("lib.libcudart", expected);
    stage_expect("python.path", below("/bin/python3"));
    stage_expect("command.path", "missing: train: Permission denied");
    chmod(below("/bin/train"), 0700);
    stage_look(survey_software);
    stage_expect("command.path", below("/bin/train"));
    stage_request.command = "nowhere";
    stage_look(survey_software);
    stage_expect("command.path", "missing: nowhere: No such file or directory");
    /* A path is not looked for in PATH, and a folder is no program. */
    stage_request.command = "bin";
    stage_request.working_directory = stage_root;
    stage_look(survey_software);
    stage_request.command = "./bin";
    stage_look(survey_software);
    stage_expect("command.path", "missing: ./bin: Permission denied");
    stage_request.command = "bin/train";
    stage_look(survey_software);
    stage_expect("command.path", below("/bin/train"));
    stage_request.command = NULL;
    stage_look(survey_software);
    stage_expect_absent("command.path");
    stage_request.environment = NULL;
}

/* ---- storage ------------------------------------------------------------- */

static void test_storage(void **state)
{
    (void)state;
    char folder[512], mounts[1024];
    stage_look(survey_storage);
    assert_int_equal(stage_survey.message.n_facts, 0);
    snprintf(folder, sizeof(folder), "%s", below("/data"));
    stage_request.data_dir = folder;
    stage_look(survey_storage);
    stage_expect_unknown("data.sequential", "No such file");
    mkdir(folder, 0700);
    stage_look(survey_storage);
    stage_expect_unknown("data.small_files", "no file is below");
    for (int i = 0; i < 20; i++) {
        char path[64];
        snprintf(path, sizeof(path), "/data/a/%d", i);
        stage_put(path, "some bytes of a sample");
    }
    snprintf(mounts, sizeof(mounts),
             "22 27 0:21 / / rw - ext4 /dev/vda rw\n"
             "23 27 0:22 / %s/dat rw - tmpfs none rw\n"
             "24 27 0:23 / %s rw,x shared:1 - nfs4 server:/export rw\n",
             stage_root, folder);
    stage_put("/proc/self/mountinfo", mounts);
    stage_look(survey_storage);
    snprintf(mounts, sizeof(mounts), "nfs4 server:/export at %.64s", folder);
    stage_expect("data.filesystem", mounts);
    stage_expect("data.sequential", "none");
    assert_true(strtod(stage_value("data.small_files"), NULL) > 0);
    stage_value("data.small_files_are_cached");
    stage_request.data_dir = NULL;
}

/* 64 MiB are enough; a hole is read as fast as anything. */
static void test_large_file(void **state)
{
    (void)state;
    char folder[512];
    snprintf(folder, sizeof(folder), "%s", below("/data"));
    stage_put("/data/deep/large", "x");
    assert_int_equal(truncate(below("/data/deep/large"), 64 << 20), 0);
    stage_request.data_dir = folder;
    stage_look(survey_storage);
    assert_true(strtod(stage_value("data.sequential"), NULL) > 1e6);
    stage_value("data.sequential_is_cached");
    stage_expect("data.small_files", "none");
    assert_int_equal(truncate(below("/data/deep/large"), (64 << 20) - 1), 0);
    stage_look(survey_storage);
    stage_expect("data.sequential", "none");
    stage_request.data_dir = NULL;
}

/* ---- all themes ---------------------------------------------------------- */

static void read_all(void)
{
    struct gpul_error err = {0};
    survey_release(&stage_survey);
    if (survey_read(&stage_survey, &stage_request, &err) != 0) {
        fail_msg("%s", err.text);
    }
}

static bool has_children(void)
{
    pid_t pids[4];
    return gpul_children_find(pids, 4) > 0;
}

/* Is `key`, or all with its beginning, in docs/checks.md? */
static bool is_documented(const char *page, const char *key)
{
    char word[GPUL_FACT_KEY_BYTES_MAX + 8];
    const char *point = strchr(key, '.');
    snprintf(word, sizeof(word), "`%s`", key);
    for (; point != NULL && strstr(page, word) == NULL;
         point = strchr(point + 1, '.')) {
        snprintf(word, sizeof(word), "`%.*s.*`", (int)(point - key), key);
    }
    return strstr(page, word) != NULL;
}

static void expect_documented(void)
{
    enum { BYTES_MAX = 256 << 10 };
    FILE *f = fopen(SOURCE_DIR "/docs/checks.md", "r");
    char *page = malloc(BYTES_MAX);
    assert_true(f != NULL && page != NULL);
    page[fread(page, 1, BYTES_MAX - 1, f)] = 0;
    fclose(f);
    for (size_t i = 0; i < stage_survey.message.n_facts; i++) {
        const char *key = stage_survey.message.facts[i]->key;
        if (!is_documented(page, key)) {
            fail_msg("docs/checks.md says nothing of %s", key);
        }
    }
    free(page);
}

/* This very machine: facts of every theme, and none is beyond the wire. */
static void test_here(void **state)
{
    (void)state;
    extern char **environ;
    stage_request.root = "";
    stage_request.environment = (const char *const *)environ;
    read_all();
    stage_value("os.kernel");
    stage_value("cpu.allowed");
    stage_value("memory.total");
    stage_value("limit.nofile.hard");
    stage_value("pids.limit");
    stage_value("pci.narrow");
    stage_value("nvidia.count");
    stage_value("rdma.ports");
    stage_value("net.cards");
    stage_value("net.hostname");
    stage_value("environment.count");
    stage_value("lib.libnccl");
    stage_expect_absent("survey.os");
    assert_true(gpul__survey__get_packed_size(&stage_survey.message) <=
                GPUL_SURVEY_BYTES_MAX);
    assert_false(has_children());
    expect_documented();
    stage_request.root = stage_root;
    stage_request.environment = NULL;
}

/* Opening a pipe that nobody writes to lasts for ever. What was told before
 * is there, and so is all of the other themes. */
static void test_hang(void **state)
{
    (void)state;
    stage_put("/sys/devices/pci0000:00/0000:00:01.0/0000:01:00.0/class",
              "0x020000\n");
    stage_link("/sys/bus/pci/devices/0000:01:00.0",
               "../../../devices/pci0000:00/0000:00:01.0/0000:01:00.0");
    stage_link("/sys/bus/pci/devices/0000:00:01.0",
               "../../../devices/pci0000:00/0000:00:01.0");
    assert_int_equal(
        mkfifo(below("/sys/devices/pci0000:00/0000:00:01.0/config"), 0600), 0);
    stage_put("/proc/uptime", "1.0 1.0\n");
    stage_request.deadline_ms = 1000;
    uint64_t begin_ms = gpul_clock_ms();
    read_all();
    assert_true(gpul_clock_ms() - begin_ms >= 1000);
    stage_expect("pci.narrow", "none");
    stage_expect_absent("pci.acs");
    stage_expect_unknown("survey.pci", "no answer within 1 s");
    stage_expect("rdma.ports", "0");
    stage_expect_absent("survey.rdma");
    while (wait(NULL) > 0) {
        /* the one that was killed */
    }
}

static void test_crash(void **state)
{
    (void)state;
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    skip();
#endif
    const char *const environment[] = {(const char *)1, NULL};
    stage_request.environment = environment;
    signal(SIGSEGV, SIG_DFL); /* the test's own handler would go on */
    read_all();
    stage_request.environment = NULL;
    stage_expect_unknown("survey.env", "signal 11");
    stage_expect_unknown("survey.nccl", "signal 11");
    stage_expect("rdma.ports", "0");
    assert_false(has_children());
}

#define TEST(function)                                                         \
    cmocka_unit_test_setup_teardown(function, stage_set, stage_clear)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_environment), TEST(test_software), TEST(test_storage),
        TEST(test_large_file),  TEST(test_here),     TEST(test_hang),
        TEST(test_crash),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
