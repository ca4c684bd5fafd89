/* SPDX-License-Identifier: Apache-2.0 */
/* What a store asks of the layer. */
#include "page_checksums.h"

#include <string.h>

#include "page_checksums_file.h"

int keychain_page_checksums_check(sqlite3 *database) {
    return sqlite3_file_control(database, "main", KEYCHAIN_FILE_CONTROL_CHECK, NULL);
}

int keychain_page_checksums_stamp(sqlite3 *database) {
    return sqlite3_file_control(database, "main", KEYCHAIN_FILE_CONTROL_STAMP, NULL);
}

static int64_t big_endian(const uint8_t *bytes) {
    return (int64_t)bytes[0] << 24 | (int64_t)bytes[1] << 16 | (int64_t)bytes[2] << 8 | bytes[3];
}

/* Whether the -wal file has that page: then the one in the database is out of date, and may be half written just now.
   Source: SQLite, "Database File Format", section 4. */
static int find_in_log(sqlite3 *database, int64_t page, bool *is_there) {
    const int header_byte_count = 32, frame_byte_count = 24 + KEYCHAIN_PAGE_BYTE_COUNT;
    sqlite3_file *log = NULL;
    uint8_t header[32], frame[24];
    *is_there = false;
    int code = sqlite3_file_control(database, "main", SQLITE_FCNTL_JOURNAL_POINTER, &log);
    if (code != SQLITE_OK || !log || !log->pMethods) return code;
    code = log->pMethods->xRead(log, header, sizeof header, 0);
    if (code == SQLITE_OK && memcmp(header, "\x37\x7f\x06", 3) != 0) return SQLITE_OK;
    for (sqlite3_int64 offset = header_byte_count; code == SQLITE_OK; offset += frame_byte_count) {
        code = log->pMethods->xRead(log, frame, sizeof frame, offset);
        /* Behind the last frame lie those of an earlier log, which have other salts. */
        if (code != SQLITE_OK || memcmp(frame + 8, header + 16, 8) != 0) break;
        if (big_endian(frame) == page) {
            *is_there = true;
            break;
        }
    }
    return code == SQLITE_IOERR_SHORT_READ ? SQLITE_OK : code;
}

int keychain_page_checksums_next_damaged(sqlite3 *database, int64_t after, int64_t *page) {
    while (true) {
        sqlite3_int64 number = after, again = 0;
        int code = sqlite3_file_control(database, "main", KEYCHAIN_FILE_CONTROL_NEXT_DAMAGED, &number);
        *page = number;
        if (code != SQLITE_OK || number == 0) return code;
        bool is_in_log = false;
        code = find_in_log(database, number, &is_in_log);
        if (code != SQLITE_OK) return code;
        /* Looked at once more, now that it is known that nobody has reason to write it. */
        again = number - 1;
        if (!is_in_log) code = sqlite3_file_control(database, "main", KEYCHAIN_FILE_CONTROL_NEXT_DAMAGED, &again);
        if (code != SQLITE_OK || (!is_in_log && again == number)) return code;
        after = number;
    }
}
