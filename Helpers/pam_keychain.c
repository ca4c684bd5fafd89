// SPDX-License-Identifier: Apache-2.0
//
// pam_keychain.so: unlocks the keychain of a user who logs in, and changes its passcode along with the login password.
//
// The module reads the password that a module before it has asked for, and passes it to keychaind, which compares it with the passcode. The
// module never makes a login succeed or fail, asks nothing, and waits for two seconds at most. It is plain C, because programs fork between
// the calls of PAM, which the runtime of Swift does not survive. Sources/KeychainServices/KeychainServices.docc/Protocol-of-keychaind.md
// describes the messages.
#define _GNU_SOURCE
#include "keychaind_call.h"

#include <sys/mman.h>
#include <syslog.h>

#include <security/pam_ext.h>
#include <security/pam_modules.h>
#include <security/pam_modutil.h>

#define EXPORTED __attribute__((visibility("default")))

static const char data_name[] = "pam_keychain";

// A password from the authentication until the session is opened.
struct password {
    uid_t user;
    size_t byte_count;
    uint8_t bytes[largest_password_byte_count];
};

// The arguments of the module in the configuration of PAM.
struct options {
    const char *socket_path;
    int64_t timeout_milliseconds;
};

static struct options read_options(int argc, const char **argv) {
    static const char socket[] = "socket=", timeout[] = "timeout=";
    struct options options = {.socket_path = STANDARD_SOCKET_PATH, .timeout_milliseconds = 2000};
    for (int index = 0; index < argc; index++) {
        if (strncmp(argv[index], socket, strlen(socket)) == 0) options.socket_path = argv[index] + strlen(socket);
        if (strncmp(argv[index], timeout, strlen(timeout)) != 0) continue;
        int64_t milliseconds = parse_seconds(argv[index] + strlen(timeout));
        if (milliseconds > 0) options.timeout_milliseconds = milliseconds;
    }
    return options;
}

// Sends a request about the keychain of a user, with one password or two, and waits for the reply, until the timeout in all.
static enum outcome call(
    struct options options, uint16_t operation, uid_t user, const struct password *first, const struct password *second, int32_t *status
) {
    int64_t deadline = now_milliseconds() + options.timeout_milliseconds;
    int connection;
    enum outcome outcome = open_connection(options.socket_path, data_name, &connection, status, deadline);
    if (outcome != outcome_done) return outcome;
    struct packet packet;
    begin_request(&packet, operation);
    append_number(&packet, user, 4);
    append_counted(&packet, first->bytes, first->byte_count);
    if (second != NULL) append_counted(&packet, second->bytes, second->byte_count);
    outcome = exchange(connection, &packet, status, deadline);
    close(connection);
    return outcome;
}

// MARK: PAM

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
            pam_syslog(handle, LOG_WARNING, "keychaind has not replied in time");
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
        enum outcome outcome = call(read_options(argc, argv), operation_unlock_at_login, user, password, NULL, &status);
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
    if (access(read_options(argc, argv).socket_path, F_OK) == 0 && find_user(handle, &user)) password = copy_password(handle, PAM_AUTHTOK, user);
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
        enum outcome outcome = call(read_options(argc, argv), operation_change_passcode_at_login, user, former, new, &status);
        log_outcome(handle, outcome, status, user);
        report_change(handle, flags, outcome, status);
        // The change has unlocked the keychain, or the password was not the passcode, or keychaind is slow.
        pam_set_data(handle, data_name, NULL, NULL);
    }
    free_password(former);
    free_password(new);
    return PAM_IGNORE;
}
