/* SPDX-License-Identifier: Apache-2.0
 *
 * Children, an account for each, and the polling that every story needs. */
#include "tests/doubles/ranks.h"

#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

struct ranks { /* shared by all processes */
    pthread_mutex_t lock;
    pthread_cond_t changed;
    int ids_made; /* guarded by lock, as is all below */
    int arrived;
    unsigned rounds; /* barriers that are over */
    struct nccl_unique_id ids[RANKS_IDS_MAX];
    int id_count;
    int count;
    struct account accounts[RANKS_MAX];
};

uint64_t now_ms(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

void pause_ms(int ms)
{
    struct timespec time = {.tv_sec = ms / 1000,
                            .tv_nsec = (long)(ms % 1000) * 1000000};

    (void)nanosleep(&time, NULL);
}

/* --- Opening ------------------------------------------------------------ */

/* A child that cannot play its part says why and ends. */
__attribute__((noreturn, format(printf, 1, 2))) static void
give_up(const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    (void)vfprintf(stderr, format, arguments);
    va_end(arguments);
    (void)fputc('\n', stderr);
    _exit(99);
}

void check_failed(const char *file, int line, const char *what)
{
    (void)fprintf(stderr, "%s:%d: not so: %s\n", file, line, what);
    _exit(98);
}

static void *library(const char *name)
{
    char path[4096];
    void *handle;

    (void)snprintf(path, sizeof path, "%s/%s", DOUBLES_DIR, name);
    handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!handle)
        give_up("%s", dlerror());
    if (!dlsym(handle, GPU_DOUBLE_MARKER))
        give_up("%s has no marker", path);
    return handle;
}

/* False when a required symbol is not there. */
static bool find(void *handle, const char *name, void *into, const char *need,
                 char *missing)
{
    void *symbol = dlsym(handle, name);

    memcpy(into, &symbol, sizeof symbol);
    if (symbol || strcmp(need, "OPTIONAL") == 0)
        return true;
    (void)snprintf(missing, RANKS_TEXT, "%s", name);
    return false;
}

