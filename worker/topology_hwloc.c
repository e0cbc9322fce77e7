/* SPDX-License-Identifier: Apache-2.0
 *
 * The process that hwloc lives in: see worker/topology.h. Nothing of hwloc's
 * is called but through `struct api`, so that the program is not linked with
 * it: that would cost every start of every worker 0.2 ms.
 */
#include <dlfcn.h>
#include <hwloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/writeall.h"
#include "worker/mask.h"
#include "worker/topology.h"

/* Its name carries the version of the interface that hwloc.h was read from. */
#define LIBRARY "libhwloc.so.15"

#define FUNCTIONS(X)                                                           \
    X(topology_init)                                                           \
    X(topology_set_components)                                                 \
    X(topology_load)                                                           \
    X(topology_destroy)                                                        \
    X(get_type_depth)                                                          \
    X(get_nbobjs_by_depth)                                                     \
    X(get_obj_by_depth)                                                        \
    X(bitmap_isset)                                                            \
    X(topology_get_allowed_nodeset)

struct api {
#define X(name) __typeof__(hwloc_##name) *name;
    FUNCTIONS(X)
#undef X
};

struct reader {
    struct api api;
    hwloc_topology_t topology;
    struct binding_machine *machine;
    const char *error;
};

static bool open_library(struct reader *r)
{
    void *library = dlopen(LIBRARY, RTLD_NOW);
    if (library == NULL) {
        r->error = LIBRARY " cannot be opened: install hwloc 2 (Debian, "
                           "Ubuntu: libhwloc15)";
        return false;
    }
    void *symbol;
#define X(name)                                                                \
    symbol = dlsym(library, "hwloc_" #name);                                   \
    memcpy(&r->api.name, &symbol, sizeof(symbol));                             \
    if (symbol == NULL) {                                                      \
        r->error = LIBRARY " has no hwloc_" #name ": it is too old";           \
        return false;                                                          \
    }
    FUNCTIONS(X)
#undef X
    return true;
}

/* No plugins (they bring X11, OpenCL and GPU drivers), no banner on standard
 * error about faulty firmware. A tree under `root` is not this system: hwloc
 * knows that by itself. */
static void prepare(const char *root)
{
    setenv("HWLOC_PLUGINS_PATH", "/nonexistent", 1);
    setenv("HWLOC_HIDE_ERRORS", "2", 0);
    if (root[0] != 0) {
        setenv("HWLOC_FSROOT", root, 1);
    }
}

/* Without its reader of x86 registers, which moves from processor to processor
 * and waits for each: the kernel knows as much. */
static bool load(struct reader *r)
{
    const unsigned long is_left_out = HWLOC_TOPOLOGY_COMPONENTS_FLAG_BLACKLIST;
    if (r->api.topology_init(&r->topology) != 0) {
        r->topology = NULL;
        r->error = "hwloc cannot start";
        return false;
    }
    r->api.topology_set_components(r->topology, is_left_out, "x86");
    if (r->api.topology_load(r->topology) != 0) {
        r->error = "hwloc cannot read this machine";
        return false;
    }
    return true;
}

/* The NUMA node that hangs nearest above; memory may have a cache before it. */
static hwloc_obj_t node_of(hwloc_obj_t o)
{
    while (o != NULL && o->memory_arity == 0) {
        o = o->parent;
    }
    hwloc_obj_t node = o != NULL ? o->memory_first_child : NULL;
    while (node != NULL && node->type != HWLOC_OBJ_NUMANODE) {
        node = node->memory_first_child;
    }
    return node;
}

static hwloc_obj_t core_of(hwloc_obj_t pu)
{
    hwloc_obj_t o = pu;
    while (o != NULL && o->type != HWLOC_OBJ_CORE) {
        o = o->parent;
    }
    return o != NULL ? o : pu; /* some machines tell of no cores */
}

static void read_pus(struct reader *r)
{
    int depth = r->api.get_type_depth(r->topology, HWLOC_OBJ_PU);
    unsigned int count = r->api.get_nbobjs_by_depth(r->topology, depth);
    struct binding_machine *m = r->machine;
    hwloc_obj_t last = NULL;
    uint32_t core = 0;
    for (unsigned int i = 0; i < count && i < STARTSPEC_CPUS_MAX; i++) {
        hwloc_obj_t pu = r->api.get_obj_by_depth(r->topology, depth, i);
        hwloc_obj_t node = node_of(pu);
        if (pu->os_index >= STARTSPEC_CPUS_MAX) {
            continue;
        }
        core += last != NULL && core_of(pu) != last;
        last = core_of(pu);
        m->pus[m->pu_count++] = (struct binding_pu){
            .cpu = (uint16_t)pu->os_index,
            .core = (uint16_t)core,
            .node = node != NULL && node->os_index < STARTSPEC_NODES_MAX
                        ? (uint16_t)node->os_index
                        : BINDING_NO_NODE,
        };
    }
}

static void read_memory(struct reader *r)
{
    int depth = HWLOC_TYPE_DEPTH_NUMANODE;
    unsigned int count = r->api.get_nbobjs_by_depth(r->topology, depth);
    hwloc_const_nodeset_t allowed =
        r->api.topology_get_allowed_nodeset(r->topology);
    for (unsigned int i = 0; i < count; i++) {
        hwloc_obj_t node = r->api.get_obj_by_depth(r->topology, depth, i);
        if (node->attr->numanode.local_memory > 0 &&
            r->api.bitmap_isset(allowed, node->os_index)) {
            mask_add(r->machine->memory_nodes, STARTSPEC_NODE_WORDS,
                     node->os_index);
        }
    }
}

static bool read_machine(struct reader *r)
{
    if (!open_library(r) || !load(r)) {
        return false;
    }
    read_pus(r);
    read_memory(r);
    return true;
}

int topology_main(const char *root)
{
    struct reader r = {.machine = calloc(1, sizeof(*r.machine))};
    r.error = "out of memory";
    prepare(root);
    bool is_read = r.machine != NULL && read_machine(&r);
    int failure =
        is_read ? gpul_write_all(STDOUT_FILENO, r.machine, sizeof(*r.machine))
                : gpul_write_all(STDOUT_FILENO, r.error, strlen(r.error));
    if (r.topology != NULL) {
        r.api.topology_destroy(r.topology);
    }
    free(r.machine);
    return is_read && failure == 0 ? 0 : 1;
}
