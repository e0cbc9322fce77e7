/* SPDX-License-Identifier: Apache-2.0
 *
 * The GPU libraries of the machine that runs the test. Where one is needed
 * and not installed the test is skipped, and says so.
 */
#include <dlfcn.h>
#include <ifaddrs.h>
#include <limits.h>
#include <netdb.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "worker/gpu_facts.h"
#include "worker/unique_id.h"

static struct gpu_facts *read_facts(const struct gpu_facts_request *request)
{
    struct gpu_facts *facts = malloc(sizeof(*facts));
    assert_non_null(facts);
    assert_int_equal(gpu_facts_read(facts, request, NULL), 0);
    return facts;
}

static void release(struct gpu_facts *facts)
{
    gpu_facts_release(facts);
    free(facts);
}

static bool has_driver(void)
{
    void *handle = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (handle != NULL) {
        dlclose(handle);
    }
    return handle != NULL;
}

/* Without a driver there is one clear line, no device and no version. */
static void test_no_driver(void **state)
{
    (void)state;
    if (has_driver()) {
        print_message("skipped: this machine has a GPU driver\n");
        skip();
    }
    const struct gpu_facts_request request = {0};
    struct gpu_facts *facts = read_facts(&request);
    assert_string_equal(facts->error,
                        "CUDA driver: libcuda.so.1: cannot open shared object "
                        "file: No such file or directory; install the NVIDIA "
                        "driver");
    assert_string_equal(facts->cuda.error, facts->error);
    assert_string_equal(facts->cuda.version, "");
    assert_string_equal(facts->nvml.error,
                        "NVML: libnvidia-ml.so.1: cannot open shared object "
                        "file: No such file or directory; install the NVIDIA "
                        "driver");
    assert_int_equal(facts->maker, GPU_NVIDIA);
    assert_int_equal(facts->device_count, 0);
    assert_string_equal(facts->driver_version, "");
    assert_false(gpu_facts_are_simulated(facts));
    release(facts);
}

/* Where the GPUs are AMD's, what is missing is ROCm. */
static void test_no_rocm(void **state)
{
    (void)state;
    if (has_driver()) {
        print_message("skipped: this machine has a GPU driver\n");
        skip();
    }
    const struct gpu_facts_request request = {.has_amd = true};
    struct gpu_facts *facts = read_facts(&request);
    assert_int_equal(facts->maker, GPU_AMD);
    assert_memory_equal(facts->error, "HIP: ", strlen("HIP: "));
    assert_non_null(strstr(facts->error, "; install ROCm"));
    release(facts);
}

/* The stub that CUDA's toolkit has for linking is told from a driver. */
static void test_stub(void **state)
{
    (void)state;
    const char *const environment[] = {"LD_LIBRARY_PATH=" GPUL_TEST_STUB_FOLDER,
                                       NULL};
    const struct gpu_facts_request request = {.environment = environment};
    struct gpu_facts *facts = read_facts(&request);
    char path[PATH_MAX];
    char expected[PATH_MAX + 256];
    assert_non_null(realpath(GPUL_TEST_STUB, path));
    snprintf(expected, sizeof(expected),
             "CUDA driver: %.300s is only a stub for linking, not a driver; "
             "take its folder out of LD_LIBRARY_PATH and install the driver",
             path);
    assert_string_equal(facts->cuda.error, expected);
    assert_string_equal(facts->cuda.file.path, path);
    release(facts);
}

/* Where NVIDIA's driver does not exist and AMD's does, the libraries are
 * AMD's, filled into the same tables. */
