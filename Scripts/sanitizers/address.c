/* SPDX-License-Identifier: Apache-2.0 */
/* Linked into every program that runs under Address Sanitizer. Children see nothing of our environment, so what they must know is built in. Tests look at limits for core files. */
const char *__asan_default_options(void) {
    return "external_symbolizer_path=" SANITIZER_SYMBOLIZER ":log_path=" SANITIZER_REPORTS "/address"
           ":disable_coredump=0:exitcode=66:detect_stack_use_after_return=1:strict_string_checks=1";
}

const char *__lsan_default_options(void) {
    return "suppressions=" SANITIZER_SUPPRESSIONS ":print_suppressions=0";
}
