/* SPDX-License-Identifier: Apache-2.0
 *
 * Lines that say what goes wrong: whom it concerns, what, where and when. */
#include <signal.h>
#include <string.h>

#include "tests/doubles/scenario_text.h"

static const char *const point_names[POINT_COUNT] = {
    [POINT_FACTS] = "facts",
    [POINT_CUINIT] = "cuinit",
    [POINT_CONTEXT] = "context",
    [POINT_UID] = "uid",
    [POINT_INIT] = "init",
    [POINT_CONNECT] = "connect",
    [POINT_SPLIT] = "split",
    [POINT_COLLECTIVE] = "collective",
    [POINT_ALLREDUCE] = "allreduce",
    [POINT_ALLGATHER] = "allgather",
    [POINT_REDUCESCATTER] = "reducescatter",
    [POINT_BROADCAST] = "broadcast",
    [POINT_SENDRECV] = "sendrecv",
    [POINT_FINALIZE] = "finalize",
    [POINT_DESTROY] = "destroy",
    [POINT_ABORT] = "abort",
};

static const struct {
    const char *name;
    int number;
} signals[] = {
    {"SEGV", SIGSEGV}, {"ABRT", SIGABRT}, {"BUS", SIGBUS},   {"FPE", SIGFPE},
    {"ILL", SIGILL},   {"KILL", SIGKILL}, {"TERM", SIGTERM}, {"STOP", SIGSTOP},
};

struct reading {
    struct scenario_fault fault;
    bool is_elsewhere; /* for another node */
    bool has_action;
    bool has_place; /* at */
    bool has_delay; /* after */
    bool hides;     /* missing-symbol */
    char symbol[SCENARIO_TEXT];
};

static int read_point(struct line *line, struct reading *reading)
{
    int point = line_choice(line, "point", point_names, POINT_COUNT);

    reading->fault.point = point < 0 ? POINT_INIT : (enum scenario_point)point;
    return point < 0 ? -1 : 0;
}

static int read_signal(struct line *line, int *number)
{
    const char *word = line_word(line, "signal");

    for (size_t i = 0; word && i < sizeof signals / sizeof signals[0]; i++)
        if (strcmp(signals[i].name, word) == 0) {
            *number = signals[i].number;
            return 0;
        }
    return word ? line_fail(line, "%s is no signal", word) : -1;
}

static int read_int(struct line *line, const char *what, int least, int *value)
{
    uint64_t number = 0;

    if (line_number(line, what, 1000000, &number) != 0)
        return -1;
    *value = (int)number;
    if (*value < least)
        return line_fail(line, "%s begins at %d", what, least);
    return 0;
}

/* Whom, where and when. 1: not a word of these. */
static int read_selector(struct line *line, const struct scenario *scenario,
                         const char *word, struct reading *reading)
{
    struct scenario_fault *fault = &reading->fault;
    char pattern[SCENARIO_TEXT];

    if (strcmp(word, "rank") == 0)
        return read_int(line, "rank", 0, &fault->rank);
    if (strcmp(word, "gpu") == 0)
        return read_int(line, "gpu", 0, &fault->gpu);
    if (strcmp(word, "call") == 0)
        return read_int(line, "call", 1, &fault->call);
    if (strcmp(word, "at") == 0) {
        reading->has_place = true;
        return read_point(line, reading);
    }
    if (strcmp(word, "after") == 0) {
        reading->has_delay = true;
        return line_ms(line, &fault->wait_ms);
    }
    if (strcmp(word, "node") == 0) {
        int is_ours = line_node(line, scenario->node, pattern);
        reading->is_elsewhere = is_ours == 0;
        return is_ours < 0 ? -1 : 0;
    }
    return 1;
}

static int read_flip(struct line *line, struct scenario_fault *fault)
{
    uint64_t bit = 0;
    const char *word = line_word(line, "element");

    fault->point = POINT_ALLREDUCE;
    if (!word || strcmp(word, "element") != 0)
        return word ? line_fail(line, "%s is not element", word) : -1;
    if (line_number(line, "element", UINT64_MAX, &fault->element) != 0)
        return -1;
    word = line_word(line, "bit");
    if (!word || strcmp(word, "bit") != 0)
        return word ? line_fail(line, "%s is not bit", word) : -1;
    if (line_number(line, "bit", 63, &bit) != 0)
        return -1;
    fault->bit = (unsigned)bit;
    return 0;
}

static int read_action(struct line *line, const char *word,
                       struct reading *reading)
{
    static const char *const names[] = {
        [ACTION_NEVER_ARRIVES] = "never-arrives",
        [ACTION_LATE] = "late",
        [ACTION_HANG] = "hang",
        [ACTION_STALL] = "stall",
        [ACTION_CODE] = "code",
        [ACTION_SIGNAL] = "signal",
        [ACTION_FLIP] = "flip",
        [ACTION_SLOW] = "slow",
    };
    struct scenario_fault *fault = &reading->fault;
    size_t action = 0;

