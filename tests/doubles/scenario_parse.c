/* SPDX-License-Identifier: Apache-2.0
 *
 * A scenario's text, line by line. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/doubles/scenario_text.h"

/* link [between PATTERN PATTERN] [latency TIME] [bandwidth RATE] */
static int read_link_line(struct line *line, struct scenario *scenario)
{
    struct scenario_link link = {.from = "*", .to = "*"};
    int status = 0;

    while (status == 0 && line->next < line->count) {
        const char *name = line_word(line, "key");
        if (strcmp(name, "between") == 0) {
            status = line_text(line, "node", link.from) != 0 ||
                     line_text(line, "node", link.to) != 0;
        } else if (strcmp(name, "latency") == 0) {
            status = line_duration(line, "duration", &link.latency_ns);
        } else if (strcmp(name, "bandwidth") == 0) {
            status = line_rate(line, "rate", &link.bytes_per_s);
        } else {
            return line_fail(line, "%s is no key of a link", name);
        }
    }
    if (status != 0)
        return -1;
    if (scenario->link_count == SCENARIO_LINKS_MAX)
        return line_fail(line, "more than %d links", SCENARIO_LINKS_MAX);
    scenario->links[scenario->link_count++] = link;
    return 0;
}

static int read_line(struct line *line, struct scenario *scenario)
{
    const char *word = line_word(line, "line");

    if (strcmp(word, "node") == 0)
        return scenario_node_line(line, scenario);
    if (strcmp(word, "gpu") == 0)
        return scenario_gpu_line(line, scenario);
    if (strcmp(word, "link") == 0)
        return read_link_line(line, scenario);
    if (strcmp(word, "fault") == 0)
        return scenario_fault_line(line, scenario);
    return line_fail(line, "%s is not node, gpu, link or fault", word);
}

int scenario_parse(struct scenario *scenario, const char *text,
                   const char *node, char error[SCENARIO_ERROR])
{
    struct line line = {.error = error};

    *scenario = (struct scenario){.cuda = 13000,
                                  .nccl = 22809,
                                  .context_bytes = 512ull << 20,
                                  .driver = "580.95.05",
                                  .nvml = "13.580.95.05"};
    (void)snprintf(scenario->node, sizeof scenario->node, "%s", node);
    while (*text) {
        if (line_cut(&line, &text) != 0 ||
            (line.count > 0 && read_line(&line, scenario) != 0)) {
            scenario_release(scenario);
            return -1;
        }
    }
    return 0;
}

void scenario_release(struct scenario *scenario)
{
    free(scenario->gpus);
    *scenario = (struct scenario){0};
}
