/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/lib/fakeinput.h"

#include <stdio.h>
#include <stdlib.h>

#include "proto/limits.h"
#include "tests/lib/fakenode.h"
#include "tests/lib/watch.h"

enum { PERIOD = 251 };

static void broken(const struct cluster *c, const char *what)
{
    if (c->watch != NULL) {
        watch_broken(c, what); /* knows the seed */
    }
    fprintf(stderr, "at %llu ms: input: %s\n", (unsigned long long)c->now_ms,
            what);
    abort();
}

static uint8_t byte_at(uint64_t offset)
{
    return (uint8_t)(offset % PERIOD);
}

static void send_piece(struct cluster *c, uint64_t bytes, bool is_end)
{
    static uint8_t data[GPUL_INPUT_BYTES_MAX];
    Gpul__Input input = GPUL__INPUT__INIT;
    for (uint64_t i = 0; i < bytes; i++) {
        data[i] = byte_at(c->input_sent + i);
    }
    c->input_sent += bytes;
    input.data.data = data;
    input.data.len = bytes;
    input.is_end = is_end;
    Gpul__Frame frame = GPUL__FRAME__INIT;
    frame.body_case = GPUL__FRAME__BODY_INPUT;
    frame.input = &input;
    cluster_operate(c, c->now_ms, &frame);
}

/* Nobody who reads may be more than a window behind what was granted. */
static void check_pace(const struct cluster *c)
{
    for (uint32_t i = 0; i < c->job.node_count; i++) {
        const struct fake_node *node = &c->nodes[i];
        bool reads = node->state == FAKE_RUNNING && node->has_input &&
                     node->ranks_alive > 0 && node->generation == 1;
        if (reads &&
            c->input_granted > node->input_credited + c->input_window) {
            broken(c, "more is granted than the slowest has room for");
        }
    }
}

void fake_input_granted(struct cluster *c, const Gpul__InputCredit *credit)
{
    if (!c->has_operator) {
        return;
    }
    c->input_granted += credit->bytes;
    check_pace(c);
    while (!c->has_input_end) {
        uint64_t room = c->input_granted - c->input_sent;
        uint64_t left = c->input_bytes - c->input_sent;
        uint64_t bytes = left < room ? left : room;
        bytes = bytes < GPUL_INPUT_BYTES_MAX ? bytes : GPUL_INPUT_BYTES_MAX;
        c->has_input_end = bytes == left && c->ends_input;
        if (bytes == 0 && !c->has_input_end) {
            return;
        }
        send_piece(c, bytes, c->has_input_end);
    }
}

void fake_input(struct cluster *c, uint32_t index, const Gpul__Input *input)
{
    struct fake_node *node = &c->nodes[index];
    if (node->ranks_alive == 0) {
        return; /* swallowed */
    }
    /* The end may come again, for another agent. */
    if (node->has_input_end && (input->data.len > 0 || !input->is_end)) {
        broken(c, "something comes behind the end");
    }
    for (size_t i = 0; i < input->data.len; i++) {
        if (input->data.data[i] != byte_at(node->input_bytes + i)) {
            broken(c, "a byte is wrong");
        }
    }
    node->has_input = true;
    node->input_bytes += input->data.len;
    node->has_input_end = input->is_end;
    if (!node->never_takes) {
        cluster_plan(c, SIM_NODE_TIMER, index, FAKE_INPUT, node->generation,
                     node->take_ms);
    }
}

void fake_input_take(struct cluster *c, uint32_t index)
{
    struct fake_node *node = &c->nodes[index];
    Gpul__InputCredit credit = GPUL__INPUT_CREDIT__INIT;
    uint64_t bytes =
        node->input_bytes - node->input_credited + node->lies_about;
    node->input_credited = node->input_bytes;
    Gpul__Frame frame = fake_frame(node);
    frame.body_case = GPUL__FRAME__BODY_INPUT_CREDIT;
    frame.input_credit = &credit;
    /* A retry may bring two windows at once. */
    while (bytes > 0 || (node->has_input_end && !credit.is_closed)) {
        bool is_last = bytes <= GPUL_INPUT_WINDOW_BYTES_MAX;
        credit.bytes = is_last ? bytes : GPUL_INPUT_WINDOW_BYTES_MAX;
        credit.is_closed = is_last && node->has_input_end;
        bytes -= credit.bytes;
        fake_send(c, node, &frame);
    }
}
