// SPDX-License-Identifier: Apache-2.0
//
// keychain-watch: locks the keychains of keychaind with the sessions of their users, as systemd-logind reports them.
//
// A keychain is locked when each graphical session of its user is locked, idle for long enough, or gone, when a session is asked to lock, and
// before the system sleeps. Nothing unlocks one: every process of a user may say that a session is not locked. If the message bus, logind, or
// keychaind is lost, the program ends. systemd starts it again, and otherwise keychaind locks all keychains after some seconds. All are locked
// when it starts: while it did not run, a session may have been asked to lock, or the system may have slept, and nothing tells it afterwards.
//
// It is a program of its own in C, because keychaind links no libsystemd and reads no messages of D-Bus.
#define _GNU_SOURCE
#include "keychaind_call.h"

#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <systemd/sd-bus.h>
#include <systemd/sd-daemon.h>

enum {
    // After a lock that has failed.
    retry_microseconds = 5000000,
    longest_idle_seconds = 31536000,
    largest_path_byte_count = 256,
    // Requests to lock that arrive before the sessions are read; with more, all keychains are locked.
    largest_request_count = 16,
};

static const char program_name[] = "keychain-watch";
static const char manager_path[] = "/org/freedesktop/login1";
static const char manager_interface[] = "org.freedesktop.login1.Manager";
static const char session_interface[] = "org.freedesktop.login1.Session";
static const char login_name[] = "org.freedesktop.login1";

struct session {
    char path[largest_path_byte_count];
    uid_t user;
    // A person uses it, with a screen.
    bool is_graphical;
    // Not locked, not idle for long enough, and not about to end.
    bool is_open;
};

struct user {
    uid_t id;
    bool was_open, is_open, is_present;
};

struct watch {
    const char *socket_path;
    uint64_t idle_microseconds;
    // Of a call to the bus or to keychaind. The system waits for five seconds before it sleeps.
    int64_t timeout_milliseconds;
    sd_bus *bus;
    // The connection that is logind.
    char login_connection[largest_path_byte_count];
    // Tells keychaind that this program runs.
    int keychaind;
    // Delays the sleep of the system; -1 if it is not held.
    int inhibitor;

    struct session *sessions;
    size_t session_count;
    struct user *users;
    size_t user_count;

