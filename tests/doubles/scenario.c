/* SPDX-License-Identifier: Apache-2.0
 *
 * The scenario of this process: found by the environment, read once. */
#include "tests/doubles/scenario.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

static struct scenario ours;
static pthread_once_t once = PTHREAD_ONCE_INIT;

const char *scenario_path(void)
{
    const char *path = getenv("GPULAUNCH_DOUBLE_SCENARIO");

    return path && *path ? path : NULL;
}

/* An agent names its node to its probes; a test may say another. */
static const char *node_name(void)
{
    const char *name = getenv("GPULAUNCH_DOUBLE_NODE");

    if (!name || !*name)
        name = getenv("GPULAUNCH_NODE_NAME");
    return name ? name : "";
}

static char *file_text(const char *path)
{
    char *text = NULL;
    size_t bytes = 0;
    FILE *file = fopen(path, "re");

    if (!file)
        return NULL;
    if (getdelim(&text, &bytes, '\0', file) < 0) {
        free(text);
        text = ferror(file) ? NULL : calloc(1, 1);
    }
    (void)fclose(file);
    return text;
}

static void load(void)
{
    const char *path = scenario_path();
    char error[SCENARIO_ERROR];
    char *text = path ? file_text(path) : NULL;

    if (path && !text) {
        (void)fprintf(stderr, "gpulaunch double: cannot read %s: %m\n", path);
        abort();
    }
    if (scenario_parse(&ours, text ? text : "", node_name(), error) != 0) {
        (void)fprintf(stderr, "gpulaunch double: %s:%s\n", path, error);
        abort();
    }
    free(text);
}

const struct scenario *scenario_get(void)
{
    (void)pthread_once(&once, load);
    return &ours;
}
