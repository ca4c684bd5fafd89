// SPDX-License-Identifier: Apache-2.0
//
// keychain-fingerprint: verifies fingers with fprintd for keychaind, which decides what a match is good for.
//
// keychaind sends tasks, each with a random nonce: to look for the reader and the enrolled fingers of a user, to verify a finger, or to end that.
// A verification always ends with VerifyStop and Release, also if keychaind ends. The program has no key and learns no secret. Only root can own the
// name of fprintd on the message bus of the system. Everybody on the bus can send a signal to this program alone, whatever it has subscribed to, and
// sd-bus does not compare the sender with the owner of the name. So this program does.
//
// It is a program of its own in C, because keychaind links no libsystemd and reads no messages of D-Bus.
#define _GNU_SOURCE
#include "keychaind_call.h"

#include <pwd.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <systemd/sd-bus.h>
#include <systemd/sd-daemon.h>

enum {
    largest_finger_count = 32,
    largest_name_byte_count = 128,
    largest_user_name_byte_count = 256,
    task_byte_count = nonce_byte_count + 1 + 4 + 1 + 4,
    bus_timeout_microseconds = 4000000,
    // Some readers take long to open.
    claim_timeout_microseconds = 15000000,
    connect_timeout_milliseconds = 10000,
};

enum task_kind { task_inspect = 1, task_verify = 2, task_cancel = 3 };

enum result {
    result_none = 0,
    result_success = 1,
    result_no_match = 2,
    result_not_enrolled = 3,
    result_no_reader = 4,
    result_no_service = 5,
    result_busy = 6,
    result_no_local_session = 7,
    result_disconnected = 8,
    result_timed_out = 9,
    result_canceled = 10,
    result_failed_otherwise = 11,
};

static const char program_name[] = "keychain-fingerprint";
static const char fprint_name[] = "net.reactivated.Fprint";
static const char manager_path[] = "/net/reactivated/Fprint/Manager";
static const char manager_interface[] = "net.reactivated.Fprint.Manager";
static const char device_interface[] = "net.reactivated.Fprint.Device";
static const char login_name[] = "org.freedesktop.login1";
static const char session_interface[] = "org.freedesktop.login1.Session";

struct task {
    uint8_t nonce[nonce_byte_count];
    enum task_kind kind;
    uint32_t user;
    uint8_t attempt_count;
    uint32_t timeout_seconds;
};

struct fingers {
    char reader[largest_name_byte_count];
    char names[largest_finger_count][largest_name_byte_count];
    size_t count;
};

struct program {
    const char *socket_path;
    sd_bus *bus;
    int keychaind;

    // The verification that goes on; `result` is set when it is over.
    bool is_verifying;
    struct task verified;
    // The unique name of fprintd's connection.
    char service[largest_name_byte_count];
    char device[largest_name_byte_count];
    uint8_t mismatch_count;
    int64_t deadline;
    enum result result;
    bool starts_again;
};

// Prints a line for the log of the service, and ends the program.
__attribute__((noreturn, format(printf, 1, 2))) static void fail(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    fprintf(stderr, "%s: ", program_name);
    vfprintf(stderr, format, arguments);
    fprintf(stderr, "\n");
    va_end(arguments);
    exit(EXIT_FAILURE);
}

// Copies a text of UTF-8, without the characters that have no room.
static void copy_text(char *target, size_t byte_count, const char *text) {
    size_t length = strnlen(text, byte_count - 1);
    if (text[length] != 0)
        while (length > 0 && ((unsigned char)text[length] & 0xc0) == 0x80) length--;
    memcpy(target, text, length);
    target[length] = 0;
}

// MARK: keychaind

