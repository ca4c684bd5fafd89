/* SPDX-License-Identifier: Apache-2.0 */
/* What a store asks of the layer. */
#include "page_checksums.h"

#include <string.h>

#include "log_frames.h"
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

/* The -wal file that SQLite has open, past our layer, or NULL. */
static int find_log(sqlite3 *database, sqlite3_file **log) {
    *log = NULL;
    int code = sqlite3_file_control(database, "main", SQLITE_FCNTL_JOURNAL_POINTER, log);
    *log = code == SQLITE_OK && *log && (*log)->pMethods ? keychain_wal_file_base(*log) : NULL;
    return code;
}

/* Whether the -wal file has that page: then the one in the database is out of date, and may be half written just now. */
static int find_in_log(sqlite3 *database, int64_t page, bool *is_there) {
    sqlite3_file *log;
    uint8_t header[KEYCHAIN_WAL_HEADER_BYTE_COUNT], frame[KEYCHAIN_FRAME_HEADER_BYTE_COUNT];
    *is_there = false;
    int code = find_log(database, &log);
    if (!log) return code;
    code = log->pMethods->xRead(log, header, sizeof header, 0);
    if (code == SQLITE_OK && memcmp(header, "\x37\x7f\x06", 3) != 0) return SQLITE_OK;
    for (sqlite3_int64 number = 1; code == SQLITE_OK; number++) {
        code = log->pMethods->xRead(log, frame, sizeof frame, keychain_frame_offset(number));
        /* Behind the last frame lie those of an earlier log, which have other salts. */
        if (code != SQLITE_OK || memcmp(frame + 8, header + 16, 8) != 0) break;
        if (big_endian(frame) == page) {
            *is_there = true;
            break;
        }
    }
    return code == SQLITE_IOERR_SHORT_READ ? SQLITE_OK : code;
}

int keychain_wal_damage(sqlite3 *database, int64_t *unreachable_count, int64_t *sound_byte_count) {
    sqlite3_file *log;
    *unreachable_count = *sound_byte_count = 0;
    int code = find_log(database, &log);
    /* Somebody may write to the file during the look at it, or begin it anew. Damage stays where it is; an end that was mistaken for it moves. */
    int64_t earlier_byte_count = -1;
    for (int attempt = 0; log && code == SQLITE_OK && attempt < 10; attempt++) {
        code = keychain_wal_count_unreachable(log, unreachable_count, sound_byte_count);
        if (code != SQLITE_OK || *unreachable_count == 0 || *sound_byte_count == earlier_byte_count) break;
        earlier_byte_count = *sound_byte_count;
        *unreachable_count = 0;
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