    // What the last message of logind has said.
    bool is_changed, is_lost, locks_all;
    bool will_sleep, has_slept;
    char requests[largest_request_count][largest_path_byte_count];
    size_t request_count;
    // When a session has been idle for long enough, or a lock is tried again, on the monotonic clock; 0 if there is no such time.
    uint64_t next_round;
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

static uint64_t now_microseconds(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000 + (uint64_t)time.tv_nsec / 1000;
}

// MARK: keychaind

// Says in the log what has failed; ends the program if keychaind cannot be called at all.
static void report(enum outcome outcome, int32_t status) {
    switch (outcome) {
        case outcome_done: return;
        case outcome_absent: fail("keychaind does not listen");
        case outcome_failed: fail("keychaind cannot be called");
        case outcome_refused: fprintf(stderr, "%s: keychaind refuses a call: status %d\n", program_name, (int)status); return;
        case outcome_timed_out: fprintf(stderr, "%s: keychaind has not replied in time\n", program_name); return;
    }
}

// Opens the connection by whose end keychaind notices that this program has ended.
static void announce(struct watch *watch) {
    int32_t status = 0;
    // keychaind may be starting.
    int64_t deadline = now_milliseconds() + 5 * watch->timeout_milliseconds;
    enum outcome outcome = open_connection(watch->socket_path, program_name, &watch->keychaind, &status, deadline);
    if (outcome == outcome_done) {
        struct packet packet;
        begin_request(&packet, operation_watch_sessions);
        outcome = exchange(watch->keychaind, &packet, &status, deadline);
    }
    report(outcome, status);
    if (outcome != outcome_done) fail("keychaind does not accept this program");
}

// Locks the keychain of a user, or with NULL those of all users. Returns false if that has failed, or may have.
static bool lock_keychains(struct watch *watch, const uid_t *user) {
    int32_t status = 0;
    int64_t deadline = now_milliseconds() + watch->timeout_milliseconds;
    int connection;
    enum outcome outcome = open_connection(watch->socket_path, program_name, &connection, &status, deadline);
    if (outcome == outcome_done) {
        struct packet packet;
        begin_request(&packet, operation_lock_with_session);
        append_number(&packet, user != NULL, 1);
        if (user != NULL) append_number(&packet, *user, 4);
        outcome = exchange(connection, &packet, &status, deadline);
        close(connection);
    }
    report(outcome, status);
    return outcome == outcome_done;
}

// MARK: Sessions

static void *grown(void *elements, size_t count, size_t byte_count) {
    void *moved = reallocarray(elements, count, byte_count);
    if (moved == NULL) fail("there is no memory");
    return moved;
}

// Whether an error says that an object or a property does not exist.
static bool is_missing(const sd_bus_error *error) {
    return sd_bus_error_has_name(error, SD_BUS_ERROR_UNKNOWN_OBJECT) || sd_bus_error_has_name(error, SD_BUS_ERROR_UNKNOWN_METHOD)
        || sd_bus_error_has_name(error, SD_BUS_ERROR_UNKNOWN_INTERFACE) || sd_bus_error_has_name(error, SD_BUS_ERROR_UNKNOWN_PROPERTY)
        || sd_bus_error_has_name(error, SD_BUS_ERROR_INVALID_ARGS) || sd_bus_error_has_name(error, "org.freedesktop.login1.NoSuchSession");
}

// Reads a property of a session; returns false if the session has ended, or does not have it.
static bool read_property(struct watch *watch, const char *path, const char *name, char type, void *value) {
    sd_bus_error error = SD_BUS_ERROR_NULL;
    int result = type == 's'
        ? sd_bus_get_property_string(watch->bus, login_name, path, session_interface, name, &error, value)
        : sd_bus_get_property_trivial(watch->bus, login_name, path, session_interface, name, &error, type, value);
    bool is_absent = result < 0 && is_missing(&error);
    if (result < 0 && !is_absent) fail("logind does not say %s of a session: %s", name, error.message != NULL ? error.message : strerror(-result));
    sd_bus_error_free(&error);
    return !is_absent;
}

static bool property_is(struct watch *watch, const char *path, const char *name, const char *const *values) {
    char *text = NULL;
    bool is_equal = false;
    if (read_property(watch, path, name, 's', &text)) {
        for (; *values != NULL; values++) is_equal = is_equal || strcmp(text, *values) == 0;
    }
    free(text);
    return is_equal;
}

static bool property_flag(struct watch *watch, const char *path, const char *name) {
    int flag = 0;
    return read_property(watch, path, name, 'b', &flag) && flag != 0;
}

static void schedule_round(struct watch *watch, uint64_t time) {
    if (watch->next_round == 0 || time < watch->next_round) watch->next_round = time;
}

// Whether a session has been idle for the configured time; notes when it will be.
static bool is_long_idle(struct watch *watch, const char *path) {
    if (watch->idle_microseconds == 0 || !property_flag(watch, path, "IdleHint")) return false;
    uint64_t since = 0;
    if (!read_property(watch, path, "IdleSinceHintMonotonic", 't', &since)) return false;
    uint64_t end = since + watch->idle_microseconds;
    if (end <= now_microseconds()) return true;
    schedule_round(watch, end);
    return false;
}

static void add_session(struct watch *watch, const char *path, uid_t user) {
    struct session session = {.user = user};
    if (strlen(path) >= sizeof(session.path)) fail("a session of logind has a long path");
    strcpy(session.path, path);
    session.is_graphical = property_is(watch, path, "Type", (const char *const[]){"x11", "wayland", "mir", NULL})
        && property_is(watch, path, "Class", (const char *const[]){"user", "user-early", NULL});
    session.is_open = session.is_graphical && !property_is(watch, path, "State", (const char *const[]){"closing", NULL})
        && !property_flag(watch, path, "LockedHint") && !is_long_idle(watch, path);
    watch->sessions = grown(watch->sessions, watch->session_count + 1, sizeof(session));
    watch->sessions[watch->session_count++] = session;
}

static void read_sessions(struct watch *watch) {
    sd_bus_error error = SD_BUS_ERROR_NULL;
    sd_bus_message *reply = NULL;
    watch->session_count = 0;
    watch->next_round = 0;
    int result = sd_bus_call_method(watch->bus, login_name, manager_path, manager_interface, "ListSessions", &error, &reply, "");
    if (result >= 0) result = sd_bus_message_enter_container(reply, 'a', "(susso)");
    while (result >= 0) {
        const char *path = NULL;
        uint32_t user = 0;
        result = sd_bus_message_read(reply, "(susso)", NULL, &user, NULL, NULL, &path);
        if (result <= 0) break;
        add_session(watch, path, user);
    }
    if (result < 0) fail("logind does not list its sessions: %s", error.message != NULL ? error.message : strerror(-result));
    sd_bus_error_free(&error);
    sd_bus_message_unref(reply);
}

static struct user *find_user(struct watch *watch, uid_t id) {
    for (size_t index = 0; index < watch->user_count; index++) {
        if (watch->users[index].id == id) return &watch->users[index];
    }
    watch->users = grown(watch->users, watch->user_count + 1, sizeof(struct user));
    // The first time, a user whose sessions are all locked is locked too.
    watch->users[watch->user_count] = (struct user){.id = id, .was_open = true};
    return &watch->users[watch->user_count++];
}

// Locks the keychains of the users whose last open session was locked, became idle, or is gone.
static void evaluate(struct watch *watch) {
    for (size_t index = 0; index < watch->user_count; index++) watch->users[index].is_open = watch->users[index].is_present = false;
    for (size_t index = 0; index < watch->session_count; index++) {
        const struct session *session = &watch->sessions[index];
        if (!session->is_graphical) continue;
        struct user *user = find_user(watch, session->user);
        user->is_present = true;
        user->is_open = user->is_open || session->is_open;
    }
    size_t kept = 0;
    for (size_t index = 0; index < watch->user_count; index++) {
        struct user user = watch->users[index];
        if (user.is_open || !user.was_open || lock_keychains(watch, &user.id)) user.was_open = user.is_open;
        else schedule_round(watch, now_microseconds() + retry_microseconds);
        if (user.is_present || user.was_open) watch->users[kept++] = user;
    }
    watch->user_count = kept;
}

// Locks the keychains of the users whose sessions were asked to lock.
static void perform_requests(struct watch *watch) {
    size_t kept = 0;
    for (size_t request = 0; request < watch->request_count; request++) {
        bool is_performed = true;
        for (size_t index = 0; index < watch->session_count; index++) {
            const struct session *session = &watch->sessions[index];
            if (strcmp(session->path, watch->requests[request]) == 0 && !lock_keychains(watch, &session->user)) is_performed = false;
        }
        if (is_performed) continue;
        if (kept != request) strcpy(watch->requests[kept], watch->requests[request]);
        kept++;
    }
    watch->request_count = kept;
    if (kept != 0) schedule_round(watch, now_microseconds() + retry_microseconds);
}

// MARK: Signals

// Whether a signal is from a connection. A match does not say so: the bus delivers each signal that any program sends to this connection, and sd-bus
// does not know which connection has a name.
static bool is_from(sd_bus_message *message, const char *connection) {
    const char *sender = sd_bus_message_get_sender(message);
    return sender != NULL && strcmp(sender, connection) == 0;
}

static int note_signal(sd_bus_message *message, void *context, sd_bus_error *error) {
    (void)error;
    struct watch *watch = context;
    const char *path = sd_bus_message_get_path(message);
    bool is_of_bus = sd_bus_message_is_signal(message, "org.freedesktop.DBus", "NameOwnerChanged");
    if (!is_from(message, is_of_bus ? "org.freedesktop.DBus" : watch->login_connection)) return 0;
    if (is_of_bus) {
        // Whatever logind has reported may have changed meanwhile. A call of this program may start logind, which has reported nothing before.
        const char *former = NULL;
        watch->is_changed = true;
        if (sd_bus_message_read(message, "sss", NULL, &former, NULL) < 0 || former[0] != 0) watch->is_lost = true;
    } else if (sd_bus_message_is_signal(message, manager_interface, "PrepareForSleep")) {
        int begins = 0;
        if (sd_bus_message_read(message, "b", &begins) < 0) return 0;
        if (begins != 0) watch->will_sleep = true;
        else watch->has_slept = true;
    } else if (sd_bus_message_is_signal(message, session_interface, "Lock")) {
        watch->is_changed = true;
        if (watch->request_count == largest_request_count || strlen(path) >= largest_path_byte_count) watch->locks_all = true;
        else strcpy(watch->requests[watch->request_count++], path);
    } else {
        watch->is_changed = true;
    }
    return 0;
}

static void subscribe(struct watch *watch) {
    static const char *const matches[] = {
        "type='signal',sender='org.freedesktop.login1',interface='org.freedesktop.login1.Manager'",
        "type='signal',sender='org.freedesktop.login1',interface='org.freedesktop.login1.Session'",
        "type='signal',sender='org.freedesktop.login1',member='PropertiesChanged',arg0='org.freedesktop.login1.Session'",
        "type='signal',sender='org.freedesktop.DBus',member='NameOwnerChanged',arg0='org.freedesktop.login1'",
    };
    for (size_t index = 0; index < sizeof(matches) / sizeof(matches[0]); index++) {
        int result = sd_bus_add_match(watch->bus, NULL, matches[index], note_signal, watch);
        if (result < 0) fail("the message bus refuses a match: %s", strerror(-result));
    }
}

// Notes which connection is logind, before its signals are read.
static void find_logind(struct watch *watch) {
    sd_bus_creds *owner = NULL;
    const char *name = NULL;
    int result = sd_bus_get_name_creds(watch->bus, login_name, SD_BUS_CREDS_UNIQUE_NAME, &owner);
    if (result >= 0) result = sd_bus_creds_get_unique_name(owner, &name);
    if (result < 0 || strlen(name) >= sizeof(watch->login_connection)) fail("logind is not on the message bus");
    strcpy(watch->login_connection, name);
    sd_bus_creds_unref(owner);
}

// Makes the system wait before it sleeps, until the inhibitor is closed. Without the right to do that, for which logind asks polkit, keychains
// are locked while the system falls asleep.
static void inhibit_sleep(struct watch *watch) {
    if (watch->inhibitor >= 0) return;
    sd_bus_error error = SD_BUS_ERROR_NULL;
    sd_bus_message *reply = NULL;
    int descriptor = -1;
    int result = sd_bus_call_method(
        watch->bus, login_name, manager_path, manager_interface, "Inhibit", &error, &reply, "ssss", "sleep", program_name, "Lock keychains",
        "delay");
    if (result >= 0) result = sd_bus_message_read(reply, "h", &descriptor);
    if (result >= 0) watch->inhibitor = fcntl(descriptor, F_DUPFD_CLOEXEC, 3);
    if (watch->inhibitor < 0) fprintf(stderr, "%s: logind does not let this program delay the sleep of the system\n", program_name);
    sd_bus_error_free(&error);
    sd_bus_message_unref(reply);
}

// MARK: Running

// Processes a message; returns false if there is none.
static bool process_message(struct watch *watch) {
    int result = sd_bus_process(watch->bus, NULL);
    if (result < 0 || watch->is_lost) fail("logind or the message bus is lost");
    return result > 0;
}

// Does what the last message requires, or the time.
static void perform_round(struct watch *watch) {
    bool is_due = watch->next_round != 0 && watch->next_round <= now_microseconds();
    // What has failed before the system sleeps is tried again, at the latest when it wakes up.
    if (watch->will_sleep || (watch->locks_all && (watch->is_changed || is_due))) watch->locks_all = !lock_keychains(watch, NULL);
    if (watch->will_sleep) {
        watch->will_sleep = false;
        if (watch->inhibitor >= 0) close(watch->inhibitor);
        watch->inhibitor = -1;
    }
    if (watch->has_slept) {
        watch->has_slept = false;
        inhibit_sleep(watch);
    }
    if (watch->is_changed || is_due) {
        watch->is_changed = false;
        read_sessions(watch);
        evaluate(watch);
        perform_requests(watch);
    }
    if (watch->locks_all) schedule_round(watch, now_microseconds() + retry_microseconds);
}

// Waits for a message, the end of keychaind, or the time at which something is due.
static void wait_for_more(struct watch *watch, uint64_t watchdog_microseconds) {
    uint64_t until = UINT64_MAX;
    if (sd_bus_get_timeout(watch->bus, &until) < 0) fail("the message bus is lost");
    uint64_t now = now_microseconds();
    if (watch->next_round != 0 && watch->next_round < until) until = watch->next_round;
    if (watchdog_microseconds != 0 && now + watchdog_microseconds / 2 < until) until = now + watchdog_microseconds / 2;
    struct timespec time = {0};
    if (until != UINT64_MAX && until > now) {
        time.tv_sec = (time_t)((until - now) / 1000000);
        time.tv_nsec = (long)((until - now) % 1000000 * 1000);
    }
    struct pollfd descriptors[] = {
        {.fd = sd_bus_get_fd(watch->bus), .events = (short)sd_bus_get_events(watch->bus)},
        {.fd = watch->keychaind, .events = POLLIN},
    };
    if (ppoll(descriptors, 2, until == UINT64_MAX ? NULL : &time, NULL) < 0 && errno != EINTR) fail("waiting fails: %s", strerror(errno));
    if (descriptors[1].revents != 0) fail("keychaind has ended");
}

int main(int argc, char **argv) {
    struct watch watch = {.socket_path = STANDARD_SOCKET_PATH, .timeout_milliseconds = 2000, .inhibitor = -1};
    for (int index = 1; index < argc; index++) {
        char *end = NULL;
        if (strncmp(argv[index], "--socket=", 9) == 0) {
            watch.socket_path = argv[index] + 9;
        } else if (strncmp(argv[index], "--idle=", 7) == 0) {
            unsigned long seconds = strtoul(argv[index] + 7, &end, 10);
            if (argv[index][7] < '0' || argv[index][7] > '9' || *end != 0 || seconds > longest_idle_seconds)
                fail("--idle must be a number of seconds up to %d", longest_idle_seconds);
            watch.idle_microseconds = (uint64_t)seconds * 1000000;
        } else if (strncmp(argv[index], "--timeout=", 10) == 0) {
            watch.timeout_milliseconds = parse_seconds(argv[index] + 10);
            if (watch.timeout_milliseconds == 0) fail("--timeout must be from 1 to 60 seconds");
        } else {
            fail("usage: %s [--socket=PATH] [--idle=SECONDS] [--timeout=SECONDS]", program_name);
        }
    }
    int result = sd_bus_open_system(&watch.bus);
    if (result >= 0) result = sd_bus_set_method_call_timeout(watch.bus, (uint64_t)watch.timeout_milliseconds * 1000);
    if (result < 0) fail("the message bus cannot be reached: %s", strerror(-result));
    // Before the sessions are read, so that no change is missed.
    subscribe(&watch);
    inhibit_sleep(&watch);
    watch.is_changed = watch.locks_all = true;
    perform_round(&watch);
    // By now a call has started it, if it did not run. If it is another one later, this program ends.
    find_logind(&watch);
    // After logind has answered: if it does not, this program ends and is started again, and keychaind must not take that for a watcher.
    announce(&watch);
    sd_notify(0, "READY=1");
    uint64_t watchdog_microseconds = 0;
    sd_watchdog_enabled(0, &watchdog_microseconds);
    while (true) {
        bool is_processed = process_message(&watch);
        perform_round(&watch);
        if (watchdog_microseconds != 0) sd_notify(0, "WATCHDOG=1");
        if (!is_processed) wait_for_more(&watch, watchdog_microseconds);
    }
}
