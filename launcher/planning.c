/* SPDX-License-Identifier: Apache-2.0 */
#include "launcher/planning.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define GIB (1024.0 * 1024 * 1024)
#define PARAMS_MAX 1e18

/* The shape that is assumed of a transformer. */
#define HIDDEN_PER_LAYER 128
#define HEAD_SIZE 128
#define SEQUENCE 4096

enum { GPUS_PER_NODE_MAX = 1024, STAGE_MAX = 3 };

const char *planning_source_name(enum planning_source source)
{
    static const char *const names[] = {
        [PLANNING_MEASURED] = "measured",
        [PLANNING_GIVEN] = "given",
        [PLANNING_ASSUMED] = "assumed",
        [PLANNING_UNKNOWN] = "unknown",
    };
    size_t index = (size_t)source;
    size_t last = sizeof(names) / sizeof(names[0]) - 1;
    return names[index < last ? index : last];
}

/* 0: no such unit. */
static double unit_of(const char *text)
{
    static const struct {
        const char *name;
        double scale;
    } units[] = {{"", 1},    {"k", 1e3}, {"m", 1e6},
                 {"b", 1e9}, {"g", 1e9}, {"t", 1e12}};
    for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
        if (strcasecmp(units[i].name, text) == 0) {
            return units[i].scale;
        }
    }
    return 0;
}

int planning_parse_params(double *out, const char *text, struct gpul_error *err)
{
    *out = 0;
    /* strtod would take more than that: hexadecimal, "inf", blanks. */
    size_t plain = strspn(text, "0123456789.");
    char *end = NULL;
    double number = plain > 0 ? strtod(text, &end) : 0;
    if (plain == 0 || text[plain] == 'x' || text[plain] == 'X' ||
        unit_of(end) == 0) {
        return gpul_fail(err, GPUL_EINVAL,
                         "\"%s\" is no number of parameters; write 70B, 1.5T, "
                         "350M or 7e9",
                         text);
    }
    double params = number * unit_of(end);
    if (!(params >= 1 && params <= PARAMS_MAX)) {
        return gpul_fail(err, GPUL_EINVAL,
                         "\"%s\" is not within 1 and 1e18 parameters", text);
    }
    *out = params;
    return 0;
}

static void assume(struct planning_value *value, double assumed)
{
    if (value->source == PLANNING_UNKNOWN) {
        *value = (struct planning_value){assumed, PLANNING_ASSUMED};
    }
}

/* Layers and hidden size such that P = 12 l h^2, as far as they are free. */
static void assume_shape(struct planning_model *m)
{
    const double squares = 12;
    double params = m->params.value;
    if (m->layers.source == PLANNING_UNKNOWN &&
        m->hidden.source == PLANNING_UNKNOWN) {
        double cube = params / (squares * HIDDEN_PER_LAYER * HIDDEN_PER_LAYER);
        assume(&m->layers, fmax(ceil(pow(cube, 1.0 / 3)), 1));
    }
    if (m->layers.source == PLANNING_UNKNOWN) {
        double one = squares * m->hidden.value * m->hidden.value;
        assume(&m->layers, fmax(ceil(params / one), 1));
    }
    assume(&m->hidden, ceil(sqrt(params / (squares * m->layers.value))));
    assume(&m->heads, fmax(ceil(m->hidden.value / HEAD_SIZE), 1));
}

static int check_value(const struct planning_value *value, const char *name,
                       struct gpul_error *err)
{
    if (value->source != PLANNING_UNKNOWN &&
        !(value->value > 0 && isfinite(value->value))) {
        return gpul_fail(err, GPUL_EINVAL, "%s: %g is not positive", name,
                         value->value);
    }
    return 0;
}

int planning_complete(struct planning_model *m, struct gpul_error *err)
{
    const struct {
        const struct planning_value *value;
        const char *name;
    } values[] = {
        {&m->params, "parameters"},  {&m->layers, "layers"},
        {&m->hidden, "hidden size"}, {&m->heads, "heads"},
        {&m->sequence, "sequence"},  {&m->batch, "batch"},
    };
    if (m->params.source == PLANNING_UNKNOWN) {
        return gpul_fail(err, GPUL_EINVAL,
                         "the number of parameters is not known; give it");
    }
    if (m->zero_stage > STAGE_MAX) {
        return gpul_fail(err, GPUL_EINVAL, "ZeRO has stages 0 to 3, not %u",
                         (unsigned int)m->zero_stage);
    }
    for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
        int status = check_value(values[i].value, values[i].name, err);
        if (status != 0) {
            return status;
        }
    }
    assume_shape(m);
    assume(&m->sequence, SEQUENCE);
    assume(&m->batch, 1);
    return 0;
}

static enum planning_source worse(enum planning_source a,
                                  enum planning_source b)
{
    return a > b ? a : b;
}

