/* SPDX-License-Identifier: Apache-2.0
 *
 * What a model needs before anything has run: memory, nodes; and from a
 * measured record the time of a step and the efficiency. Pure. Bytes, seconds.
 *
 * Memory of one GPU, for P parameters on n GPUs with Adam (S. Rajbhandari and
 * others, "ZeRO: memory optimizations toward training trillion parameter
 * models", 2020, section 3 and figure 1):
 *
 *                  weights  gradients  optimizer
 *     bf16         2P       2P         12P
 *     fp32         4P       4P         8P
 *     stage 1      .        .          / n
 *     stage 2      .        / n        / n
 *     stage 3      / n      / n        / n
 *
 * bf16 keeps a copy of the weights in fp32, which is in its 12. In stage 3 the
 * weights of the layer at work are there in full as well. Activations of a
 * transformer with l layers, hidden size h, a heads, b sequences of s tokens
 * on each GPU at a time (V. Korthikanti and others, "Reducing activation
 * recomputation in large transformer models", 2022, equation 1 and section 5):
 *
 *     all kept              l s b h (34 + 5 a s / h)
 *     attention recomputed  l s b h 34
 *     only layers' inputs   l s b h 2, and one layer in full
 *
 * for 16-bit numbers; 32-bit ones are taken to need twice that. Not counted:
 * tensor and pipeline parallelism, mixtures of experts, logits.
 *
 * A step (data parallel; o is the share of the all-reduce that computing
 * hides):
 *
 *     T = C + (1 - o) T_ar(S, n)      E = C / T
 *
 * S is that of the gradients; stage 3 moves half as much again for the weights
 * (ZeRO, section 7.2.2).
 *
 * Every figure says where it is from; what follows from several is as good as
 * the worst of them.
 */
#ifndef LAUNCHER_PLANNING_H
#define LAUNCHER_PLANNING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/error.h"
#include "common/stats.h"
#include "launcher/latfit.h"

/* By falling worth. */
enum planning_source {
    PLANNING_MEASURED = 0,
    PLANNING_GIVEN = 1, /* by the user */
    PLANNING_ASSUMED = 2,
    PLANNING_UNKNOWN = 3, /* the value is 0 and means nothing */
};

/* "measured", "given", "assumed", "unknown". */
const char *planning_source_name(enum planning_source source);

struct planning_value {
    double value;
    enum planning_source source;
};

/* "70B", "1.5T", "7e9", "350M": decimal. Errors: GPUL_EINVAL naming the forms,
 * and for anything outside 1 .. 1e18. */
int planning_parse_params(double *out, const char *text,
                          struct gpul_error *err);

enum planning_precision {
    PLANNING_BF16 = 0, /* or fp16, with weights in fp32 beside */
    PLANNING_FP32 = 1,
};

enum planning_checkpointing {
    PLANNING_KEEP_ALL = 0,
    PLANNING_RECOMPUTE_ATTENTION = 1,
    PLANNING_RECOMPUTE_LAYERS = 2,
};

/* What is trained. A value of which the source is PLANNING_UNKNOWN is not
 * given; planning_complete assumes one. */
struct planning_model {
    struct planning_value params;
    struct planning_value layers;
    struct planning_value hidden;
    struct planning_value heads;
    struct planning_value sequence; /* tokens */
    struct planning_value batch;    /* sequences on a GPU at a time */
    enum planning_precision precision;
    enum planning_checkpointing checkpointing;
    uint32_t zero_stage; /* 0 .. 3 */
};

/* Fill in what is not given: P = 12 l h^2 (D. Narayanan and others, "Efficient
 * large-scale language model training on GPU clusters using Megatron-LM",
 * 2021, equation 2 without the vocabulary) and h = 128 l with heads of 128, the
 * shape of GPT-3 (T. Brown and others, 2020, table 2.1); 4096 tokens; one
 * sequence. Errors: GPUL_EINVAL for parameters that are not known, values that
 * are not positive, a stage over 3. */
int planning_complete(struct planning_model *model, struct gpul_error *err);

/* Bytes on one GPU. */
struct planning_memory {
    double weights;
    double gradients;
    double optimizer;
    double gathered; /* the layer at work, of stage 3 */
    double activations;
    double total;
    enum planning_source source;             /* of all but activations */
    enum planning_source activations_source; /* and of the total */
};

/* Of a completed model on so many GPUs, one at least. */
void planning_memory_need(struct planning_memory *out,
                          const struct planning_model *model, uint32_t gpus);

struct planning_machine {
    struct planning_value gpu_bytes;     /* memory of one GPU */
    struct planning_value gpus_per_node; /* whole, 1 to 1024 */
    /* Of the memory, for the model; the rest is the driver's, the
     * communication library's, and lost in pieces. Unknown:
     * PLANNING_USABLE_SHARE is assumed. */
    struct planning_value usable_share;
};

#define PLANNING_USABLE_SHARE 0.90

enum { PLANNING_NODES_MAX = 100000 };

struct planning_fit {
    uint32_t nodes;              /* the fewest */
    struct planning_memory need; /* of one GPU there */
    double usable_bytes;         /* of one GPU */
    enum planning_source source; /* the worst of model and machine */
};

/* The smallest count of nodes on which a completed model fits. Errors:
 * GPUL_EINVAL for a machine that is not known; GPUL_ELIMIT when it fits on no
 * count, saying what one GPU needs however many there are, and what would
 * help; `need` then has that. */
int planning_smallest(struct planning_fit *out,
                      const struct planning_model *model,
                      const struct planning_machine *machine,
                      struct gpul_error *err);

/* What a step is made of. */
struct planning_step {
    struct planning_value compute;   /* C, seconds */
    struct planning_value overlap;   /* o, 0 .. 1; unknown: none to all */
    struct gpul_estimate all_reduce; /* T_ar of one all-reduce, seconds */
    enum planning_source all_reduce_source;
};

/* Bytes that an all-reduce of the gradients has, times what the stage moves
 * more than that. */
double planning_reduced_bytes(const struct planning_model *model);

/* The overlap that explains a measured step: 1 - (T - C) / T_ar, cut to 0 .. 1.
 * False when a time is not positive. */
bool planning_overlap(double *out, double step_seconds, double compute_seconds,
                      double all_reduce_seconds);

struct planning_prediction {
    struct gpul_estimate step;       /* seconds */
    struct gpul_estimate efficiency; /* within 0 .. 1 */
    enum planning_source source;
};

/* The interval has that of the all-reduce, and all overlaps where that is not
 * known; then the value is that of none, the slowest, and assumed. Errors:
 * GPUL_EINVAL for a compute time or an all-reduce that is not known, an
 * overlap outside 0 .. 1. */
int planning_predict(struct planning_prediction *out,
                     const struct planning_step *step, struct gpul_error *err);

#endif
