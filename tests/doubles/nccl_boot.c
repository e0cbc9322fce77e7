/* SPDX-License-Identifier: Apache-2.0
 *
 * How ranks meet. A unique ID is a magic number and an address at which a
 * thread of the process that made it listens. Each rank tells that root where
 * it can be reached; when all have, the root tells each the address of the
 * next, and ends. From then on the ranks are a ring and need no root. Of
 * several IDs each serves its share of the ranks; the first rank of a share
 * checks in at the root before, too, so that the ring closes.
 * Source: NCCL 2.30, src/bootstrap.cc and src/init.cc.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <unistd.h>

#include "tests/doubles/cuda_device.h"
#include "tests/doubles/nccl_comm.h"
#include "tests/doubles/nccl_wire.h"

enum { VERSION_2_30 = 23000 };

struct checkin {
    int32_t rank;
    int32_t rank_count;
    int32_t root;
    int32_t root_count;
    struct sockaddr_in answer; /* where the root is to say who is next */
    struct sockaddr_in ring;   /* where the rank before is to connect */
};

struct root {
    int fd;
    uint64_t magic;
};

/* --- Shares ------------------------------------------------------------- */

/* The first of `ranks` that root `root` of `roots` serves. */
static int share_start(int root, int roots, int ranks)
{
    int rest = ranks % roots;

    return root * (ranks / roots) + (root < rest ? root : rest);
}

static int share_root(int rank, int roots, int ranks)
{
    int root = 0;

    while (share_start(root + 1, roots, ranks) <= rank)
        root++;
    return root;
}

/* --- The root ----------------------------------------------------------- */

/* What a root knows once the first rank has checked in. */
struct share {
    struct checkin *arrived; /* by place in the share */
    int first;               /* its first rank */
    int serves;              /* ranks that want an answer */
    int wanted;              /* ranks that check in */
    int rank_count;
    int root;
};

static int share_open(struct share *share, const struct checkin *one)
{
    if (one->root_count < 1 || one->root < 0 || one->root >= one->root_count ||
        one->root_count > one->rank_count)
        return NCCL_INTERNAL_ERROR;
    share->rank_count = one->rank_count;
    share->root = one->root;
    share->first = share_start(one->root, one->root_count, one->rank_count);
    share->serves =
        share_start(one->root + 1, one->root_count, one->rank_count) -
        share->first;
    share->wanted = share->serves + (one->root_count > 1);
    share->arrived = calloc((size_t)share->wanted, sizeof *share->arrived);
    return share->arrived ? NCCL_SUCCESS : NCCL_SYSTEM_ERROR;
}

/* Notes one rank; what does not fit ends the root, and whoever waits for its
 * answer waits on. */
static int share_add(struct share *share, const struct checkin *one)
{
    int place = one->rank - share->first;

    if (one->rank_count != share->rank_count || one->root != share->root ||
        place < 0 || place >= share->wanted ||
        share->arrived[place].rank_count != 0) /* has already checked in */
        return NCCL_INTERNAL_ERROR;
    share->arrived[place] = *one;
    return NCCL_SUCCESS;
}

/* Waits for everybody of the share and, where there are several roots, for
 * the first rank of the next one. */
static int root_collect(const struct root *root, struct share *share)
{
    struct checkin one;
    int count = 0, status = NCCL_SUCCESS;

    while (status == NCCL_SUCCESS && (count == 0 || count < share->wanted)) {
        int fd = -1;
        status = wire_accept(root->fd, root->magic, &one, sizeof one, -1, &fd);
        if (status == NCCL_SUCCESS && count++ == 0)
            status = share_open(share, &one);
        if (status == NCCL_SUCCESS)
            status = share_add(share, &one);
        if (fd >= 0)
            (void)close(fd);
    }
    return status;
}

static void *root_run(void *argument)
{
    struct root *root = argument;
    struct share share = {0};
    int fd = -1;
    int status = root_collect(root, &share);

    (void)close(root->fd); /* an ID serves one communicator */
    for (int i = 0; i < share.serves && status == NCCL_SUCCESS; i++) {
        /* Alone, a root closes the ring. */
        const struct checkin *next = &share.arrived[(i + 1) % share.wanted];
        status = wire_connect(&share.arrived[i].answer, root->magic,
                              &next->ring, sizeof next->ring, -1, &fd);
        if (fd >= 0)
            (void)close(fd);
    }
    free(share.arrived);
    free(root);
    return NULL;
}

