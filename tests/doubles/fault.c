/* SPDX-License-Identifier: Apache-2.0
 *
 * Orders: gathered by walking the scenario, carried out without mercy. */
#include "tests/doubles/fault.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static void sleep_ms(uint64_t ms)
{
    struct timespec left = {.tv_sec = (time_t)(ms / 1000),
                            .tv_nsec = (long)(ms % 1000) * 1000000};

    while (nanosleep(&left, &left) != 0)
        continue;
}

static bool concerns(const struct scenario_fault *fault, int rank, int gpu)
{
    return (fault->rank == SCENARIO_ANY || fault->rank == rank) &&
           (fault->gpu == SCENARIO_ANY || fault->gpu == gpu);
}

static void add(struct fault_orders *orders, const struct scenario_fault *fault)
{
    switch (fault->action) {
    case ACTION_NEVER_ARRIVES:
        orders->never_arrives = true;
        break;
    case ACTION_LATE:
        orders->late_ms += fault->wait_ms;
        break;
    case ACTION_HANG:
        orders->hangs = true;
        break;
    case ACTION_STALL:
        orders->stalls = true;
        break;
    case ACTION_CODE:
        orders->code = fault->code;
        break;
    case ACTION_SIGNAL:
        orders->signal = fault->signal;
        orders->signal_after_ms = fault->wait_ms;
        break;
    case ACTION_FLIP:
        orders->flips = true;
        orders->element = fault->element;
        orders->bit = fault->bit;
        break;
    case ACTION_SLOW:
        break;
    }
}

static bool is_collective(enum scenario_point point)
{
    return point > POINT_COLLECTIVE && point <= POINT_SENDRECV;
}

struct fault_orders fault_call(const struct scenario *scenario,
                               struct fault_caller *caller,
                               enum scenario_point point)
{
    struct fault_orders orders = {0};

    caller->calls[point]++;
    if (is_collective(point))
        caller->calls[POINT_COLLECTIVE]++;
    for (int i = 0; i < scenario->fault_count; i++) {
        const struct scenario_fault *fault = &scenario->faults[i];
        if (fault->point != point &&
            !(fault->point == POINT_COLLECTIVE && is_collective(point)))
            continue;
        if (concerns(fault, caller->rank, caller->gpu) &&
            (fault->call == SCENARIO_ANY ||
             fault->call == caller->calls[fault->point]))
            add(&orders, fault);
    }
    return orders;
}

double fault_slowness(const struct scenario *scenario, int rank, int gpu)
{
    double factor = 1;

    for (int i = 0; i < scenario->fault_count; i++) {
        const struct scenario_fault *fault = &scenario->faults[i];
        if (fault->action == ACTION_SLOW && concerns(fault, rank, gpu))
            factor *= fault->factor;
    }
    return factor;
}

/* The default action, whatever handler a test program has put there; to this
 * thread, so that it takes no further step. */
static void die(int number)
{
    sigset_t set;

    (void)signal(number, SIG_DFL);
    (void)sigemptyset(&set);
    (void)sigaddset(&set, number);
    (void)pthread_sigmask(SIG_UNBLOCK, &set, NULL);
    (void)raise(number);
}

static void *die_later(void *argument)
{
    struct fault_orders *orders = argument;

    sleep_ms(orders->signal_after_ms);
    die(orders->signal);
    free(orders);
    return NULL;
}

void fault_signal(const struct fault_orders *orders)
{
    pthread_t thread;

    if (orders->signal == 0)
        return;
    struct fault_orders *copy = malloc(sizeof *copy);
    if (orders->signal_after_ms == 0 || !copy) {
        free(copy);
        die(orders->signal);
        return;
    }
    *copy = *orders;
    if (pthread_create(&thread, NULL, die_later, copy) != 0)
        abort();
    (void)pthread_detach(thread);
}

void fault_block(const struct fault_orders *orders)
{
    sleep_ms(orders->late_ms);
    while (orders->hangs || orders->never_arrives)
        (void)pause();
}

int fault_early(enum scenario_point point, int gpu)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static struct fault_caller process = {.rank = SCENARIO_ANY};

    (void)pthread_mutex_lock(&lock);
    process.gpu = gpu;
    struct fault_orders orders = fault_call(scenario_get(), &process, point);
    (void)pthread_mutex_unlock(&lock);
    fault_signal(&orders);
    fault_block(&orders);
    return orders.code;
}