static void send_answer(struct program *program, const struct task *task, enum result result, uint8_t mismatches, const struct fingers *fingers) {
    static const struct fingers none;
    if (fingers == NULL) fingers = &none;
    // Larger than the packets of the other helpers.
    static uint8_t bytes[header_byte_count + 64 + (largest_finger_count + 1) * (largest_name_byte_count + 4)];
    struct packet packet;
    begin_request(&packet, operation_fingerprint_answer);
    append(&packet, task->nonce, sizeof(task->nonce));
    append_number(&packet, result, 1);
    append_number(&packet, mismatches, 1);
    size_t count = packet.byte_count;
    memcpy(bytes, packet.bytes, count);
#define APPEND_NUMBER(value) \
    do { \
        uint32_t number = (uint32_t)(value); \
        for (int index = 0; index < 4; index++) bytes[count++] = (uint8_t)(number >> (8 * index)); \
    } while (0)
#define APPEND_TEXT(text) \
    do { \
        APPEND_NUMBER(strlen(text)); \
        memcpy(bytes + count, text, strlen(text)); \
        count += strlen(text); \
    } while (0)
    APPEND_TEXT(fingers->reader);
    APPEND_NUMBER(fingers->count);
    for (size_t index = 0; index < fingers->count; index++) APPEND_TEXT(fingers->names[index]);
    uint32_t body_byte_count = (uint32_t)(count - header_byte_count);
    for (int index = 0; index < 4; index++) bytes[header_byte_count - 4 + index] = (uint8_t)(body_byte_count >> (8 * index));
    // keychaind reads all packets at once. If it does not, it has ended, and so does this program.
    if (send(program->keychaind, bytes, count, MSG_NOSIGNAL) != (ssize_t)count && errno != EPIPE) fail("keychaind cannot be answered");
}

// Reads a task from a packet; returns false for anything else.
static bool parse_task(const uint8_t *bytes, size_t byte_count, struct task *task) {
    if (byte_count != header_byte_count + 2 + task_byte_count || bytes[0] != protocol_version || bytes[1] != kind_reply) return false;
    const uint8_t *body = bytes + header_byte_count;
    if (body[1] != result_fingerprint_task) return false;
    body += 2;
    memcpy(task->nonce, body, nonce_byte_count);
    body += nonce_byte_count;
    task->kind = body[0];
    task->user = (uint32_t)body[1] | (uint32_t)body[2] << 8 | (uint32_t)body[3] << 16 | (uint32_t)body[4] << 24;
    task->attempt_count = body[5];
    task->timeout_seconds = (uint32_t)body[6] | (uint32_t)body[7] << 8 | (uint32_t)body[8] << 16 | (uint32_t)body[9] << 24;
    return task->kind >= task_inspect && task->kind <= task_cancel;
}

static void announce(struct program *program) {
    int32_t status = 0;
    // keychaind may be starting.
    int64_t deadline = now_milliseconds() + connect_timeout_milliseconds;
    enum outcome outcome = open_connection(program->socket_path, program_name, &program->keychaind, &status, deadline);
    if (outcome == outcome_done) {
        struct packet packet;
        begin_request(&packet, operation_serve_fingerprints);
        outcome = exchange(program->keychaind, &packet, &status, deadline);
    }
    if (outcome == outcome_refused) fail("keychaind does not accept this program: status %d", (int)status);
    if (outcome != outcome_done) fail("keychaind cannot be called");
}

// MARK: fprintd

static enum result result_of_error(const sd_bus_error *error) {
    if (sd_bus_error_has_name(error, "net.reactivated.Fprint.Error.NoEnrolledPrints")) return result_not_enrolled;
    if (sd_bus_error_has_name(error, "net.reactivated.Fprint.Error.NoSuchDevice")) return result_no_reader;
    if (sd_bus_error_has_name(error, "net.reactivated.Fprint.Error.AlreadyInUse")) return result_busy;
    if (sd_bus_error_has_name(error, "net.reactivated.Fprint.Error.PermissionDenied") || sd_bus_error_has_name(error, SD_BUS_ERROR_SERVICE_UNKNOWN)
        || sd_bus_error_has_name(error, SD_BUS_ERROR_NAME_HAS_NO_OWNER) || sd_bus_error_has_name(error, SD_BUS_ERROR_ACCESS_DENIED)
        || sd_bus_error_has_name(error, "org.freedesktop.DBus.Error.Spawn.ServiceNotFound"))
        return result_no_service;
    // The reader, and with it the object, is gone.
    if (sd_bus_error_has_name(error, SD_BUS_ERROR_UNKNOWN_OBJECT) || sd_bus_error_has_name(error, SD_BUS_ERROR_UNKNOWN_METHOD))
        return result_disconnected;
    return result_failed_otherwise;
}

