/* SPDX-License-Identifier: Apache-2.0
 *
 * Freezes the sample messages as the vectors of a protocol version:
 *
 *   make_vectors tests/vectors/v1
 *
 * Run by hand once per version: frames that were frozen are what deployed
 * programs send, and stay as they are for as long as the version is spoken.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/lib/print.h"
#include "tests/lib/samples.h"

static void write_file(const char *folder, const char *name,
                       const struct gpul_buf *content)
{
    char path[4096];
    snprintf(path, sizeof(path), "%s/%s", folder, name);
    FILE *file = fopen(path, "wbx");
    if (file == NULL ||
        fwrite(content->data, 1, content->used, file) != content->used ||
        fclose(file) != 0) {
        fprintf(stderr, "%s: %s\n", path, strerror(errno));
        exit(1);
    }
}

int main(int argc, char **argv)
{
    if (argc != 2) {
        fprintf(stderr, "usage: make_vectors FOLDER\n");
        return 1;
    }
    struct gpul_buf manifest;
    gpul_buf_init(&manifest, 1u << 20);
    for (uint32_t type = 1; type != 0; type = sample_next(type)) {
        struct gpul_buf frame;
        gpul_buf_init(&frame, 1u << 20);
        sample_append(&frame, type);
        char name[64];
        snprintf(name, sizeof(name), "%s.bin", gpul_message_rule(type)->name);
        write_file(argv[1], name, &frame);
        gpul_buf_appendf(&manifest, "== %s\n", name);
        Gpul__Frame sample = sample_frame(type);
        message_print(&manifest, &sample.base);
        gpul_buf_release(&frame);
    }
    write_file(argv[1], "manifest.txt", &manifest);
    gpul_buf_release(&manifest);
    return 0;
}