/* Many ranks in one process need many descriptors; NCCL does this too. */
static void files_raise(void)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
        limit.rlim_cur = limit.rlim_max;
        (void)setrlimit(RLIMIT_NOFILE, &limit);
    }
}

static int root_start(int fd, uint64_t magic)
{
    struct root *root = malloc(sizeof *root);
    pthread_attr_t attributes;
    pthread_t thread;

    if (!root)
        return nccl_fail(NCCL_SYSTEM_ERROR, "no memory");
    *root = (struct root){fd, magic};
    (void)pthread_attr_init(&attributes);
    (void)pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    int error = pthread_create(&thread, &attributes, root_run, root);
    (void)pthread_attr_destroy(&attributes);
    if (error != 0) {
        free(root);
        return nccl_fail(NCCL_SYSTEM_ERROR, "pthread_create failed : %s",
                         strerror(error));
    }
    return NCCL_SUCCESS;
}

int boot_root(struct nccl_unique_id *id)
{
    struct id_content content = {0};
    int fd = -1;
    int status = wire_interface(&content.address);

    files_raise();
    if (status == NCCL_SUCCESS &&
        getrandom(&content.magic, sizeof content.magic, 0) !=
            (ssize_t)sizeof content.magic)
        status = nccl_fail(NCCL_SYSTEM_ERROR, "no random bytes");
    if (status == NCCL_SUCCESS)
        status = wire_listen(&content.address, &fd);
    if (status == NCCL_SUCCESS)
        status = root_start(fd, content.magic);
    if (status != NCCL_SUCCESS) {
        if (fd >= 0)
            (void)close(fd);
        return status;
    }
    *id = (struct nccl_unique_id){{0}};
    memcpy(id->internal, &content, sizeof content);
    return NCCL_SUCCESS;
}

/* --- A rank ------------------------------------------------------------- */

static struct id_content id_read(const struct nccl_comm *comm, int index)
{
    struct id_content content;

    memcpy(&content, comm->ids[index].internal, sizeof content);
    return content;
}

static int checkin_send(struct nccl_comm *comm, struct checkin *checkin,
                        int rank, int root)
{
    struct id_content id = id_read(comm, root);
    int fd = -1;

    checkin->rank = rank;
    checkin->root = root;
    int status = wire_connect(&id.address, id.magic, checkin, sizeof *checkin,
                              comm->abort_fd, &fd);
    if (fd >= 0)
        (void)close(fd);
    return status;
}

/* Says to the root where this rank is; hears where the next one is. */
static int meet_root(struct nccl_comm *comm, const struct sockaddr_in *ring,
                     struct sockaddr_in *next)
{
    int n = comm->rank_count, roots = comm->id_count, fd = -1, answer_fd = -1;
    int root = share_root(comm->rank, roots, n);
    struct checkin checkin = {
        .rank_count = n, .root_count = roots, .ring = *ring};
    int status = wire_interface(&checkin.answer);

    if (status == NCCL_SUCCESS)
        status = wire_listen(&checkin.answer, &answer_fd);
    if (status == NCCL_SUCCESS)
        status = checkin_send(comm, &checkin, comm->rank, root);
    if (status == NCCL_SUCCESS && roots > 1 &&
        comm->rank == share_start(root, roots, n)) {
        int before = (root + roots - 1) % roots;
        int as = comm->rank > 0 ? comm->rank : n; /* the one behind its last */
        status = checkin_send(comm, &checkin, as, before);
    }
    if (status == NCCL_SUCCESS)
        status = wire_accept(answer_fd, id_read(comm, root).magic, next,
                             sizeof *next, comm->abort_fd, &fd);
    if (fd >= 0)
        (void)close(fd);
    if (answer_fd >= 0)
        (void)close(answer_fd);
    return status;
}