// Calls a method of the reader with a text, or with none if it is NULL.
static enum result call_device(struct program *program, const char *device, const char *method, const char *text) {
    sd_bus_error error = SD_BUS_ERROR_NULL;
    sd_bus_message *call = NULL;
    int status = sd_bus_message_new_method_call(program->bus, &call, fprint_name, device, device_interface, method);
    if (status >= 0 && text != NULL) status = sd_bus_message_append(call, "s", text);
    if (status >= 0) status = sd_bus_call(program->bus, call, claim_timeout_microseconds, &error, NULL);
    sd_bus_message_unref(call);
    // The claim may be granted later. fprintd releases the reader when it notices that this program has left the bus.
    if (status == -ETIMEDOUT || sd_bus_error_has_name(&error, SD_BUS_ERROR_NO_REPLY) || sd_bus_error_has_name(&error, SD_BUS_ERROR_TIMEOUT))
        fail("fprintd does not answer %s", method);
    enum result result = status < 0 ? result_of_error(&error) : result_success;
    if (result == result_failed_otherwise) fprintf(stderr, "%s: fprintd refuses %s: %s\n", program_name, method, error.message != NULL ? error.message : strerror(-status));
    sd_bus_error_free(&error);
    return result;
}

// Finds out which connection has the name of fprintd.
static enum result find_service(struct program *program) {
    sd_bus_creds *credentials = NULL;
    const char *name = NULL;
    int status = sd_bus_get_name_creds(program->bus, fprint_name, SD_BUS_CREDS_UNIQUE_NAME, &credentials);
    if (status >= 0) status = sd_bus_creds_get_unique_name(credentials, &name);
    bool is_found = status >= 0 && strlen(name) < sizeof(program->service);
    if (is_found) strcpy(program->service, name);
    sd_bus_creds_unref(credentials);
    return is_found ? result_success : result_no_service;
}

static bool is_from(sd_bus_message *message, const char *name) {
    const char *sender = sd_bus_message_get_sender(message);
    return sender != NULL && strcmp(sender, name) == 0;
}

static enum result find_device(struct program *program, char *device) {
    sd_bus_error error = SD_BUS_ERROR_NULL;
    sd_bus_message *reply = NULL;
    const char *path = NULL;
    int status = sd_bus_call_method(program->bus, fprint_name, manager_path, manager_interface, "GetDefaultDevice", &error, &reply, "");
    if (status >= 0) status = sd_bus_message_read(reply, "o", &path);
    enum result result = status < 0 ? result_of_error(&error) : result_success;
    if (result == result_success && strlen(path) >= largest_name_byte_count) result = result_failed_otherwise;
    if (result == result_success) strcpy(device, path);
    sd_bus_error_free(&error);
    sd_bus_message_unref(reply);
    return result;
}

static enum result list_fingers(struct program *program, const char *device, const char *user, struct fingers *fingers) {
    sd_bus_error error = SD_BUS_ERROR_NULL;
    sd_bus_message *reply = NULL;
    char *name = NULL;
    fingers->count = 0;
    int status = sd_bus_get_property_string(program->bus, fprint_name, device, device_interface, "name", &error, &name);
    if (status >= 0) copy_text(fingers->reader, sizeof(fingers->reader), name);
    free(name);
    if (status >= 0) status = sd_bus_call_method(program->bus, fprint_name, device, device_interface, "ListEnrolledFingers", &error, &reply, "s", user);
    if (status >= 0) status = sd_bus_message_enter_container(reply, 'a', "s");
    while (status >= 0) {
        const char *finger = NULL;
        status = sd_bus_message_read(reply, "s", &finger);
        if (status <= 0) break;
        if (fingers->count < largest_finger_count) copy_text(fingers->names[fingers->count++], largest_name_byte_count, finger);
    }
    enum result result = status < 0 ? result_of_error(&error) : fingers->count == 0 ? result_not_enrolled : result_success;
    sd_bus_error_free(&error);
    sd_bus_message_unref(reply);
    return result;
}