bool doubles_open(struct doubles *doubles, char *missing)
{
    void *cuda = library("libcuda.so.1");
    void *nccl = library("libnccl.so.2");
    void *nvml = library("libnvidia-ml.so.1");

#define X(need, result, member, parameters, symbol, hip)                       \
    if (!find(cuda, #symbol, &doubles->cuda.member, #need, missing))           \
        return false;
    CUDA_API_MAP(X)
#undef X
#define X(need, result, member, parameters, symbol)                            \
    if (!find(nccl, #symbol, &doubles->nccl.member, #need, missing))           \
        return false;
    NCCL_API_MAP(X)
#undef X
#define X(need, result, member, parameters, symbol)                            \
    if (!find(nvml, #symbol, &doubles->nvml.member, #need, missing))           \
        return false;
    NVML_API_MAP(X)
#undef X
    return true;
}

void rank_open(struct rank *rank)
{
    struct cuda_api *cuda = &rank->doubles.cuda;
    struct cuda_context *context;
    char missing[RANKS_TEXT];

    if (!doubles_open(&rank->doubles, missing))
        give_up("%s is missing", missing);
    if (cuda->init(0) != 0 ||
        cuda->device_primary_ctx_retain(&context, rank->local_rank) != 0 ||
        cuda->ctx_set_current(context) != 0 ||
        cuda->stream_create(&rank->stream, CUDA_STREAM_NON_BLOCKING) != 0)
        give_up("rank %d has no device", rank->rank);
}

/* --- Meeting ------------------------------------------------------------ */

static int share_start(int id, int ids, int ranks)
{
    int rest = ranks % ids;

    return id * (ranks / ids) + (id < rest ? id : rest);
}

struct nccl_unique_id *rank_ids(struct rank *rank)
{
    struct ranks *ranks = rank->ranks;
    struct nccl_unique_id id;

    for (int i = 0; i < ranks->id_count && !rank->has_made_ids; i++) {
        if (share_start(i, ranks->id_count, rank->count) != rank->rank)
            continue;
        int result = rank->doubles.nccl.get_unique_id(&id);
        if (result != NCCL_SUCCESS)
            give_up("no unique ID: %d", result);
        (void)pthread_mutex_lock(&ranks->lock);
        ranks->ids[i] = id;
        ranks->ids_made++;
        (void)pthread_cond_broadcast(&ranks->changed);
        (void)pthread_mutex_unlock(&ranks->lock);
    }
    rank->has_made_ids = true;
    (void)pthread_mutex_lock(&ranks->lock);
    while (ranks->ids_made < ranks->id_count)
        (void)pthread_cond_wait(&ranks->changed, &ranks->lock);
    (void)pthread_mutex_unlock(&ranks->lock);
    return ranks->ids;
}

void rank_barrier(struct rank *rank)
{
    struct ranks *ranks = rank->ranks;

    (void)pthread_mutex_lock(&ranks->lock);
    unsigned round = ranks->rounds;
    if (++ranks->arrived == ranks->count) {
        ranks->arrived = 0;
        ranks->rounds++;
        (void)pthread_cond_broadcast(&ranks->changed);
    }
    while (ranks->rounds == round)
        (void)pthread_cond_wait(&ranks->changed, &ranks->lock);
    (void)pthread_mutex_unlock(&ranks->lock);
}

void rank_note(struct rank *rank, int result)
{
    rank->account->result = result;
    (void)snprintf(rank->account->text, RANKS_TEXT, "%s",
                   rank->doubles.nccl.get_last_error(NULL));
}

bool rank_settle(struct rank *rank, int patience_ms)
{
    uint64_t end = now_ms() + (uint64_t)patience_ms;
    int result = NCCL_IN_PROGRESS;

    while (rank->doubles.nccl.comm_get_async_error(rank->comm, &result) == 0 &&
           result == NCCL_IN_PROGRESS && now_ms() < end)
        pause_ms(1);
    rank_note(rank, result);
    return result != NCCL_IN_PROGRESS;
}

bool rank_init(struct rank *rank, int patience_ms)
{
    struct nccl_api *nccl = &rank->doubles.nccl;
    struct nccl_config config = nccl_config_nonblocking();
    struct nccl_unique_id *ids = rank_ids(rank);
    int count = rank->ranks->id_count;
    uint64_t start = now_ms();
    int result =
        count > 1
            ? nccl->comm_init_rank_scalable(&rank->comm, rank->count,
                                            rank->rank, count, ids, &config)
            : nccl->comm_init_rank_config(&rank->comm, rank->count, ids[0],
                                          rank->rank, &config);

    rank_note(rank, result);
    bool is_settled = !rank->comm || rank_settle(rank, patience_ms);
    rank->account->took_ms = now_ms() - start;
    return is_settled;
}

/* --- Working ------------------------------------------------------------ */

bool rank_finish(struct rank *rank, int patience_ms)
{
    uint64_t end = now_ms() + (uint64_t)patience_ms;
    int result = NCCL_SUCCESS, status;

    while ((status = rank->doubles.cuda.stream_query(rank->stream)) ==
               CUDA_RESULT_NOT_READY &&
           now_ms() < end) {
        (void)rank->doubles.nccl.comm_get_async_error(rank->comm, &result);
        if (result != NCCL_SUCCESS && result != NCCL_IN_PROGRESS)
            break;
        pause_ms(1);
    }
    rank_note(rank, result);
    return status == CUDA_RESULT_SUCCESS && result == NCCL_SUCCESS;
}

static int wrong_elements(const int32_t *sums, size_t count, int ranks)
{
    int wrong = 0;

    for (size_t i = 0; i < count; i++)
        wrong += sums[i] != ranks * (ranks - 1) / 2 + ranks * (int32_t)i;
    return wrong;
}

int rank_all_reduce(struct rank *rank, size_t count, int patience_ms)
{
    struct cuda_api *cuda = &rank->doubles.cuda;
    size_t bytes = count * sizeof(int32_t);
    int32_t *host = malloc(bytes + 1);
    cuda_address device = 0;
    int wrong = -1;

    for (size_t i = 0; i < count; i++)
        host[i] = rank->rank + (int32_t)i;
    if (cuda->mem_alloc(&device, bytes + 1) != 0 ||
        cuda->memcpy_h_to_d(device, host, bytes) != 0)
        give_up("no device memory");
    void *data = (void *)(uintptr_t)device;
    int result = rank->doubles.nccl.all_reduce(
        data, data, count, NCCL_INT32, NCCL_SUM, rank->comm, rank->stream);
    rank_note(rank, result);
    if ((result == NCCL_SUCCESS || result == NCCL_IN_PROGRESS) &&
        rank_settle(rank, patience_ms) &&
        rank->account->result == NCCL_SUCCESS &&
        rank_finish(rank, patience_ms) &&
        cuda->memcpy_d_to_h(host, device, bytes) == 0)
        wrong = wrong_elements(host, count, rank->count);
    if (wrong >= 0)
        (void)cuda->mem_free(device);
    free(host);
    return wrong;
}

int rank_close(struct rank *rank, int patience_ms)
{
    int result = rank->doubles.nccl.comm_finalize(rank->comm);

    if (result == NCCL_IN_PROGRESS) {
        (void)rank_settle(rank, patience_ms);
        result = rank->account->result;
    }
    if (result == NCCL_SUCCESS)
        result = rank->doubles.nccl.comm_destroy(rank->comm);
    return result;
}

/* --- Children ----------------------------------------------------------- */

static struct ranks *ranks_make(const struct plan *plan)
{
    struct ranks *ranks = mmap(NULL, sizeof *ranks, PROT_READ | PROT_WRITE,
                               MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pthread_mutexattr_t lock;
    pthread_condattr_t changed;

    assert_true(ranks != MAP_FAILED);
    (void)pthread_mutexattr_init(&lock);
    (void)pthread_mutexattr_setpshared(&lock, PTHREAD_PROCESS_SHARED);
    (void)pthread_mutex_init(&ranks->lock, &lock);
    (void)pthread_condattr_init(&changed);
    (void)pthread_condattr_setpshared(&changed, PTHREAD_PROCESS_SHARED);
    (void)pthread_cond_init(&ranks->changed, &changed);
    ranks->id_count = plan->ids > 0 ? plan->ids : 1;
    ranks->count = plan->nodes * plan->per_node;
    return ranks;
}

static void child_run(const struct plan *plan, struct ranks *ranks, int index,
                      const char *path)
{
    struct rank rank = {.ranks = ranks,
                        .account = &ranks->accounts[index],
                        .rank = index,
                        .count = ranks->count,
                        .local_rank = index % plan->per_node};
    char node[32];

    (void)snprintf(node, sizeof node, "local-%d", index / plan->per_node);
    (void)setenv("GPULAUNCH_NODE_NAME", node, 1);
    if (plan->scenario)
        (void)setenv("GPULAUNCH_DOUBLE_SCENARIO", path, 1);
    int code = plan->story(&rank);
    (void)fflush(NULL);
    exit(code);
}

/* How a child ended; killed when it does not within the patience. */
static int child_wait(pid_t pid, uint64_t end)
{
    int status = 0;

    while (waitpid(pid, &status, WNOHANG) == 0) {
        if (now_ms() > end) {
            (void)kill(pid, SIGKILL);
            (void)waitpid(pid, &status, 0);
            fail_msg("process %d had to be killed", (int)pid);
        }
        pause_ms(2);
    }
    return WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
}

static void scenario_write(const struct plan *plan, const char *path)
{
    FILE *file = fopen(path, "we");

    assert_non_null(file);
    assert_true(fputs(plan->scenario ? plan->scenario : "", file) >= 0);
    assert_int_equal(fclose(file), 0);
}

/* The records of children that crashed wait for somebody who looks. */
static void records_remove(const char *scenario)
{
    char path[4096];

    (void)snprintf(path, sizeof path, "%s.memory", scenario);
    DIR *folder = opendir(path);
    if (!folder)
        return;
    for (struct dirent *entry; (entry = readdir(folder)) != NULL;)
        (void)unlinkat(dirfd(folder), entry->d_name, 0);
    (void)closedir(folder);
    (void)rmdir(path);
}

void ranks_run(const struct plan *plan, struct account *accounts)
{
    struct ranks *ranks = ranks_make(plan);
    char folder[] = "/tmp/gpulaunch-doubles-XXXXXX", path[64];
    pid_t pids[RANKS_MAX];
    uint64_t end = now_ms() + RANKS_PATIENCE_MS;

    assert_in_range(ranks->count, 1, RANKS_MAX);
    assert_non_null(mkdtemp(folder));
    (void)snprintf(path, sizeof path, "%s/scenario", folder);
    scenario_write(plan, path);
    (void)fflush(NULL);
    for (int i = 0; i < ranks->count; i++) {
        pids[i] = fork();
        assert_true(pids[i] >= 0);
        if (pids[i] == 0)
            child_run(plan, ranks, i, path);
    }
    for (int i = 0; i < ranks->count; i++)
        ranks->accounts[i].exit_code = child_wait(pids[i], end);
    memcpy(accounts, ranks->accounts, (size_t)ranks->count * sizeof *accounts);
    (void)munmap(ranks, sizeof *ranks);
    (void)unlink(path);
    records_remove(path);
    assert_int_equal(rmdir(folder), 0);
}

void story_run(const char *scenario, rank_story *story)
{
    struct account account;

    ranks_run(&(struct plan){scenario, 1, 1, 0, story}, &account);
    assert_int_equal(account.exit_code, 0);
}