static int join_ring(struct nccl_comm *comm)
{
    uint64_t magic = id_read(comm, 0).magic;
    int32_t self = comm->rank, before = -1;
    struct sockaddr_in ring, next;
    int ring_fd = -1;
    int status = wire_interface(&ring);

    if (status == NCCL_SUCCESS)
        status = wire_listen(&ring, &ring_fd);
    if (status == NCCL_SUCCESS)
        status = meet_root(comm, &ring, &next);
    if (status == NCCL_SUCCESS)
        status = wire_connect(&next, magic, &self, sizeof self, comm->abort_fd,
                              &comm->next_fd);
    if (status == NCCL_SUCCESS)
        status = wire_accept(ring_fd, magic, &before, sizeof before,
                             comm->abort_fd, &comm->prev_fd);
    if (status == NCCL_SUCCESS &&
        before != (self + comm->rank_count - 1) % comm->rank_count)
        status = nccl_fail(NCCL_INTERNAL_ERROR, "rank %d comes before rank %d",
                           before, self);
    if (ring_fd >= 0)
        (void)close(ring_fd);
    return status;
}

/* --- Who is there ------------------------------------------------------- */

static int check_versions(const struct nccl_comm *comm)
{
    const struct peer *peers = comm->peers, *self = &peers[comm->rank];

    for (int i = 0; i < comm->rank_count; i++)
        if (peers[i].version != self->version)
            return nccl_fail(NCCL_INVALID_USAGE,
                             "Mismatched NCCL version detected : rank %d "
                             "version %d rank %d version %d",
                             i, peers[i].version, comm->rank, self->version);
    return NCCL_SUCCESS;
}

/* Until 2.29 a rank looks for its own device among the others', by bus id. */
static int check_own_device(const struct nccl_comm *comm)
{
    const struct peer *peers = comm->peers, *self = &peers[comm->rank];

    for (int i = 0; i < comm->rank_count; i++)
        if (i != comm->rank && peers[i].pci == self->pci &&
            strcmp(peers[i].node, self->node) == 0)
            return nccl_fail(NCCL_INVALID_USAGE,
                             "Duplicate GPU detected : rank %d and rank %d "
                             "both on CUDA device %llx",
                             comm->rank, i,
                             (unsigned long long)(self->pci << 4));
    return NCCL_SUCCESS;
}

/* From 2.30 on every rank looks at every pair, by UUID. */
static int check_all_devices(const struct nccl_comm *comm)
{
    const char *allowed = getenv("NCCL_MULTI_RANK_GPU_ENABLE");
    const struct peer *peers = comm->peers;

    if (allowed && atoi(allowed) == 1)
        return NCCL_SUCCESS;
    for (int i = 0; i < comm->rank_count; i++)
        for (int j = 0; j < i; j++)
            if (memcmp(&peers[i].uuid, &peers[j].uuid, sizeof peers[i].uuid) ==
                    0 &&
                strcmp(peers[i].node, peers[j].node) == 0)
                return nccl_fail(
                    NCCL_INVALID_USAGE,
                    "Multiple Ranks are using the same GPU/Partition. Set "
                    "NCCL_MULTI_RANK_GPU_ENABLE=1 to enable this "
                    "configuration.");
    return NCCL_SUCCESS;
}

static int learn_peers(struct nccl_comm *comm)
{
    const struct scenario *scenario = comm->scenario;
    const struct scenario_gpu *gpu = &scenario->gpus[comm->physical];
    struct peer *self = &comm->peers[comm->rank];

    *self = (struct peer){.rank = comm->rank,
                          .version = (int32_t)scenario->nccl,
                          .pci = gpu->pci};
    self->uuid = device_uuid(gpu);
    memcpy(self->node, scenario->node, sizeof self->node);
    int status = wire_interface(&self->address);
    if (status == NCCL_SUCCESS)
        status = wire_listen(&self->address, &comm->listen_fd);
    if (status == NCCL_SUCCESS)
        status = ring_gather(comm, comm->peers, sizeof *comm->peers);
    return status;
}

int boot_join(struct nccl_comm *comm)
{
    int status = join_ring(comm);

    files_raise();
    if (status == NCCL_SUCCESS)
        status = learn_peers(comm);
    if (status == NCCL_SUCCESS)
        status = check_versions(comm);
    if (status == NCCL_SUCCESS)
        status = comm->scenario->nccl < VERSION_2_30 ? check_own_device(comm)
                                                     : check_all_devices(comm);
    return status;
}

int boot_barrier(struct nccl_comm *comm)
{
    char *here = calloc((size_t)comm->rank_count, 1);
    int status = here ? ring_gather(comm, here, 1)
                      : nccl_fail(NCCL_SYSTEM_ERROR, "no memory");

    free(here);
    return status;
}
