// SPDX-License-Identifier: Apache-2.0
// A program that uses PAM, for tests.
//
//   pam_login CONFIGURATIONS USER PASSWORD STEP...
//
// CONFIGURATIONS is a directory with the configuration of the service `test`. PASSWORD is masked; see masked_text.h. Prints a line for each
// step, and before it the messages for the person and those for the system log.
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <security/pam_appl.h>

#include "masked_text.h"

// In the place of the C library's functions, which write to the system log.
void syslog(int priority, const char *format, ...) {
    (void)priority;
    va_list arguments;
    va_start(arguments, format);
    printf("log: ");
    vprintf(format, arguments);
    printf("\n");
    va_end(arguments);
}

void __syslog_chk(int priority, int flag, const char *format, ...) {
    (void)priority, (void)flag;
    va_list arguments;
    va_start(arguments, format);
    printf("log: ");
    vprintf(format, arguments);
    printf("\n");
    va_end(arguments);
}

static int converse(int count, const struct pam_message **messages, struct pam_response **responses, void *password) {
    *responses = calloc((size_t)count, sizeof(**responses));
    for (int index = 0; index < count; index++) {
        if (messages[index]->msg_style == PAM_PROMPT_ECHO_OFF) {
            // PAM wipes and frees it.
            (*responses)[index].resp = malloc(largest_text_byte_count + 1);
            unmask(password, (*responses)[index].resp);
        } else {
            printf("message: %s\n", messages[index]->msg);
        }
    }
    return PAM_SUCCESS;
}

// Whether the password is in the memory that this process can write.
static int is_in_memory(const char *password) {
    unsigned char masked[largest_text_byte_count];
    size_t count = read_masked(password, masked);
    FILE *maps = fopen("/proc/self/maps", "r");
    int memory = open("/proc/self/mem", O_RDONLY | O_CLOEXEC);
    enum { part = 1 << 20 };
    static unsigned char buffer[part];
    int found = 0;
    char line[512];
    while (fgets(line, sizeof(line), maps) != NULL) {
        unsigned long start, end;
        char permissions[5];
        if (sscanf(line, "%lx-%lx %4s", &start, &end, permissions) != 3 || permissions[1] != 'w') continue;
        // Address Sanitizer reserves terabytes.
        if (end - start > 1UL << 30) continue;
        for (unsigned long position = start; position < end; position += part - largest_text_byte_count) {
            ssize_t length = pread(memory, buffer, end - position < part ? end - position : part, (off_t)position);
            for (ssize_t offset = 0; offset + (ssize_t)count <= length; offset++) {
                size_t equal = 0;
                while (equal < count && (buffer[offset + (ssize_t)equal] ^ mask) == masked[equal]) equal++;
                // Not the copies in this buffer.
                unsigned long address = position + (unsigned long)offset;
                int isBuffer = address >= (unsigned long)buffer && address < (unsigned long)buffer + part;
                if (equal == count && !isBuffer) found = 1;
            }
        }
        explicit_bzero(buffer, sizeof(buffer));
    }
    close(memory);
    fclose(maps);
    return found;
}

int main(int argc, char **argv) {
    if (argc < 4) return 2;
    setvbuf(stdout, NULL, _IOLBF, 0);
    struct pam_conv conversation = {converse, argv[3]};
    pam_handle_t *handle = NULL;
    if (pam_start_confdir("test", argv[2], &conversation, argv[1], &handle) != PAM_SUCCESS) return 3;
    int result = PAM_SUCCESS;
    for (int index = 4; index < argc; index++) {
        const char *step = argv[index];
        if (strcmp(step, "authenticate") == 0) result = pam_authenticate(handle, 0);
        else if (strcmp(step, "establish") == 0) result = pam_setcred(handle, PAM_ESTABLISH_CRED);
        else if (strcmp(step, "refresh") == 0) result = pam_setcred(handle, PAM_REFRESH_CRED);
        else if (strcmp(step, "reinitialize") == 0) result = pam_setcred(handle, PAM_REINITIALIZE_CRED);
        else if (strcmp(step, "open") == 0) result = pam_open_session(handle, 0);
        else if (strcmp(step, "close") == 0) result = pam_close_session(handle, 0);
        else if (strcmp(step, "change") == 0) result = pam_chauthtok(handle, 0);
        else if (strcmp(step, "become-daemon") == 0) result = pam_set_item(handle, PAM_USER, "daemon");
        else if (strcmp(step, "search") == 0) {
            printf("search %s\n", is_in_memory(argv[3]) ? "found" : "absent");
            continue;
        } else return 2;
        printf("%s %s\n", step, result == PAM_SUCCESS ? "succeeded" : "failed");
        // As a program does.
        if (strcmp(step, "authenticate") == 0 && result != PAM_SUCCESS) break;
    }
    pam_end(handle, result);
    return 0;
}