static bool find_user_name(uint32_t user, char *name) {
    char buffer[4096];
    struct passwd record, *found = NULL;
    if (getpwuid_r(user, &record, buffer, sizeof(buffer), &found) != 0 || found == NULL) return false;
    if (strlen(found->pw_name) >= largest_user_name_byte_count) return false;
    strcpy(name, found->pw_name);
    return true;
}

static bool has_flag(struct program *program, const char *path, const char *name, bool value) {
    int flag = !value;
    int status = sd_bus_get_property_trivial(program->bus, login_name, path, session_interface, name, NULL, 'b', &flag);
    return status >= 0 && (flag != 0) == value;
}

static bool has_text(struct program *program, const char *path, const char *name, const char *value) {
    char *text = NULL;
    bool is_same = sd_bus_get_property_string(program->bus, login_name, path, session_interface, name, NULL, &text) >= 0 && strcmp(text, value) == 0;
    free(text);
    return is_same;
}

// Whether a session of logind has a seat. A job that PAM opens a session for has none, and is local and active nevertheless.
static bool has_seat(struct program *program, const char *path) {
    sd_bus_message *reply = NULL;
    const char *seat = "";
    int status = sd_bus_get_property(program->bus, login_name, path, session_interface, "Seat", NULL, &reply, "(so)");
    if (status >= 0) status = sd_bus_message_read(reply, "(so)", &seat, NULL);
    bool is_seated = status >= 0 && seat[0] != 0;
    sd_bus_message_unref(reply);
    return is_seated;
}

// Whether a person uses a session in front of this machine, and has not locked it: a finger for the lock screen must release nothing else.
static bool is_in_use(struct program *program, const char *path) {
    return has_flag(program, path, "Remote", false) && has_flag(program, path, "Active", true) && has_flag(program, path, "LockedHint", false)
        && has_text(program, path, "Class", "user") && has_seat(program, path);
}

// Whether the user is in front of this machine. The right of this program to use fprintd says nothing about that.
static bool has_local_session(struct program *program, uint32_t user) {
    sd_bus_message *reply = NULL;
    bool is_found = false;
    int status = sd_bus_call_method(
        program->bus, login_name, "/org/freedesktop/login1", "org.freedesktop.login1.Manager", "ListSessions", NULL, &reply, "");
    if (status >= 0) status = sd_bus_message_enter_container(reply, 'a', "(susso)");
    while (status >= 0 && !is_found) {
        const char *path = NULL;
        uint32_t owner = 0;
        status = sd_bus_message_read(reply, "(susso)", NULL, &owner, NULL, NULL, &path);
        if (status <= 0) break;
        is_found = owner == user && is_in_use(program, path);
    }
    sd_bus_message_unref(reply);
    return is_found;
}

static enum result inspect(struct program *program, uint32_t user, char *device, char *name, struct fingers *fingers) {
    if (!find_user_name(user, name)) return result_failed_otherwise;
    enum result result = find_device(program, device);
    if (result != result_success) return result;
    if (!has_local_session(program, user)) return result_no_local_session;
    return list_fingers(program, device, name, fingers);
}

// MARK: Verification

// Handles what the bus has delivered. After a reply that is everything which was sent before it, so a status of an earlier verification is not taken
// for one of the next.
static void drain(struct program *program) {
    int processed;
    do processed = sd_bus_process(program->bus, NULL); while (processed > 0);
    if (processed < 0) fail("the message bus is lost");
}