    if (reading->has_action)
        return line_fail(line, "%s: a fault has one action", word);
    reading->has_action = true;
    if (strcmp(word, "missing-symbol") == 0) {
        reading->hides = true;
        return line_text(line, "symbol", reading->symbol);
    }
    while (action < sizeof names / sizeof names[0] &&
           strcmp(names[action], word) != 0)
        action++;
    fault->action = (enum scenario_action)action;
    switch (action) {
    case ACTION_NEVER_ARRIVES:
        return 0;
    case ACTION_LATE:
        return line_ms(line, &fault->wait_ms);
    case ACTION_HANG:
    case ACTION_STALL:
        return read_point(line, reading);
    case ACTION_CODE:
        return read_int(line, "code", 1, &fault->code);
    case ACTION_SIGNAL:
        return read_signal(line, &fault->signal);
    case ACTION_FLIP:
        return read_flip(line, fault);
    case ACTION_SLOW:
        return line_factor(line, "factor", &fault->factor);
    default:
        return line_fail(line, "%s is no word of a fault", word);
    }
}

/* Whom it can be for: a fault that strikes nobody would pass unseen. */
static int check_whom(struct line *line, const struct reading *reading)
{
    const struct scenario_fault *fault = &reading->fault;
    bool has_rank = fault->rank != SCENARIO_ANY;
    bool has_gpu = fault->gpu != SCENARIO_ANY;

    if (reading->hides)
        return has_rank || has_gpu
                   ? line_fail(line, "a library is a node's: choose by node")
                   : 0;
    if (fault->point == POINT_CONTEXT && has_rank)
        return line_fail(line, "no rank is known at context: choose by node "
                               "and gpu");
    if (fault->point <= POINT_UID && fault->point != POINT_CONTEXT &&
        (has_rank || has_gpu))
        return line_fail(line,
                         "no rank and no gpu is known at %s: choose by "
                         "node",
                         point_names[fault->point]);
    return 0;
}

static int check_where(struct line *line, const struct reading *reading)
{
    const struct scenario_fault *fault = &reading->fault;
    bool has_call = fault->call != SCENARIO_ANY;

    if (reading->hides || fault->action == ACTION_SLOW)
        return reading->has_place || has_call
                   ? line_fail(line, "this holds everywhere: no at, no call")
                   : 0;
    if (fault->action == ACTION_NEVER_ARRIVES && fault->point != POINT_INIT)
        return line_fail(line, "never-arrives is at init");
    if (fault->action == ACTION_FLIP &&
        (fault->point < POINT_COLLECTIVE || fault->point > POINT_BROADCAST))
        return line_fail(line, "nothing to flip at %s",
                         point_names[fault->point]);
    if (fault->action == ACTION_STALL &&
        (fault->point < POINT_COLLECTIVE || fault->point > POINT_SENDRECV))
        return line_fail(line, "nothing to stall at %s",
                         point_names[fault->point]);
    return 0;
}

/* What cannot be, though each word of it can. */
static int check_fault(struct line *line, const struct scenario *scenario,
                       const struct reading *reading)
{
    enum scenario_action action = reading->fault.action;

    if (!reading->has_action)
        return line_fail(line, "a fault without an action");
    if (reading->has_delay && (reading->hides || action != ACTION_SIGNAL))
        return line_fail(line, "only a signal comes after a time");
    if (!reading->hides && action == ACTION_SLOW && scenario->link_count == 0)
        return line_fail(line, "slow needs a link line before it");
    return check_whom(line, reading) != 0 ? -1 : check_where(line, reading);
}

/* fault [WHOM] ACTION [WHERE AND WHEN], in any order. */
int scenario_fault_line(struct line *line, struct scenario *scenario)
{
    struct reading reading = {.fault = {.point = POINT_INIT,
                                        .rank = SCENARIO_ANY,
                                        .gpu = SCENARIO_ANY,
                                        .call = SCENARIO_ANY}};

    while (line->next < line->count) {
        const char *word = line_word(line, "word");
        int status = read_selector(line, scenario, word, &reading);
        if (status == 1)
            status = read_action(line, word, &reading);
        if (status != 0)
            return -1;
    }
    if (check_fault(line, scenario, &reading) != 0)
        return -1;
    if (reading.is_elsewhere)
        return 0;
    if (reading.hides) {
        if (scenario->hidden_count == SCENARIO_HIDDEN_MAX)
            return line_fail(line, "more than %d symbols", SCENARIO_HIDDEN_MAX);
        memcpy(scenario->hidden[scenario->hidden_count++], reading.symbol,
               SCENARIO_TEXT);
        return 0;
    }
    if (scenario->fault_count == SCENARIO_FAULTS_MAX)
        return line_fail(line, "more than %d faults", SCENARIO_FAULTS_MAX);
    scenario->faults[scenario->fault_count++] = reading.fault;
    return 0;
}
