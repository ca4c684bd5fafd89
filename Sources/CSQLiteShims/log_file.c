/* SPDX-License-Identifier: Apache-2.0 */
/* The calls on a -wal file. SQLite compares the checksums of its frames only when it looks for the end of the file; here each page is checked as
   it is read, so that damage neither reaches a reader nor is copied into the database. */
#include "log_file.h"

#include <stddef.h>

#include "log_frames.h"

static keychain_wal_file *ours(sqlite3_file *file) { return (keychain_wal_file *)file; }

static sqlite3_file *real(sqlite3_file *file) { return ours(file)->real; }

static const sqlite3_io_methods *below(sqlite3_file *file) { return real(file)->pMethods; }

/* SQLite reads the header when it looks for the end of the file, which nobody else touches then. Damage would make it take an earlier place. */
static int read_header(sqlite3_file *file, void *buffer) {
    int64_t count = 0, sound_byte_count = 0;
    int code = keychain_wal_count_unreachable(real(file), &count, &sound_byte_count);
    if (code == SQLITE_OK && count > 0) code = KEYCHAIN_WAL_IS_DAMAGED;
    return code == SQLITE_OK ? below(file)->xRead(real(file), buffer, KEYCHAIN_WAL_HEADER_BYTE_COUNT, 0) : code;
}

static int read_file(sqlite3_file *file, void *buffer, int byte_count, sqlite3_int64 offset) {
    if (offset == 0 && byte_count == KEYCHAIN_WAL_HEADER_BYTE_COUNT) return read_header(file, buffer);
    sqlite3_int64 number = byte_count == KEYCHAIN_PAGE_BYTE_COUNT ? keychain_frame_number(offset, KEYCHAIN_FRAME_HEADER_BYTE_COUNT) : 0;
    sqlite3_int64 first_uncommitted = ours(file)->first_uncommitted_frame;
    if (number == 0 || (first_uncommitted != 0 && number >= first_uncommitted)) {
        return below(file)->xRead(real(file), buffer, byte_count, offset);
    }
    return keychain_wal_read_page(real(file), number, buffer);
}

static int write_file(sqlite3_file *file, const void *buffer, int byte_count, sqlite3_int64 offset) {
    if (byte_count == KEYCHAIN_FRAME_HEADER_BYTE_COUNT) {
        sqlite3_int64 number = keychain_frame_number(offset, 0);
        if (keychain_frame_commits(buffer)) {
            ours(file)->first_uncommitted_frame = 0;
        } else if (number != 0 && ours(file)->first_uncommitted_frame == 0) {
            ours(file)->first_uncommitted_frame = number;
        }
    }
    return below(file)->xWrite(real(file), buffer, byte_count, offset);
}

void keychain_wal_file_end_transaction(keychain_wal_file *file) { file->first_uncommitted_frame = 0; }

/* What is passed on as it is. */

static int close_file(sqlite3_file *file) {
    if (ours(file)->noted_at) *ours(file)->noted_at = NULL;
    int code = below(file)->xClose(real(file));
    file->pMethods = NULL;
    return code;
}

static int truncate_file(sqlite3_file *file, sqlite3_int64 byte_count) { return below(file)->xTruncate(real(file), byte_count); }
static int sync_file(sqlite3_file *file, int flags) { return below(file)->xSync(real(file), flags); }
static int file_size(sqlite3_file *file, sqlite3_int64 *byte_count) { return below(file)->xFileSize(real(file), byte_count); }
static int lock_file(sqlite3_file *file, int level) { return below(file)->xLock(real(file), level); }
static int unlock_file(sqlite3_file *file, int level) { return below(file)->xUnlock(real(file), level); }
static int check_lock(sqlite3_file *file, int *is_held) { return below(file)->xCheckReservedLock(real(file), is_held); }
static int control_file(sqlite3_file *file, int operation, void *argument) {
    return below(file)->xFileControl(real(file), operation, argument);
}
static int sector_size(sqlite3_file *file) { return below(file)->xSectorSize(real(file)); }
static int characteristics(sqlite3_file *file) { return below(file)->xDeviceCharacteristics(real(file)); }

static const sqlite3_io_methods methods = {
    .iVersion = 1, .xClose = close_file, .xRead = read_file, .xWrite = write_file, .xTruncate = truncate_file, .xSync = sync_file,
    .xFileSize = file_size, .xLock = lock_file, .xUnlock = unlock_file, .xCheckReservedLock = check_lock, .xFileControl = control_file,
    .xSectorSize = sector_size, .xDeviceCharacteristics = characteristics};

sqlite3_file *keychain_wal_file_base(sqlite3_file *file) { return file->pMethods == &methods ? real(file) : file; }

void keychain_wal_file_wrap(keychain_wal_file *file, sqlite3_file *real_file, keychain_wal_file **noted_at) {
    file->base.pMethods = &methods;
    file->real = real_file;
    file->noted_at = noted_at;
    file->first_uncommitted_frame = 0;
    if (noted_at) *noted_at = file;
}
