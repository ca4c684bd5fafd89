// SPDX-License-Identifier: Apache-2.0
//
// Calls of keychaind from C, for the helpers in this directory. Every wait has a deadline. See
// Sources/KeychainServices/KeychainServices.docc/Protocol-of-keychaind.md.
#ifndef KEYCHAIND_CALL_H
#define KEYCHAIND_CALL_H

#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

// Its directory belongs to root, so nothing but keychaind listens there.
#define STANDARD_SOCKET_PATH "/run/keychain/keychaind.sock"

enum {
    // Of a passcode, as in keychaind.
    largest_password_byte_count = 1024,

    protocol_version = 1,
    header_byte_count = 8,
    nonce_byte_count = 16,
    kind_hello = 1,
    kind_identify = 2,
    kind_request = 3,
    kind_reply = 4,
    operation_unlock_at_login = 80,
    operation_change_passcode_at_login = 81,
    operation_watch_sessions = 96,
    operation_lock_with_session = 97,
    operation_serve_fingerprints = 147,
    operation_fingerprint_answer = 148,
    result_done = 0,
    result_identified = 4,
    result_fingerprint_task = 15,
    result_failure = 255,

    status_not_found = -25300,
    status_authentication_failed = -25293,
};

// How a call of keychaind has ended.
enum outcome {
    outcome_done,
    outcome_refused,
    // keychaind does not listen.
    outcome_absent,
    outcome_timed_out,
    outcome_failed,
};

// Reads a number of seconds from 1 to 60 as milliseconds; returns 0 for other texts.
static inline int64_t parse_seconds(const char *text) {
    int64_t seconds = 0;
    for (; *text >= '0' && *text <= '9' && seconds <= 60; text++) seconds = 10 * seconds + (*text - '0');
    return *text == 0 && seconds <= 60 ? 1000 * seconds : 0;
}

// MARK: Packets

struct packet {
    size_t byte_count;
    // Room for the largest request: two passwords and 21 bytes.
    uint8_t bytes[2 * largest_password_byte_count + 64];
};

static void append(struct packet *packet, const void *bytes, size_t byte_count) {
    memcpy(packet->bytes + packet->byte_count, bytes, byte_count);
    packet->byte_count += byte_count;
}

static void append_number(struct packet *packet, uint32_t value, size_t byte_count) {
    for (size_t index = 0; index < byte_count; index++) packet->bytes[packet->byte_count++] = (uint8_t)(value >> (8 * index));
}

static void append_counted(struct packet *packet, const void *bytes, size_t byte_count) {
    append_number(packet, (uint32_t)byte_count, 4);
    append(packet, bytes, byte_count);
}

static void begin(struct packet *packet, uint8_t kind, uint16_t operation) {
    packet->byte_count = 0;
    append_number(packet, protocol_version, 1);
    append_number(packet, kind, 1);
    append_number(packet, operation, 2);
    append_number(packet, 0, 4);
}

// Writes the size of the body to the header.
static void finish(struct packet *packet) {
    size_t byte_count = packet->byte_count;
    packet->byte_count = header_byte_count - 4;
    append_number(packet, (uint32_t)(byte_count - header_byte_count), 4);
    packet->byte_count = byte_count;
}

// MARK: Connection

static int64_t now_milliseconds(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (int64_t)time.tv_sec * 1000 + time.tv_nsec / 1000000;
}

// The time until the deadline; at least a millisecond, because zero stands for no timeout.
static struct timeval remaining_time(int64_t deadline) {
    int64_t milliseconds = deadline - now_milliseconds();
    if (milliseconds < 1) milliseconds = 1;
    return (struct timeval){.tv_sec = milliseconds / 1000, .tv_usec = milliseconds % 1000 * 1000};
}

static bool set_send_timeout(int connection, int64_t deadline) {
    struct timeval time = remaining_time(deadline);
    return setsockopt(connection, SOL_SOCKET, SO_SNDTIMEO, &time, sizeof(time)) == 0;
}

static enum outcome outcome_of_errno(void) {
    switch (errno) {
        case ENOENT:
        case ECONNREFUSED: return outcome_absent;
        // The send timeout, which also limits a connection attempt.
        case EAGAIN: return outcome_timed_out;
        default: return outcome_failed;
    }
}

static enum outcome connect_to(const char *path, int connection, int64_t deadline) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    if (strlen(path) >= sizeof(address.sun_path)) return outcome_failed;
    strcpy(address.sun_path, path);
    while (true) {
        if (!set_send_timeout(connection, deadline)) return outcome_failed;
        if (connect(connection, (struct sockaddr *)&address, sizeof(address)) == 0) return outcome_done;
        if (errno != EINTR) return outcome_of_errno();
        if (now_milliseconds() >= deadline) return outcome_timed_out;
    }
}