static double activations(const struct planning_model *m)
{
    double wide = m->precision == PLANNING_FP32 ? 2 : 1;
    double one = m->sequence.value * m->batch.value * m->hidden.value * wide;
    double attention = 5 * m->heads.value * m->sequence.value / m->hidden.value;
    double layers = m->layers.value;
    switch (m->checkpointing) {
    case PLANNING_RECOMPUTE_ATTENTION:
        return layers * one * 34;
    case PLANNING_RECOMPUTE_LAYERS:
        return layers * one * 2 + one * (34 + attention);
    default:
        return layers * one * (34 + attention);
    }
}

void planning_memory_need(struct planning_memory *out,
                          const struct planning_model *m, uint32_t gpus)
{
    double params = m->params.value;
    double number = m->precision == PLANNING_FP32 ? 4 : 2;
    double states = m->precision == PLANNING_FP32 ? 8 : 12;
    double shared = gpus > 0 ? gpus : 1;
    *out = (struct planning_memory){
        .weights = number * params / (m->zero_stage >= 3 ? shared : 1),
        .gradients = number * params / (m->zero_stage >= 2 ? shared : 1),
        .optimizer = states * params / (m->zero_stage >= 1 ? shared : 1),
        .gathered = m->zero_stage >= 3 ? number * params / m->layers.value : 0,
        .activations = activations(m),
        .source = m->params.source,
    };
    if (m->zero_stage >= 3) {
        out->source = worse(out->source, m->layers.source);
    }
    out->total = out->weights + out->gradients + out->optimizer +
                 out->gathered + out->activations;
    const struct planning_value *const shape[] = {
        &m->layers, &m->hidden, &m->heads, &m->sequence, &m->batch};
    out->activations_source = out->source;
    for (size_t i = 0; i < sizeof(shape) / sizeof(shape[0]); i++) {
        out->activations_source =
            worse(out->activations_source, shape[i]->source);
    }
}

/* What the user could change, the most effective thing first. */
static const char *remedy(const struct planning_fit *fit,
                          const struct planning_model *m)
{
    if (fit->need.activations > fit->usable_bytes / 2 &&
        m->checkpointing != PLANNING_RECOMPUTE_LAYERS) {
        return "recompute activations";
    }
    if (m->zero_stage < STAGE_MAX) {
        return "a higher stage of ZeRO shares more among the GPUs";
    }
    return "take a smaller batch or shorter sequences, or split layers among "
           "GPUs (not planned here)";
}

static int check_machine(struct planning_fit *out,
                         const struct planning_machine *machine,
                         struct gpul_error *err)
{
    struct planning_value share = machine->usable_share;
    const struct planning_value *memory = &machine->gpu_bytes;
    const struct planning_value *gpus = &machine->gpus_per_node;
    assume(&share, PLANNING_USABLE_SHARE);
    if (memory->source == PLANNING_UNKNOWN || !(memory->value > 0) ||
        !isfinite(memory->value)) {
        return gpul_fail(err, GPUL_EINVAL,
                         "the memory of a GPU is not known; give it");
    }
    if (gpus->source == PLANNING_UNKNOWN ||
        !(gpus->value >= 1 && gpus->value <= GPUS_PER_NODE_MAX) ||
        gpus->value != floor(gpus->value)) {
        return gpul_fail(err, GPUL_EINVAL,
                         "the GPUs of a node are not known; give a number from "
                         "1 to %d",
                         GPUS_PER_NODE_MAX);
    }
    if (!(share.value > 0 && share.value <= 1)) {
        return gpul_fail(err, GPUL_EINVAL,
                         "%g is no share of the memory; give one above 0 and "
                         "up to 1",
                         share.value);
    }
    out->usable_bytes = memory->value * share.value;
    out->source = worse(worse(memory->source, gpus->source), share.source);
    return 0;
}

static bool fits(struct planning_fit *fit, const struct planning_model *model,
                 uint32_t gpus)
{
    planning_memory_need(&fit->need, model, gpus);
    return fit->need.total <= fit->usable_bytes;
}

int planning_smallest(struct planning_fit *out,
                      const struct planning_model *model,
                      const struct planning_machine *machine,
                      struct gpul_error *err)
{
    *out = (struct planning_fit){.source = PLANNING_UNKNOWN};
    int status = check_machine(out, machine, err);
    if (status != 0) {
        return status;
    }
    uint32_t gpus = (uint32_t)machine->gpus_per_node.value;
    uint32_t few = 0; /* does not fit */
    uint32_t many = PLANNING_NODES_MAX;
    if (!fits(out, model, many * gpus)) {
        return gpul_fail(
            err, GPUL_ELIMIT,
            "fits on no number of nodes: one GPU needs %.1f GiB whatever "
            "their number, %.1f of that for activations, and has %.1f for "
            "them; %s",
            out->need.total / GIB, out->need.activations / GIB,
            out->usable_bytes / GIB, remedy(out, model));
    }
    while (many - few > 1) {
        uint32_t between = few + (many - few) / 2;
        if (fits(out, model, between * gpus)) {
            many = between;
        } else {
            few = between;
        }
    }
    fits(out, model, many * gpus);
    out->nodes = many;
    out->source = worse(out->source, out->need.activations_source);
    return 0;
}
