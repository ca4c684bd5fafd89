/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "CKeychainTestShims.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

int keychain_test_connect_packets(const char *path) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    if (strlen(path) >= sizeof address.sun_path) {
        errno = ENAMETOOLONG;
        return -1;
    }
    strcpy(address.sun_path, path);
    int number = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    if (number >= 0 && connect(number, (struct sockaddr *)&address, sizeof address) != 0) {
        close(number);
        return -1;
    }
    return number;
}

bool keychain_test_send_descriptor(int socket, int descriptor, int count, const void *bytes, size_t byte_count) {
    enum { LARGEST_COUNT = 4 };
    union {
        struct cmsghdr header;
        unsigned char bytes[CMSG_SPACE(LARGEST_COUNT * sizeof(int))];
    } control = {0};
    if (count < 1 || count > LARGEST_COUNT) return false;
    struct iovec part = {(void *)bytes, byte_count};
    struct msghdr message = {
        .msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = CMSG_SPACE((size_t)count * sizeof(int))};
    control.header.cmsg_level = SOL_SOCKET;
    control.header.cmsg_type = SCM_RIGHTS;
    control.header.cmsg_len = CMSG_LEN((size_t)count * sizeof(int));
    for (int index = 0; index < count; index++) memcpy(CMSG_DATA(&control.header) + (size_t)index * sizeof(int), &descriptor, sizeof descriptor);
    return sendmsg(socket, &message, MSG_NOSIGNAL) == (ssize_t)byte_count;
}
