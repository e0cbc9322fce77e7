/* SPDX-License-Identifier: Apache-2.0
 *
 * Device memory in use, over all processes of a node. Each process that uses
 * a device keeps one small file beside the scenario (FILE.memory/NODE.PID)
 * with the bytes it holds on each; the doubles of libcuda and libnvidia-ml
 * add them up. The file of a process that is gone, however it went, counts
 * no longer and is removed by whoever looks next.
 */
#ifndef DOUBLES_RECORDS_H
#define DOUBLES_RECORDS_H

#include <stdint.h>

#include "tests/doubles/scenario.h"

struct record_use { /* one process on one device */
    uint64_t pid;
    uint64_t bytes;
    bool is_gone; /* its memory lingers */
};

/* Takes `bytes` of device `gpu` for this process, or gives them back when
 * they are negative. 0; -1 when the device has not as many left, when the
 * machine gives no file, or without a scenario. */
int records_take(unsigned gpu, int64_t bytes);

/* Writes up to `most` users of a device; the number that there are. */
unsigned records_uses(unsigned gpu, struct record_use *uses, unsigned most);

/* Bytes in use on a device: the scenario's own and those of all processes. */
uint64_t records_used(unsigned gpu);

/* Removes this process's file. */
void records_leave(void);

#endif
