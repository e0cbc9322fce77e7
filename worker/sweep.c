/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/sweep.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <sys/mman.h>

#include "common/clock.h"
#include "worker/collective_host.h"
#include "worker/pattern.h"

struct sweep {
    struct sweep_result *result;
    struct collective_host ring;
    const struct ringlink_place *place;
    float *data; /* of the plan's largest step */
    uint64_t deadline_ms;
    sweep_fault_fn fault;
    void *fault_arg;
};

/* Pages come when they are first written, so a plan's memory is that of the
 * sizes it gets to. */
static float *data_map(size_t bytes, struct gpul_error *err)
{
    void *data = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (data == MAP_FAILED) {
        gpul_fail(err, GPUL_ENOMEM,
                  "no memory for a message of %zu bytes; the quick self-test "
                  "needs less",
                  bytes);
        return NULL;
    }
    madvise(data, bytes, MADV_HUGEPAGE); /* fewer page faults, if allowed */
    return data;
}

static void note_wrong(struct sweep *s, uint64_t count,
                       const struct pattern_verdict *verdict)
{
    struct sweep_result *r = s->result;
    if (r->wrong_elements == 0) {
        r->first_wrong_index = verdict->first_wrong_index;
        r->first_wrong_bytes = count * sizeof(float);
    }
    r->wrong_elements += verdict->wrong_elements;
}

/* One checked all-reduce; *ns is the time that it took here. */
static int iterate(struct sweep *s, uint64_t count, uint64_t *ns,
                   uint64_t *wrong_elements, struct gpul_error *err)
{
    pattern_fill(s->data, count, s->place->rank);
    int status = collective_host_barrier(&s->ring, s->deadline_ms, err);
    if (status != 0) {
        return status;
    }
    uint64_t start_ns = gpul_clock_ns();
    status = collective_host_allreduce(&s->ring, s->data, count, s->deadline_ms,
                                       err);
    *ns = gpul_clock_ns() - start_ns;
    if (status != 0) {
        return status;
    }
    if (s->fault != NULL) {
        s->fault(s->fault_arg, s->data, count);
    }
    struct pattern_verdict verdict;
    pattern_check(&verdict, s->data, count, s->place->node_count);
    if (verdict.wrong_elements != 0) {
        note_wrong(s, count, &verdict);
        *wrong_elements += verdict.wrong_elements;
    }
    return 0;
}

static int run_step(struct sweep *s, const struct measure_step *step,
                    struct gpul_error *err)
{
    assert(step->iterations >= 1 && step->iterations <= MEASURE_ITERATIONS_MAX);
    uint64_t times_ns[MEASURE_ITERATIONS_MAX];
    struct sweep_row row = {.count = step->count,
                            .iterations = step->iterations};
    for (uint32_t i = 0; i < step->warmups + step->iterations; i++) {
        uint64_t ns;
        int status = iterate(s, step->count, &ns, &row.wrong_elements, err);
        if (status != 0) {
            return gpul_wrap(err, status, "all-reduce of %" PRIu64 " bytes",
                             step->count * sizeof(float));
        }
        if (i >= step->warmups) {
            times_ns[i - step->warmups] = ns;
        }
    }
    measure_stats(&row.stats, times_ns, step->iterations);
    s->result->rows[s->result->row_count++] = row;
    return 0;
}

int sweep_run(struct sweep_result *out, const struct ringlink *link,
              const struct measure_plan *plan, uint64_t deadline_ms,
              sweep_fault_fn fault, void *arg, struct gpul_error *err)
{
    struct sweep s = {
        .result = out,
        .place = &link->place,
        .deadline_ms = deadline_ms,
        .fault = fault,
        .fault_arg = arg,
    };
    *out = (struct sweep_result){0};
    size_t bytes = (size_t)measure_plan_count_max(plan) * sizeof(float);
    s.data = data_map(bytes, err);
    if (s.data == NULL) {
        return GPUL_ENOMEM;
    }
    int status = collective_host_init(&s.ring, link, err);
    if (status != 0) {
        goto unmap;
    }
    for (size_t i = 0; status == 0 && i < plan->step_count; i++) {
        status = run_step(&s, &plan->steps[i], err);
    }
    collective_host_release(&s.ring);
unmap:
    munmap(s.data, bytes);
    return status;
}
