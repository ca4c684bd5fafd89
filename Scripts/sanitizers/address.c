/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Linked into every program that runs under Address Sanitizer. The options are built in, because child processes do not inherit the
 * environment. Core dumps stay enabled, because tests check their limits.
 */
#include <stdio.h>

const char *__asan_default_options(void) {
    return "external_symbolizer_path=" SANITIZER_SYMBOLIZER ":log_path=" SANITIZER_REPORTS "/address"
           ":disable_coredump=0:exitcode=66:detect_stack_use_after_return=1:strict_string_checks=1";
}

/* The leak check traces the process, which is not possible while strace traces it. */
int __lsan_is_turned_off(void) {
    char line[256];
    int tracer = 0;
    FILE *status = fopen("/proc/self/status", "re");
    if (status == NULL) return 0;
    while (fgets(line, sizeof line, status) != NULL && sscanf(line, "TracerPid: %d", &tracer) != 1) {}
    fclose(status);
    return tracer != 0;
}

const char *__lsan_default_options(void) {
    return "suppressions=" SANITIZER_SUPPRESSIONS ":print_suppressions=0";
}