static void begin_verification(struct program *program, const struct task *task) {
    struct fingers fingers = {0};
    char name[largest_user_name_byte_count];
    enum result result = program->is_verifying ? result_busy : inspect(program, task->user, program->device, name, &fingers);
    if (result == result_success) result = call_device(program, program->device, "Claim", name);
    if (result != result_success) return send_answer(program, task, result, 0, NULL);
    // Signals are subscribed to already. From here on the reader is released in any case.
    drain(program);
    program->is_verifying = true;
    program->verified = *task;
    program->mismatch_count = 0;
    program->result = result_none;
    program->starts_again = false;
    program->deadline = now_milliseconds() + 1000 * (int64_t)task->timeout_seconds;
    result = find_service(program);
    if (result == result_success) result = call_device(program, program->device, "VerifyStart", "any");
    if (result != result_success) program->result = result;
}

static void end_verification(struct program *program) {
    struct fingers fingers = {0};
    char device[largest_name_byte_count], name[largest_user_name_byte_count];
    // A reader that is gone refuses both.
    (void)call_device(program, program->device, "VerifyStop", NULL);
    // After the match and before the reader is free for others.
    if (program->result == result_success) {
        enum result result = inspect(program, program->verified.user, device, name, &fingers);
        if (result != result_success) program->result = result;
    }
    (void)call_device(program, program->device, "Release", NULL);
    program->is_verifying = false;
    send_answer(program, &program->verified, program->result, program->mismatch_count, &fingers);
}

static void note_status(struct program *program, const char *status) {
    if (strcmp(status, "verify-match") == 0) program->result = result_success;
    else if (strcmp(status, "verify-no-match") == 0) {
        if (program->mismatch_count < UINT8_MAX) program->mismatch_count++;
        if (program->mismatch_count < program->verified.attempt_count) program->starts_again = true;
        else program->result = result_no_match;
    } else if (strcmp(status, "verify-disconnected") == 0) program->result = result_disconnected;
    // For example verify-unknown-error, or what a newer version may say.
    else program->result = result_failed_otherwise;
}

static int receive_status(sd_bus_message *message, void *context, sd_bus_error *error) {
    (void)error;
    struct program *program = context;
    const char *status = NULL;
    int is_done = 0;
    if (!program->is_verifying || program->result != result_none || program->starts_again) return 0;
    if (!is_from(message, program->service)) return 0;
    if (strcmp(sd_bus_message_get_path(message), program->device) != 0 || sd_bus_message_read(message, "sb", &status, &is_done) < 0) return 0;
    // Others are about how the finger lies on the reader, or how fast it moves: the same verification goes on.
    if (is_done || strcmp(status, "verify-match") == 0 || strcmp(status, "verify-no-match") == 0) note_status(program, status);
    return 0;
}

static int receive_owner(sd_bus_message *message, void *context, sd_bus_error *error) {
    (void)error;
    struct program *program = context;
    const char *former = NULL;
    if (!is_from(message, "org.freedesktop.DBus")) return 0;
    if (sd_bus_message_read(message, "sss", NULL, &former, NULL) < 0 || former[0] == 0) return 0;
    if (program->is_verifying && program->result == result_none) program->result = result_no_service;
    return 0;
}

static void subscribe(struct program *program) {
    int result = sd_bus_add_match(
        program->bus, NULL, "type='signal',sender='net.reactivated.Fprint',interface='net.reactivated.Fprint.Device',member='VerifyStatus'",
        receive_status, program);
    if (result >= 0)
        result = sd_bus_add_match(
            program->bus, NULL, "type='signal',sender='org.freedesktop.DBus',member='NameOwnerChanged',arg0='net.reactivated.Fprint'",
            receive_owner, program);
    if (result < 0) fail("the message bus refuses a match: %s", strerror(-result));
}

// MARK: Running

