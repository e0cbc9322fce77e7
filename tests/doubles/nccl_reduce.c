/* SPDX-License-Identifier: Apache-2.0
 *
 * One loop for each type. The two types of 16 bits are widened to float, as
 * the device code does, and rounded to nearest even. */
#include "tests/doubles/nccl_reduce.h"

#include <stdint.h>
#include <string.h>

size_t reduce_bytes(int type)
{
    static const size_t bytes[] = {
        [NCCL_INT8] = 1,     [NCCL_UINT8] = 1,   [NCCL_INT32] = 4,
        [NCCL_UINT32] = 4,   [NCCL_INT64] = 8,   [NCCL_UINT64] = 8,
        [NCCL_FLOAT16] = 2,  [NCCL_FLOAT32] = 4, [NCCL_FLOAT64] = 8,
        [NCCL_BFLOAT16] = 2,
    };

    return type >= 0 && (size_t)type < sizeof bytes / sizeof bytes[0]
               ? bytes[type]
               : 0;
}

/* --- Floats of 16 bits -------------------------------------------------- */

static float float_of(uint32_t bits)
{
    float value;

    memcpy(&value, &bits, sizeof value);
    return value;
}

static uint32_t bits_of(float value)
{
    uint32_t bits;

    memcpy(&bits, &value, sizeof bits);
    return bits;
}

/* `bits` without its last `n`, rounded to nearest, ties to even. */
static uint32_t round_off(uint32_t bits, unsigned n)
{
    uint32_t half = 1u << (n - 1);
    uint32_t odd = bits >> n & 1;

    return (bits + half - 1 + odd) >> n;
}

static float from_bfloat(uint16_t half)
{
    return float_of((uint32_t)half << 16);
}

static uint16_t to_bfloat(float value)
{
    uint32_t bits = bits_of(value);

    if (value != value)
        return 0x7fc0;
    return (uint16_t)round_off(bits, 16);
}

static float from_half(uint16_t half)
{
    uint32_t sign = (uint32_t)(half & 0x8000) << 16;
    uint32_t exponent = half >> 10 & 0x1f, fraction = half & 0x3ff;

    if (exponent == 0x1f)
        return float_of(sign | 0x7f800000 | fraction << 13);
    if (exponent == 0) { /* 2^-24 is the least of them */
        float small = (float)fraction * 0x1p-24f;
        return sign ? -small : small;
    }
    return float_of(sign | (exponent + 112) << 23 | fraction << 13);
}

static uint16_t to_half(float value)
{
    uint32_t bits = bits_of(value);
    uint32_t sign = bits >> 16 & 0x8000, size = bits & 0x7fffffff;

    if (size > 0x7f800000)
        return 0x7e00;
    if (size >= 0x477ff000) /* 65520 and above round to infinity */
        return (uint16_t)(sign | 0x7c00);
    if (size < 0x38800000) { /* below 2^-14: the adder rounds for us */
        float small = float_of(size) + 0.5f;
        return (uint16_t)(sign | (bits_of(small) - bits_of(0.5f)));
    }
    return (uint16_t)(sign | (round_off(size, 13) - (112u << 10)));
}

/* --- Loops -------------------------------------------------------------- */

#define OPERATE(a, b, op)                                                      \
    ((op) == NCCL_PROD  ? (a) * (b)                                            \
     : (op) == NCCL_MAX ? ((a) > (b) ? (a) : (b))                              \
     : (op) == NCCL_MIN ? ((a) < (b) ? (a) : (b))                              \
                        : (a) + (b))

/* `wide` is unsigned where signed arithmetic could overflow. */
#define ADD(name, narrow, wide, order)                                         \
    static void add_##name(void *into, const void *from, size_t count, int op) \
    {                                                                          \
        narrow *to = into;                                                     \
        const narrow *by = from;                                               \
                                                                               \
        for (size_t i = 0; i < count; i++)                                     \
            if (op == NCCL_MAX || op == NCCL_MIN)                              \
                to[i] = (narrow)OPERATE((order)to[i], (order)by[i], op);       \
            else                                                               \
                to[i] = (narrow)OPERATE((wide)to[i], (wide)by[i], op);         \
    }
ADD(int8, int8_t, uint32_t, int8_t)
ADD(uint8, uint8_t, uint32_t, uint8_t)
ADD(int32, int32_t, uint32_t, int32_t)
ADD(uint32, uint32_t, uint32_t, uint32_t)
ADD(int64, int64_t, uint64_t, int64_t)
ADD(uint64, uint64_t, uint64_t, uint64_t)
ADD(float32, float, float, float)
ADD(float64, double, double, double)

#define ADD_16(name, widen, narrow)                                            \
    static void add_##name(void *into, const void *from, size_t count, int op) \
    {                                                                          \
        uint16_t *to = into;                                                   \
        const uint16_t *by = from;                                             \
                                                                               \
        for (size_t i = 0; i < count; i++)                                     \
            to[i] = narrow(OPERATE(widen(to[i]), widen(by[i]), op));           \
    }
ADD_16(float16, from_half, to_half)
ADD_16(bfloat16, from_bfloat, to_bfloat)

void reduce_add(void *into, const void *from, size_t count, int type, int op)
{
    static void (*const add[])(void *, const void *, size_t, int) = {
        [NCCL_INT8] = add_int8,       [NCCL_UINT8] = add_uint8,
        [NCCL_INT32] = add_int32,     [NCCL_UINT32] = add_uint32,
        [NCCL_INT64] = add_int64,     [NCCL_UINT64] = add_uint64,
        [NCCL_FLOAT16] = add_float16, [NCCL_FLOAT32] = add_float32,
        [NCCL_FLOAT64] = add_float64, [NCCL_BFLOAT16] = add_bfloat16,
    };

    add[type](into, from, count, op);
}

#define DIVIDE(type)                                                           \
    for (size_t i = 0; i < count; i++)                                         \
    ((type *)into)[i] = (type)(((type *)into)[i] / (type)ranks)

void reduce_finish(void *into, size_t count, int type, int op, int ranks)
{
    uint16_t *halves = into;

    if (op != NCCL_AVG)
        return;
    switch (type) {
    case NCCL_INT8:
        DIVIDE(int8_t);
        break;
    case NCCL_UINT8:
        DIVIDE(uint8_t);
        break;
    case NCCL_INT32:
        DIVIDE(int32_t);
        break;
    case NCCL_UINT32:
        DIVIDE(uint32_t);
        break;
    case NCCL_INT64:
        DIVIDE(int64_t);
        break;
    case NCCL_UINT64:
        DIVIDE(uint64_t);
        break;
    case NCCL_FLOAT32:
        DIVIDE(float);
        break;
    case NCCL_FLOAT64:
        DIVIDE(double);
        break;
    case NCCL_FLOAT16:
        for (size_t i = 0; i < count; i++)
            halves[i] = to_half(from_half(halves[i]) / (float)ranks);
        break;
    case NCCL_BFLOAT16:
        for (size_t i = 0; i < count; i++)
            halves[i] = to_bfloat(from_bfloat(halves[i]) / (float)ranks);
        break;
    default:
        break;
    }
}
