// SPDX-License-Identifier: Apache-2.0
//
// pam_keychain.so: unlocks the keychain of a user who logs in, and changes its passcode along with the login password.
//
// The module reads the password that a module before it has asked for, and passes it to keychaind, which compares it with the passcode. The
// module never makes a login succeed or fail, asks nothing, and takes at most two seconds. It is plain C, because programs fork between
// the calls of PAM, which the runtime of Swift does not survive. Sources/KeychainServices/KeychainServices.docc/Protocol-of-keychaind.md
// describes the messages.
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <syslog.h>
#include <time.h>
#include <unistd.h>

#include <security/pam_ext.h>
#include <security/pam_modules.h>
#include <security/pam_modutil.h>

#define EXPORTED __attribute__((visibility("default")))

enum {
    timeout_milliseconds = 2000,
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
    result_done = 0,
    result_identified = 4,
    result_failure = 255,

    status_not_found = -25300,
    status_authentication_failed = -25293,
};

static const char data_name[] = "pam_keychain";

// A password from the authentication until the session is opened.
struct password {
    uid_t user;
    size_t byte_count;
    uint8_t bytes[largest_password_byte_count];
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

static enum outcome send_packet(int connection, struct packet *packet, int64_t deadline) {
    finish(packet);
    while (true) {
        if (!set_send_timeout(connection, deadline)) return outcome_failed;
        if (send(connection, packet->bytes, packet->byte_count, MSG_NOSIGNAL) == (ssize_t)packet->byte_count) return outcome_done;
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

// Exchanges the greetings. keychaind may refuse the connection in place of its greeting.
static enum outcome greet(int connection, struct packet *packet, int32_t *status, int64_t deadline) {
    enum outcome outcome = receive_packet(connection, packet, deadline);
    if (outcome != outcome_done) return outcome;
    const uint8_t *body = packet->bytes + header_byte_count;
    if (packet->bytes[1] != kind_hello || packet->byte_count != header_byte_count + 2 + nonce_byte_count) return outcome_failed;
    if (body[0] > protocol_version || body[1] < protocol_version) return outcome_failed;
    uint8_t nonce[nonce_byte_count];
    memcpy(nonce, body + 2, sizeof(nonce));
    begin(packet, kind_identify, 0);
    append(packet, nonce, sizeof(nonce));
    append_counted(packet, data_name, strlen(data_name));
    append_number(packet, 0, 4);  // no access groups
    append_number(packet, 0, 1);  // no app clip
    append_number(packet, 0, 1);  // no store
    outcome = send_packet(connection, packet, deadline);
    if (outcome != outcome_done) return outcome;
    return receive_reply(connection, packet, result_identified, status, deadline);
}

// Sends a request about the keychain of a user, with one password or two, and waits for the reply, for two seconds in all.
//
// keychaind performs a request that it has received, also if nothing waits for the reply.
static enum outcome call(
    const char *path, uint16_t operation, uid_t user, const struct password *first, const struct password *second, int32_t *status
) {
    int64_t deadline = now_milliseconds() + timeout_milliseconds;
    int connection = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    if (connection < 0) return outcome_failed;
    struct packet packet;
    enum outcome outcome = connect_to(path, connection, deadline);
    if (outcome == outcome_done) outcome = greet(connection, &packet, status, deadline);
    if (outcome == outcome_done) {
        begin(&packet, kind_request, operation);
        append_number(&packet, 0, 1);  // no authentication context
        append_number(&packet, user, 4);
        append_counted(&packet, first->bytes, first->byte_count);
        if (second != NULL) append_counted(&packet, second->bytes, second->byte_count);
        outcome = send_packet(connection, &packet, deadline);
        explicit_bzero(&packet, sizeof(packet));
    }
    if (outcome == outcome_done) outcome = receive_reply(connection, &packet, result_done, status, deadline);
    close(connection);
    return outcome;
}

// MARK: PAM

static const char *socket_path(int argc, const char **argv) {
    static const char option[] = "socket=";
    for (int index = 0; index < argc; index++) {
        if (strncmp(argv[index], option, strlen(option)) == 0) return argv[index] + strlen(option);
    }
    // Its directory belongs to root, so nothing but keychaind listens there.
    return "/run/keychain/keychaind.sock";
}

// Finds the user whom PAM is about now; `sudo`, for example, changes that between the authentication and the session.
static bool find_user(pam_handle_t *handle, uid_t *user) {
    const void *name = NULL;
    if (pam_get_item(handle, PAM_USER, &name) != PAM_SUCCESS || name == NULL) return false;
    const struct passwd *entry = pam_modutil_getpwnam(handle, name);
    if (entry == NULL) return false;
    *user = entry->pw_uid;
    return true;
}

static void free_password(struct password *password) {
    if (password == NULL) return;
    explicit_bzero(password, sizeof(*password));
    munmap(password, sizeof(*password));
}

static void clean_up(pam_handle_t *handle, void *data, int status) {
    (void)handle;
    (void)status;
    free_password(data);
}

// Copies a password of PAM to memory that is in no core file and, if the limit allows it, not swapped; NULL if there is none.
static struct password *copy_password(pam_handle_t *handle, int item, uid_t user) {
    const void *text = NULL;
    if (pam_get_item(handle, item, &text) != PAM_SUCCESS || text == NULL) return NULL;
    size_t byte_count = strlen(text);
    if (byte_count == 0 || byte_count > largest_password_byte_count) return NULL;
    struct password *password = mmap(NULL, sizeof(*password), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (password == MAP_FAILED) return NULL;
    (void)mlock(password, sizeof(*password));
    (void)madvise(password, sizeof(*password), MADV_DONTDUMP);
    password->user = user;
    password->byte_count = byte_count;
    memcpy(password->bytes, text, byte_count);
    return password;
}

// Says in the log what an administrator can change. That the password is not the passcode, that there is no keychain, and that keychaind
// is not installed are ordinary cases.
static void log_outcome(pam_handle_t *handle, enum outcome outcome, int32_t status, uid_t user) {
    switch (outcome) {
        case outcome_done:
        case outcome_absent: break;
        case outcome_refused:
            if (status == status_not_found || status == status_authentication_failed) break;
            pam_syslog(handle, LOG_NOTICE, "keychaind refuses a call about the keychain of user %u: status %d", (unsigned)user, (int)status);
            break;
        case outcome_timed_out:
            pam_syslog(handle, LOG_WARNING, "keychaind has not replied within %d seconds", timeout_milliseconds / 1000);
            break;
        case outcome_failed: pam_syslog(handle, LOG_WARNING, "keychaind cannot be called"); break;
    }
}

// Unlocks the keychain with the password of the authentication, which is wiped in any case.
static void unlock(pam_handle_t *handle, int argc, const char **argv) {
    const void *data = NULL;
    if (pam_get_data(handle, data_name, &data) != PAM_SUCCESS || data == NULL) return;
    const struct password *password = data;
    uid_t user;
    if (find_user(handle, &user) && user == password->user) {
        int32_t status = 0;
        enum outcome outcome = call(socket_path(argc, argv), operation_unlock_at_login, user, password, NULL, &status);
        log_outcome(handle, outcome, status, user);
    }
    pam_set_data(handle, data_name, NULL, NULL);
}

// Keeps the password until the session is opened: PAM wipes its own copy before.
EXPORTED int pam_sm_authenticate(pam_handle_t *handle, int flags, int argc, const char **argv) {
    (void)flags;
    struct password *password = NULL;
    uid_t user;
    // Without keychaind the password stays in no further memory.
    if (access(socket_path(argc, argv), F_OK) == 0 && find_user(handle, &user)) password = copy_password(handle, PAM_AUTHTOK, user);
    // That of an earlier attempt is wiped.
    if (pam_set_data(handle, data_name, password, clean_up) != PAM_SUCCESS) free_password(password);
    return PAM_IGNORE;
}

// A lock screen opens no session, and renews the credentials instead.
EXPORTED int pam_sm_setcred(pam_handle_t *handle, int flags, int argc, const char **argv) {
    if ((flags & (PAM_REINITIALIZE_CRED | PAM_REFRESH_CRED)) != 0) unlock(handle, argc, argv);
    return PAM_IGNORE;
}

EXPORTED int pam_sm_open_session(pam_handle_t *handle, int flags, int argc, const char **argv) {
    (void)flags;
    unlock(handle, argc, argv);
    return PAM_SUCCESS;
}

EXPORTED int pam_sm_close_session(pam_handle_t *handle, int flags, int argc, const char **argv) {
    (void)handle;
    (void)flags;
    (void)argc;
    (void)argv;
    return PAM_SUCCESS;
}

static void report_change(pam_handle_t *handle, int flags, enum outcome outcome, int32_t status) {
    if ((flags & PAM_SILENT) != 0 || outcome == outcome_done || outcome == outcome_absent) return;
    if (outcome == outcome_refused) {
        if (status == status_not_found || status == status_authentication_failed) return;
        pam_info(handle, "The passcode of your keychain was not changed. It is still the former password.");
    } else {
        pam_info(handle, "keychaind has not confirmed that the passcode of your keychain was changed. It may still be the former password.");
    }
}

EXPORTED int pam_sm_chauthtok(pam_handle_t *handle, int flags, int argc, const char **argv) {
    uid_t user;
    if ((flags & PAM_UPDATE_AUTHTOK) == 0 || !find_user(handle, &user)) return PAM_IGNORE;
    // Without the former password, as when root sets a new one, the passcode stays.
    struct password *former = copy_password(handle, PAM_OLDAUTHTOK, user);
    struct password *new = copy_password(handle, PAM_AUTHTOK, user);
    if (former != NULL && new != NULL) {
        int32_t status = 0;
        enum outcome outcome = call(socket_path(argc, argv), operation_change_passcode_at_login, user, former, new, &status);
        log_outcome(handle, outcome, status, user);
        report_change(handle, flags, outcome, status);
        // The change has unlocked the keychain, or the password was not the passcode, or keychaind is slow.
        pam_set_data(handle, data_name, NULL, NULL);
    }
    free_password(former);
    free_password(new);
    return PAM_IGNORE;
}