static void perform_task(struct program *program, const struct task *task) {
    struct fingers fingers = {0};
    char device[largest_name_byte_count], name[largest_user_name_byte_count];
    enum result result;
    switch (task->kind) {
        case task_inspect:
            result = inspect(program, task->user, device, name, &fingers);
            return send_answer(program, task, result, 0, &fingers);
        case task_verify: return begin_verification(program, task);
        case task_cancel:
            if (program->is_verifying && program->result == result_none && memcmp(program->verified.nonce, task->nonce, nonce_byte_count) == 0)
                program->result = result_canceled;
    }
}

// Receives a task, if there is one; returns false if keychaind has ended.
static bool receive_task(struct program *program) {
    uint8_t bytes[header_byte_count + 2 + task_byte_count + 1];
    ssize_t byte_count = recv(program->keychaind, bytes, sizeof(bytes), MSG_DONTWAIT);
    if (byte_count < 0 && (errno == EAGAIN || errno == EINTR)) return true;
    if (byte_count <= 0) return false;
    struct task task;
    if (!parse_task(bytes, (size_t)byte_count, &task)) fail("keychaind sends what is no task");
    perform_task(program, &task);
    return true;
}

// Does what the verification requires now.
static void advance(struct program *program) {
    if (!program->is_verifying) return;
    if (program->result == result_none && now_milliseconds() >= program->deadline) program->result = result_timed_out;
    if (program->result == result_none && program->starts_again) {
        enum result result = call_device(program, program->device, "VerifyStop", NULL);
        drain(program);
        program->starts_again = false;
        if (program->result != result_none) result = program->result;
        if (result == result_success) result = call_device(program, program->device, "VerifyStart", "any");
        if (result != result_success) program->result = result;
    }
    if (program->result != result_none) end_verification(program);
}

static void wait_for_more(struct program *program) {
    uint64_t until = UINT64_MAX;
    if (sd_bus_get_timeout(program->bus, &until) < 0) fail("the message bus is lost");
    int64_t milliseconds = -1;
    if (until != UINT64_MAX) {
        int64_t rest = (int64_t)(until / 1000) - now_milliseconds();
        milliseconds = rest < 0 ? 0 : rest + 1;
    }
    if (program->is_verifying) {
        int64_t rest = program->deadline - now_milliseconds();
        if (rest < 0) rest = 0;
        if (milliseconds < 0 || rest < milliseconds) milliseconds = rest;
    }
    if (milliseconds > 1000000) milliseconds = 1000000;
    struct pollfd descriptors[] = {
        {.fd = sd_bus_get_fd(program->bus), .events = (short)sd_bus_get_events(program->bus)},
        {.fd = program->keychaind, .events = POLLIN},
    };
    if (poll(descriptors, 2, (int)milliseconds) < 0 && errno != EINTR) fail("waiting fails: %s", strerror(errno));
}

int main(int argc, char **argv) {
    struct program program = {.socket_path = STANDARD_SOCKET_PATH, .keychaind = -1};
    for (int index = 1; index < argc; index++) {
        if (strncmp(argv[index], "--socket=", 9) != 0) fail("usage: %s [--socket=PATH]", program_name);
        program.socket_path = argv[index] + 9;
    }
    int result = sd_bus_open_system(&program.bus);
    if (result >= 0) result = sd_bus_set_method_call_timeout(program.bus, bus_timeout_microseconds);
    if (result < 0) fail("the message bus cannot be reached: %s", strerror(-result));
    subscribe(&program);
    announce(&program);
    sd_notify(0, "READY=1");
    while (true) {
        int processed = sd_bus_process(program.bus, NULL);
        // fprintd releases the reader when it notices that this program has left the bus.
        if (processed < 0) fail("the message bus is lost");
        advance(&program);
        if (!receive_task(&program)) break;
        advance(&program);
        if (processed == 0) wait_for_more(&program);
    }
    if (program.is_verifying) {
        program.result = result_canceled;
        end_verification(&program);
    }
    fail("keychaind has ended");
}
