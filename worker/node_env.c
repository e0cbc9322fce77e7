/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/node_env.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

extern char **environ;

char **node_env_make(char node[NODE_ENV_BYTES], const char *node_name)
{
    static const char name[] = "GPULAUNCH_NODE_NAME=";
    size_t count = 0;
    while (environ[count] != NULL) {
        count++;
    }
    char **out = calloc(count + 2, sizeof(*out));
    if (out == NULL) {
        return NULL;
    }
    snprintf(node, NODE_ENV_BYTES, "%s%s", name, node_name);
    count = 0;
    out[count++] = node;
    for (size_t i = 0; environ[i] != NULL; i++) {
        if (strncmp(environ[i], name, strlen(name)) != 0) {
            out[count++] = environ[i];
        }
    }
    return out;
}