static void test_hip(void **state)
{
    (void)state;
    if (has_driver()) {
        print_message("skipped: this machine has a GPU driver\n");
        skip();
    }
    const char *const environment[] = {"LD_LIBRARY_PATH=" GPUL_TEST_HIP_FOLDER,
                                       NULL};
    const struct gpu_facts_request request = {.nccl_path = GPUL_TEST_PART,
                                              .environment = environment};
    struct gpu_facts *facts = read_facts(&request);
    assert_int_equal(facts->maker, GPU_AMD);
    assert_string_equal(facts->error, "HIP: error 100");
    assert_non_null(facts->cuda_api.device_get_uuid);
    assert_null(facts->cuda_api.device_get_uuid_v2);
    assert_memory_equal(facts->nccl.error, "RCCL: ", strlen("RCCL: "));
    assert_string_equal(facts->nvml.error, ""); /* not looked for */
    release(facts);
}

/* NVML tells the devices that the ranks will see, and the driver's version,
 * even where the CUDA library cannot be used: that is told beside it. */
static void test_nvml(void **state)
{
    (void)state;
    static const struct {
        const char *visible;
        size_t count;
        const char *first;
        const char *refused;
        const char *error;
    } cases[] = {
        {"OTHER=", 2, "GPU-0", "", ""},
        {"CUDA_VISIBLE_DEVICES=1", 1, "GPU-1", "", ""},
        {"CUDA_VISIBLE_DEVICES=GPU-1,0", 2, "GPU-1", "", ""},
        {"CUDA_VISIBLE_DEVICES=0,5", 1, "GPU-0", "5", ""},
        {"CUDA_VISIBLE_DEVICES=", 0, NULL, "",
         "CUDA_VISIBLE_DEVICES= leaves none of 2 GPUs"},
        {"CUDA_VISIBLE_DEVICES=7", 0, NULL, "7",
         "CUDA_VISIBLE_DEVICES=7 leaves none of 2 GPUs: there is no \"7\""},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const char *const environment[] = {
            cases[i].visible,
            "LD_LIBRARY_PATH=" GPUL_TEST_NVML_FOLDER ":" GPUL_TEST_STUB_FOLDER,
            NULL};
        const struct gpu_facts_request request = {.nccl_path = GPUL_TEST_PART,
                                                  .environment = environment};
        struct gpu_facts *facts = read_facts(&request);
        assert_int_equal(facts->device_count, cases[i].count);
        if (cases[i].count > 0) {
            assert_string_equal(facts->devices[0].uuid, cases[i].first);
        }
        assert_string_equal(facts->refused, cases[i].refused);
        assert_string_equal(facts->error, cases[i].error);
        assert_string_equal(facts->nvml.error, "");
        assert_string_equal(facts->nvml.version, "13.580.65.06");
        assert_string_equal(facts->driver_version, "580.65.06");
        assert_true(facts->cuda.error[0] != 0);
        struct nvml_api nvml = facts->nvml_api;
        void *handle = dlopen(facts->nvml.file.path, RTLD_NOW);
        unsigned count;
        release(facts);
        assert_int_equal(nvml.device_get_count(&count),
                         NVML_RESULT_UNINITIALIZED); /* was shut down */
        dlclose(handle);
    }
}

/* A file of the user's choice that is no NCCL is refused, not replaced. */
static void test_chosen(void **state)
{
    (void)state;
    const struct gpu_facts_request request = {.nccl_path = GPUL_TEST_PART};
    struct gpu_facts *facts = read_facts(&request);
    assert_non_null(strstr(facts->nccl.error,
                           "has no symbol ncclGetUniqueId: too old or "
                           "damaged"));
    assert_string_equal(facts->nccl.version, "");
    assert_int_equal(facts->nccl.version_code, 0);
    release(facts);
}

/* ---- the real NCCL ------------------------------------------------------ */

/* The facts of the real NCCL of this machine, or a skipped test. */
static struct gpu_facts *read_nccl(void)
{
    const struct gpu_facts_request request = {0};
    struct gpu_facts *facts = read_facts(&request);
    if (facts->nccl.error[0] != 0) {
        print_message("skipped: %s\n", facts->nccl.error);
        release(facts);
        skip();
    }
    return facts;
}