// Sends a packet, with a descriptor unless it is negative.
static enum outcome send_packet(int connection, struct packet *packet, int descriptor, int64_t deadline) {
    finish(packet);
    union {
        struct cmsghdr header;
        unsigned char bytes[CMSG_SPACE(sizeof(int))];
    } control = {0};
    struct iovec part = {packet->bytes, packet->byte_count};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
    if (descriptor >= 0) {
        message.msg_control = &control;
        message.msg_controllen = sizeof(control);
        control.header.cmsg_level = SOL_SOCKET;
        control.header.cmsg_type = SCM_RIGHTS;
        control.header.cmsg_len = CMSG_LEN(sizeof(descriptor));
        memcpy(CMSG_DATA(&control.header), &descriptor, sizeof(descriptor));
    }
    while (true) {
        if (!set_send_timeout(connection, deadline)) return outcome_failed;
        if (sendmsg(connection, &message, MSG_NOSIGNAL) == (ssize_t)packet->byte_count) return outcome_done;
        if (errno != EINTR) return outcome_of_errno();
        if (now_milliseconds() >= deadline) return outcome_timed_out;
    }
}

// Receives a packet, of which the end is cut off if it is long.
static enum outcome receive_packet(int connection, struct packet *packet, int64_t deadline) {
    while (true) {
        int64_t milliseconds = deadline - now_milliseconds();
        if (milliseconds <= 0) return outcome_timed_out;
        struct pollfd readable = {.fd = connection, .events = POLLIN};
        int count = poll(&readable, 1, (int)milliseconds);
        if (count < 0 && errno != EINTR) return outcome_failed;
        if (count <= 0) continue;
        ssize_t byte_count = recv(connection, packet->bytes, sizeof(packet->bytes), MSG_DONTWAIT);
        if (byte_count < 0 && (errno == EINTR || errno == EAGAIN)) continue;
        if (byte_count < header_byte_count || packet->bytes[0] != protocol_version) return outcome_failed;
        packet->byte_count = (size_t)byte_count;
        return outcome_done;
    }
}

// Receives a reply with an expected result, or with a failure, whose status it stores.
static enum outcome receive_reply(int connection, struct packet *packet, uint8_t result, int32_t *status, int64_t deadline) {
    enum outcome outcome = receive_packet(connection, packet, deadline);
    if (outcome != outcome_done) return outcome;
    // After the header: a byte about an application password, and the kind of the result.
    const uint8_t *body = packet->bytes + header_byte_count;
    if (packet->bytes[1] != kind_reply || packet->byte_count < header_byte_count + 2) return outcome_failed;
    if (body[1] == result) return outcome_done;
    if (body[1] != result_failure || packet->byte_count < header_byte_count + 6) return outcome_failed;
    *status = (int32_t)((uint32_t)body[2] | (uint32_t)body[3] << 8 | (uint32_t)body[4] << 16 | (uint32_t)body[5] << 24);
    return outcome_refused;
}

// Exchanges the greetings. keychaind may refuse the connection in place of its greeting. `name` is shorter than a hundred bytes.
static enum outcome greet(int connection, const char *name, struct packet *packet, int32_t *status, int64_t deadline) {
    enum outcome outcome = receive_packet(connection, packet, deadline);
    if (outcome != outcome_done) return outcome;
    const uint8_t *body = packet->bytes + header_byte_count;
    if (packet->bytes[1] != kind_hello || packet->byte_count != header_byte_count + 2 + nonce_byte_count) return outcome_failed;
    if (body[0] > protocol_version || body[1] < protocol_version) return outcome_failed;
    uint8_t nonce[nonce_byte_count];
    memcpy(nonce, body + 2, sizeof(nonce));
    begin(packet, kind_identify, 0);
    append(packet, nonce, sizeof(nonce));
    append_counted(packet, name, strlen(name));
    append_number(packet, 0, 4);  // no access groups
    append_number(packet, 0, 1);  // no app clip
    append_number(packet, 0, 1);  // no store
    // The identification carries any descriptor. That of the connection itself would keep the connection open.
    int event = eventfd(0, EFD_CLOEXEC);
    if (event < 0) return outcome_failed;
    outcome = send_packet(connection, packet, event, deadline);
    close(event);
    if (outcome != outcome_done) return outcome;
    return receive_reply(connection, packet, result_identified, status, deadline);
}

// Connects to keychaind; the caller closes the connection if this succeeds.
static enum outcome open_connection(const char *path, const char *name, int *connection, int32_t *status, int64_t deadline) {
    *connection = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    if (*connection < 0) return outcome_failed;
    struct packet packet;
    enum outcome outcome = connect_to(path, *connection, deadline);
    if (outcome == outcome_done) outcome = greet(*connection, name, &packet, status, deadline);
    if (outcome != outcome_done) close(*connection);
    return outcome;
}

static void begin_request(struct packet *packet, uint16_t operation) {
    begin(packet, kind_request, operation);
    append_number(packet, 0, 1);  // no authentication context
    append_number(packet, 0, 1);  // prompts by any agent
}

// Sends a request, which is wiped, and waits for the reply.
//
// keychaind performs a request that it has received, also if nothing waits for the reply.
static enum outcome exchange(int connection, struct packet *packet, int32_t *status, int64_t deadline) {
    enum outcome outcome = send_packet(connection, packet, -1, deadline);
    explicit_bzero(packet, sizeof(*packet));
    return outcome == outcome_done ? receive_reply(connection, packet, result_done, status, deadline) : outcome;
}

#endif
