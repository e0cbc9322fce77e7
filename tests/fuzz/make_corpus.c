/* SPDX-License-Identifier: Apache-2.0
 *
 * Writes the binary corpora from the sample messages:
 *
 *   make_corpus tests/fuzz/corpus
 *
 * fuzz_message/<type>-<peer>: the sample of a type, from each of its senders.
 * fuzz_frame/<peer>-<cut>: all that a peer may send behind one another, cut in
 * three ways, and the same with one bad frame at the end.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proto/limits.h"
#include "tests/lib/samples.h"

static const char *const peer_names[] = {"node", "coordinator", "operator",
                                         "desk", "probe",       "agent"};
enum { PEER_COUNT = 6 };

static void write_file(const char *folder, const char *target, const char *name,
                       const char *suffix, const struct gpul_buf *content)
{
    char path[4096];
    snprintf(path, sizeof(path), "%s/%s/%s-%s", folder, target, name, suffix);
    FILE *file = fopen(path, "wb");
    if (file == NULL ||
        fwrite(content->data, 1, content->used, file) != content->used ||
        fclose(file) != 0) {
        fprintf(stderr, "%s: %s\n", path, strerror(errno));
        exit(1);
    }
}

static void append_byte(struct gpul_buf *b, unsigned byte)
{
    uint8_t one = (uint8_t)byte;
    gpul_buf_append(b, &one, 1);
}

static void write_messages(const char *folder, unsigned peer)
{
    for (uint32_t type = 1; type != 0; type = sample_next(type)) {
        const struct gpul_message_rule *rule = gpul_message_rule(type);
        if ((rule->senders & 1u << peer) == 0) {
            continue;
        }
        struct gpul_buf frame, input;
        gpul_buf_init(&frame, 1u << 20);
        gpul_buf_init(&input, 1u << 20);
        sample_append(&frame, type);
        append_byte(&input, peer);
        gpul_buf_append(&input, frame.data + GPUL_FRAME_PREFIX_BYTES,
                        frame.used - GPUL_FRAME_PREFIX_BYTES);
        write_file(folder, "fuzz_message", rule->name, peer_names[peer],
                   &input);
        gpul_buf_release(&input);
        gpul_buf_release(&frame);
    }
}

static void write_stream(const char *folder, unsigned peer, const char *cut,
                         const char *sizes, const char *tail, size_t tail_bytes)
{
    struct gpul_buf input;
    gpul_buf_init(&input, 1u << 20);
    append_byte(&input, peer);
    append_byte(&input, (unsigned)strlen(sizes));
    gpul_buf_append_text(&input, sizes);
    for (uint32_t type = 1; type != 0; type = sample_next(type)) {
        if ((gpul_message_rule(type)->senders & 1u << peer) != 0) {
            sample_append(&input, type);
        }
    }
    gpul_buf_append(&input, tail, tail_bytes);
    write_file(folder, "fuzz_frame", peer_names[peer], cut, &input);
    gpul_buf_release(&input);
}

int main(int argc, char **argv)
{
    if (argc != 2) {
        fprintf(stderr, "usage: make_corpus FOLDER\n");
        return 1;
    }
    for (unsigned peer = 0; peer < PEER_COUNT; peer++) {
        write_messages(argv[1], peer);
        write_stream(argv[1], peer, "whole", "", "", 0);
        write_stream(argv[1], peer, "pieces", "\1\7\2\100", "\0\0\1", 3);
        write_stream(argv[1], peer, "bad", "\4\376", "\377\377\377\377\x32", 5);
    }
    return 0;
}