/* Version, file and build ID of the real NCCL are told. */
static void test_nccl(void **state)
{
    (void)state;
    struct gpu_facts *facts = read_nccl();
    const struct gpu_library *nccl = &facts->nccl;
    int major;
    int minor;
    int patch;
    int cuda;
    assert_int_equal(sscanf(nccl->version, "%d.%d.%d+cuda%d.", &major, &minor,
                            &patch, &cuda),
                     4);
    assert_in_range(cuda, 8, 99);
    assert_int_equal(major, 2);
    assert_int_equal(nccl->version_code, major * 10000 + minor * 100 + patch);
    assert_in_range(nccl->version_code, NCCL_VERSION_LEAST, 29999);
    assert_int_equal(nccl->file.path[0], '/');
    assert_int_equal(access(nccl->file.path, R_OK), 0);
    assert_true(strlen(nccl->file.build_id) >= 32);
    assert_int_equal(strspn(nccl->file.build_id, "0123456789abcdef"),
                     strlen(nccl->file.build_id));
    assert_false(nccl->file.is_simulated);
    print_message("NCCL %s, build ID %s\n", nccl->version, nccl->file.build_id);
    release(facts);
}

/* NCCL listens with a thread of the process that makes an ID, so a child
 * makes it and lives until the test has looked. It never returns. */
static void make_id(const char *path, int out)
{
    struct library lib;
    struct nccl_api nccl;
    struct nccl_unique_id id = {{0}};
    if (library_open(&lib, &nccl, gpu_symbols_nccl(GPU_NVIDIA), &path, 1,
                     NULL) == 0 &&
        nccl.get_unique_id(&id) == NCCL_SUCCESS &&
        write(out, &id, sizeof(id)) == (ssize_t)sizeof(id)) {
        pause();
    }
    _exit(1);
}

static pid_t start_child(const char *path, struct nccl_unique_id *id)
{
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        close(ends[0]);
        make_id(path, ends[1]);
    }
    close(ends[1]);
    ssize_t n = read(ends[0], id, sizeof(*id));
    close(ends[0]);
    if (n != (ssize_t)sizeof(*id)) {
        waitpid(child, NULL, 0);
        fail_msg("the child made no unique ID");
    }
    return child;
}

static void end_child(pid_t child)
{
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
}

static bool is_ours(const char *address)
{
    struct ifaddrs *list = NULL;
    bool is_found = false;
    assert_int_equal(getifaddrs(&list), 0);
    for (const struct ifaddrs *i = list; i != NULL; i = i->ifa_next) {
        char text[NI_MAXHOST];
        int family = i->ifa_addr != NULL ? i->ifa_addr->sa_family : AF_UNSPEC;
        socklen_t bytes = family == AF_INET    ? sizeof(struct sockaddr_in)
                          : family == AF_INET6 ? sizeof(struct sockaddr_in6)
                                               : 0;
        if (bytes > 0 && getnameinfo(i->ifa_addr, bytes, text, sizeof(text),
                                     NULL, 0, NI_NUMERICHOST) == 0) {
            text[strcspn(text, "%")] = 0; /* the scope */
            is_found = is_found || strcmp(text, address) == 0;
        }
    }
    freeifaddrs(list);
    return is_found;
}

static bool answers(const struct unique_id_place *place)
{
    char port[8];
    struct addrinfo *to = NULL;
    const struct addrinfo hints = {.ai_flags = AI_NUMERICHOST,
                                   .ai_socktype = SOCK_STREAM};
    snprintf(port, sizeof(port), "%u", place->port);
    assert_int_equal(getaddrinfo(place->address, port, &hints, &to), 0);
    int fd = socket(to->ai_family, to->ai_socktype | SOCK_CLOEXEC, 0);
    assert_true(fd >= 0);
    int rc = connect(fd, to->ai_addr, to->ai_addrlen);
    close(fd);
    freeaddrinfo(to);
    return rc == 0;
}

/* The address in a real unique ID is one of this machine, and it is there
 * that NCCL listens: while its maker lives, and no longer. */
