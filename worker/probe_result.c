/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/probe_result.h"

#include <stdio.h>

#include "proto/limits.h"
#include "proto/text.h"

/* What a result refers to, for as long as it is being sent. */
struct texts {
    char error[GPUL_ERROR_TEXT_BYTES];
    char words[GPU_WORDS_BYTES];
    char phase[GPUL_TOKEN_BYTES_MAX];
    Gpul__ProbeRow rows[GPU_STEPS_MAX];
    Gpul__ProbeRow *row_list[GPU_STEPS_MAX];
};

static Gpul__Scope scope_of(bool is_within_node)
{
    return is_within_node ? GPUL__SCOPE__SCOPE_NODE : GPUL__SCOPE__SCOPE_WORLD;
}

static Gpul__ProbeRow row_message(const struct collective_row *row)
{
    Gpul__ProbeRow message = GPUL__PROBE_ROW__INIT;
    message.bytes = row->step.bytes;
    message.count = row->step.count;
    message.iterations = row->step.iterations;
    message.min_ns = row->stats.min_ns;
    message.median_ns = row->stats.median_ns;
    message.max_ns = row->stats.max_ns;
    message.mean_ns = row->stats.mean_ns;
    message.wrong_elements = row->wrong_elements;
    message.collective = (Gpul__Collective)row->step.collective;
    message.scope = scope_of(row->is_within_node);
    return message;
}

static void fill_in(Gpul__ProbeResult *message, struct texts *texts,
                    const struct probe_work *work)
{
    const struct collective_result *r = &work->result;
    for (size_t i = 0; i < r->row_count; i++) {
        texts->rows[i] = row_message(&r->rows[i]);
        texts->row_list[i] = &texts->rows[i];
    }
    message->n_rows = r->row_count;
    message->rows = texts->row_list;
    message->wrong_elements = r->wrong_elements;
    message->first_wrong_collective =
        (Gpul__Collective)r->first_wrong_collective;
    message->first_wrong_offset = r->first_wrong_index;
    message->first_wrong_bytes = r->first_wrong_bytes;
    message->first_wrong_bit = r->first_wrong_bit;
    message->first_wrong_scope = scope_of(r->first_wrong_is_within_node);
    snprintf(texts->words, sizeof(texts->words), "%s", work->gpu.words);
    message->library_error = texts->words;
    message->is_remote = work->gpu.is_remote;
}

int probe_result_tell(struct probe_channel *channel,
                      const Gpul__ProbeBegin *begin,
                      const struct probe_work *work,
                      const struct probe_ending *ending, struct gpul_error *err)
{
    struct texts texts;
    Gpul__ProbeResult message = GPUL__PROBE_RESULT__INIT;
    if (ending->is_done) {
        fill_in(&message, &texts, work);
    } else {
        message.is_remote = ending->has_waited;
    }
    snprintf(texts.phase, sizeof(texts.phase), "%s", ending->phase);
    message.phase = texts.phase;
    message.probe_rank = begin->first_rank;
    message.device_uuid = begin->device_uuid;
    message.is_simulated = atomic_load(&work->is_simulated);
    if (ending->why != NULL) {
        snprintf(texts.error, sizeof(texts.error), "%s", ending->why->text);
        gpul_text_clean(texts.error, sizeof(texts.error) - 1);
        message.error = texts.error;
    }
    Gpul__Frame frame = GPUL__FRAME__INIT;
    frame.body_case = GPUL__FRAME__BODY_PROBE_RESULT;
    frame.probe_result = &message;
    return probe_channel_write(channel, &frame, err);
}
