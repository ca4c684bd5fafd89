/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "socket_shims.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#ifndef SO_PEERGROUPS
#define SO_PEERGROUPS 59
#endif
#ifndef SO_PASSRIGHTS
#define SO_PASSRIGHTS 83
#endif

/* Closes the descriptors of a control message, and returns how many there were. */
static size_t close_descriptors(const struct cmsghdr *header) {
    size_t count = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (size_t index = 0; index < count; index++) {
        int descriptor;
        memcpy(&descriptor, CMSG_DATA(header) + index * sizeof(int), sizeof descriptor);
        (void)close(descriptor);
    }
    return count;
}

int keychain_packet_send(int socket, const void *bytes, size_t byte_count, int descriptor) {
    union {
        struct cmsghdr header;
        unsigned char bytes[CMSG_SPACE(sizeof(int))];
    } control = {0};
    struct iovec part = {(void *)bytes, byte_count};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
    if (descriptor >= 0) {
        message.msg_control = &control;
        message.msg_controllen = sizeof control;
        control.header.cmsg_level = SOL_SOCKET;
        control.header.cmsg_type = SCM_RIGHTS;
        control.header.cmsg_len = CMSG_LEN(sizeof descriptor);
        memcpy(CMSG_DATA(&control.header), &descriptor, sizeof descriptor);
    }
    return sendmsg(socket, &message, MSG_NOSIGNAL | MSG_DONTWAIT) >= 0 ? 0 : errno;
}

long keychain_packet_receive(
    int socket, void *buffer, size_t byte_count, bool waits, size_t descriptor_count, struct keychain_process_identity *sender) {
    /* Room for the credentials and for the most descriptors that one message can carry, so that none is left open unseen. */
    union {
        struct cmsghdr alignment;
        unsigned char bytes[CMSG_SPACE(sizeof(struct ucred)) + CMSG_SPACE(253 * sizeof(int))];
    } control;
    struct iovec part = {buffer, byte_count};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};
    ssize_t received;
    bool is_reset = false;
    do {
        received = recvmsg(socket, &message, MSG_CMSG_CLOEXEC | (waits ? 0 : MSG_DONTWAIT));
        /* If the other side has closed the connection with packets that it had not read, the kernel reports that before it gives out what the
           other side had sent. */
        if (received < 0 && errno == ECONNRESET && !is_reset) {
            is_reset = true;
            errno = EINTR;
        }
    } while (received < 0 && errno == EINTR);
    if (received < 0) return -1;
    bool is_named = false, is_refused = (message.msg_flags & MSG_CTRUNC) != 0;
    size_t received_descriptor_count = 0;
    for (struct cmsghdr *header = CMSG_FIRSTHDR(&message); header; header = CMSG_NXTHDR(&message, header)) {
        if (header->cmsg_level != SOL_SOCKET) continue;
        if (header->cmsg_type == SCM_RIGHTS) {
            received_descriptor_count += close_descriptors(header);
        } else if (header->cmsg_type == SCM_CREDENTIALS && header->cmsg_len >= CMSG_LEN(sizeof(struct ucred))) {
            struct ucred credentials;
            memcpy(&credentials, CMSG_DATA(header), sizeof credentials);
            *sender = (struct keychain_process_identity){credentials.pid, credentials.uid, credentials.gid};
            is_named = true;
        }
    }
    if (received == 0 && !is_refused && received_descriptor_count == 0) return 0;
    if (is_refused || received_descriptor_count != descriptor_count || !is_named) {
        errno = EBADMSG;
        return -1;
    }
    if (message.msg_flags & MSG_TRUNC) {
        errno = EMSGSIZE;
        return -1;
    }
    return received;
}

int keychain_socket_limit_wait(int socket, int64_t seconds) {
    struct timeval limit = {.tv_sec = seconds};
    return setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit) == 0 ? 0 : errno;
}

int keychain_socket_accept(int socket) { return accept4(socket, NULL, NULL, SOCK_CLOEXEC); }

int keychain_packet_socket_prepare(int socket) {
    if (fcntl(socket, F_SETFL, 0) != 0) return errno;
    int on = 1;
    return setsockopt(socket, SOL_SOCKET, SO_PASSCRED, &on, sizeof on) == 0 ? 0 : errno;
}

void keychain_packet_socket_refuse_descriptors(int socket) {
    int off = 0;
    /* Since Linux 6.16. Before, and before this call, a received descriptor is closed, which takes as long as its file system or its socket likes. */
    (void)setsockopt(socket, SOL_SOCKET, SO_PASSRIGHTS, &off, sizeof off);
}

int keychain_socket_peer(int socket, struct keychain_process_identity *peer) {
    struct ucred credentials;
    socklen_t size = sizeof credentials;
    if (getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &credentials, &size) != 0) return errno;
    *peer = (struct keychain_process_identity){credentials.pid, credentials.uid, credentials.gid};
    return 0;
}

long keychain_socket_peer_groups(int socket, uint32_t *groups, size_t capacity) {
    socklen_t size = (socklen_t)(capacity * sizeof *groups);
    if (getsockopt(socket, SOL_SOCKET, SO_PEERGROUPS, groups, &size) != 0) return -1;
    return (long)(size / sizeof *groups);
}

int keychain_event_create(void) { return eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK); }

void keychain_event_set(int event) { (void)eventfd_write(event, 1); }