static void test_unique_id(void **state)
{
    (void)state;
    struct gpu_facts *facts = read_nccl();
    struct nccl_unique_id id;
    struct unique_id_place place;
    pid_t child = start_child(facts->nccl.file.path, &id);
    release(facts);
    bool is_decoded = unique_id_place(&place, &id);
    bool is_answered = is_decoded && answers(&place);
    end_child(child);
    assert_true(is_decoded);
    assert_true(is_answered);
    assert_true(is_ours(place.address));
    assert_false(answers(&place));
    print_message("a unique ID for %s port %u\n", place.address, place.port);
}

/* NCCL_SOCKET_IFNAME decides which address that is, and loopback is noted. */
static void test_loopback_id(void **state)
{
    (void)state;
    struct gpu_facts *facts = read_nccl();
    struct nccl_unique_id id;
    struct unique_id_place place;
    setenv("NCCL_SOCKET_IFNAME", "=lo", 1);
    pid_t child = start_child(facts->nccl.file.path, &id);
    unsetenv("NCCL_SOCKET_IFNAME");
    release(facts);
    end_child(child);
    assert_true(unique_id_place(&place, &id));
    assert_true(place.is_loopback);
}

/* ---- where NCCL is looked for ------------------------------------------- */

/* The wheel's folder of a virtual environment in the current directory: make
 * it, or take it away again. */
static void visit_folders(int (*visit)(const char *path), bool from_below)
{
    static const char *const folders[] = {
        "venv",
        "venv/bin",
        "venv/lib",
        "venv/lib/python3.11",
        "venv/lib/python3.11/site-packages",
        "venv/lib/python3.11/site-packages/nvidia",
        "venv/lib/python3.11/site-packages/nvidia/nccl",
        "venv/lib/python3.11/site-packages/nvidia/nccl/lib",
    };
    size_t count = sizeof(folders) / sizeof(folders[0]);
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(visit(folders[from_below ? count - 1 - i : i]), 0);
    }
}

static int make_folder(const char *path)
{
    return mkdir(path, 0700);
}

/* The NCCL of the virtual environment that a command belongs to is opened,
 * not the machine's; the command is found in the ranks' PATH. */
static void test_virtual_environment(void **state)
{
    (void)state;
    static const char wheel[] = "venv/lib/python3.11/site-packages/nvidia/nccl/"
                                "lib/libnccl.so.2";
    char folder[] = "/tmp/gpul-facts-XXXXXX";
    char old[PATH_MAX];
    char variable[PATH_MAX];
    assert_non_null(getcwd(old, sizeof(old)));
    assert_non_null(mkdtemp(folder));
    assert_int_equal(chdir(folder), 0);
    visit_folders(make_folder, false);
    assert_int_equal(symlink(GPUL_TEST_PART, wheel), 0);
    assert_int_equal(symlink("/bin/true", "venv/bin/train"), 0);

    snprintf(variable, sizeof(variable), "PATH=%s/venv/bin:/bin", folder);
    const char *const environment[] = {variable, NULL};
    const struct gpu_facts_request request = {.command = "train",
                                              .environment = environment};
    struct gpu_facts *facts = read_facts(&request);
    char found[GPUL_ERROR_TEXT_BYTES];
    snprintf(found, sizeof(found), "%s", facts->nccl.error);
    release(facts);

    unlink(wheel);
    unlink("venv/bin/train");
    visit_folders(rmdir, true);
    assert_int_equal(chdir(old), 0);
    assert_int_equal(rmdir(folder), 0);
    assert_non_null(strstr(found, GPUL_TEST_PART_NAME " has no symbol "
                                                      "ncclGetUniqueId"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_no_driver),
        cmocka_unit_test(test_no_rocm),
        cmocka_unit_test(test_stub),
        cmocka_unit_test(test_hip),
        cmocka_unit_test(test_nvml),
        cmocka_unit_test(test_chosen),
        cmocka_unit_test(test_nccl),
        cmocka_unit_test(test_unique_id),
        cmocka_unit_test(test_loopback_id),
        cmocka_unit_test(test_virtual_environment),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
