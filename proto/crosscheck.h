/* SPDX-License-Identifier: Apache-2.0
 *
 * What no single field of a message can tell: pages that add up, ranks
 * within their world, deadlines where there is something to wait for. Each
 * is called after the fields of its message have passed their own rules, and
 * returns 0 or GPUL_EPROTO with the fault. Pure.
 */
#ifndef GPUL_PROTO_CROSSCHECK_H
#define GPUL_PROTO_CROSSCHECK_H

#include <protobuf-c/protobuf-c.h>

#include "common/error.h"

int gpul_check_hello(const ProtobufCMessage *message, struct gpul_error *err);
int gpul_check_welcome(const ProtobufCMessage *message, struct gpul_error *err);
int gpul_check_self_test(const ProtobufCMessage *message,
                         struct gpul_error *err);
int gpul_check_variable(const ProtobufCMessage *message,
                        struct gpul_error *err);
int gpul_check_job(const ProtobufCMessage *message, struct gpul_error *err);
int gpul_check_check(const ProtobufCMessage *message, struct gpul_error *err);
int gpul_check_fact(const ProtobufCMessage *message, struct gpul_error *err);
int gpul_check_assign(const ProtobufCMessage *message, struct gpul_error *err);
int gpul_check_ready(const ProtobufCMessage *message, struct gpul_error *err);
int gpul_check_roster(const ProtobufCMessage *message, struct gpul_error *err);
int gpul_check_probe_start(const ProtobufCMessage *message,
                           struct gpul_error *err);
int gpul_check_probe_begin(const ProtobufCMessage *message,
                           struct gpul_error *err);
int gpul_check_leave(const ProtobufCMessage *message, struct gpul_error *err);
int gpul_check_hang(const ProtobufCMessage *message, struct gpul_error *err);
int gpul_check_input_target(const ProtobufCMessage *message,
                            struct gpul_error *err);
int gpul_check_input(const ProtobufCMessage *message, struct gpul_error *err);
int gpul_check_exits(const ProtobufCMessage *message, struct gpul_error *err);
int gpul_check_job_end(const ProtobufCMessage *message, struct gpul_error *err);
int gpul_check_input_credit(const ProtobufCMessage *message,
                            struct gpul_error *err);
int gpul_check_link_listening(const ProtobufCMessage *message,
                              struct gpul_error *err);
int gpul_check_link_peers(const ProtobufCMessage *message,
                          struct gpul_error *err);
int gpul_check_link_report(const ProtobufCMessage *message,
                           struct gpul_error *err);
int gpul_check_pair_start(const ProtobufCMessage *message,
                          struct gpul_error *err);
int gpul_check_pair_listening(const ProtobufCMessage *message,
                              struct gpul_error *err);
int gpul_check_trial_way(const ProtobufCMessage *message,
                         struct gpul_error *err);

#endif
