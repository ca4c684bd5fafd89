// SPDX-License-Identifier: Apache-2.0
// Passwords as the arguments of programs: hexadecimal, with each byte masked, so that a search of the memory does not find them.
#include <stddef.h>
#include <stdio.h>
#include <string.h>

enum { mask = 0x55, largest_text_byte_count = 1100 };

// Reads the masked bytes and returns their number.
static inline size_t read_masked(const char *hexadecimal, unsigned char *masked) {
    size_t count = strlen(hexadecimal) / 2;
    if (count > largest_text_byte_count) count = largest_text_byte_count;
    for (size_t index = 0; index < count; index++) {
        unsigned int byte = 0;
        if (sscanf(hexadecimal + 2 * index, "%2x", &byte) != 1) return 0;
        masked[index] = (unsigned char)byte;
    }
    return count;
}

// Writes the text, which has room for a zero at its end.
static inline void unmask(const char *hexadecimal, char *text) {
    unsigned char masked[largest_text_byte_count];
    size_t count = read_masked(hexadecimal, masked);
    for (size_t index = 0; index < count; index++) text[index] = (char)(masked[index] ^ mask);
    text[count] = 0;
}
