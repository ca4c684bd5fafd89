/* SPDX-License-Identifier: Apache-2.0 */
/* Which frame of a -wal file is the newest one of each page, as the file itself says.

   SQLite asks the index in the -shm file instead, which nothing authenticates: four bytes there make a frame invisible, and a checkpoint then
   loses it. So each connection makes a map of its own from the headers of the frames, and compares what the index says with it. */
#ifndef KEYCHAIN_WAL_FRAMES_H
#define KEYCHAIN_WAL_FRAMES_H

#include <sqlite3.h>
#include <stdbool.h>
#include <stdint.h>

/* The frames of a connection's snapshot. A map that is all zeros is empty. */
typedef struct {
    uint8_t salts[8];
    /* The frames in the map are those from 1 to this one. */
    uint32_t frame_count;
    /* The size of the database in pages after the last frame. */
    uint32_t page_count;
    /* The index changed while frames were read. SQLite notices that and begins its transaction again. */
    bool is_stale;
    /* A hash table of pages with open addressing; a slot without a page is free. */
    struct keychain_frame_slot {
        uint32_t page, frame;
    } *slots;
    uint32_t slot_count, used_slot_count;
} keychain_frame_map;

/* The part of the -shm file that is mapped. SQLite maps it in regions, in ascending order. */
enum { KEYCHAIN_INDEX_REGION_BYTE_COUNT = 32768 };

typedef struct {
    const volatile uint8_t **regions;
    int region_count;
} keychain_wal_index;

/* Notes a region that was mapped. Returns SQLITE_OK or SQLITE_IOERR_NOMEM. */
int keychain_wal_index_add(keychain_wal_index *index, int region, const volatile uint8_t *memory);

void keychain_wal_index_clear(keychain_wal_index *index);

/* Returns the beginning of the index, which is its header; NULL if it is not mapped. */
const volatile uint8_t *keychain_wal_index_header(const keychain_wal_index *index);

/* Returns the page of a frame, as the index says; 0 if it says nothing. */
uint32_t keychain_wal_index_page(const keychain_wal_index *index, uint32_t frame);

/* Returns the region of the index that has the page number of a frame. */
int keychain_wal_index_region_of(uint32_t frame);

/* Returns the number of committed frames in the index; 0 if it is not mapped. */
uint32_t keychain_wal_index_frame_count(const keychain_wal_index *index);

/* Returns the number of frames that the index says are in the database. */
uint32_t keychain_wal_index_backfilled(const keychain_wal_index *index);

/* Copies the eight bytes of the index that the -wal file of this round begins with; zeros if the index is not mapped. */
void keychain_wal_index_copy_salts(const keychain_wal_index *index, uint8_t *salts);

bool keychain_wal_index_has_salts(const keychain_wal_index *index, const uint8_t *salts);

/* Whether the index begins with a complete header, so that SQLite uses it. */
bool keychain_wal_index_is_complete(const keychain_wal_index *index);

void keychain_frame_map_clear(keychain_frame_map *map);

/* Adds the frames that the index says were committed since the last call. `wal` is a file of the base VFS.

   Requires a lock that keeps the -wal file from being restarted. Returns KEYCHAIN_WAL_INDEX_IS_WRONG if the index and the frames contradict
   each other, and the codes of a frame that is damaged or missing. */
int keychain_frame_map_extend(keychain_frame_map *map, sqlite3_file *wal, const keychain_wal_index *index);

/* Whether the -wal file was restarted since the map was extended. */
bool keychain_frame_map_is_restarted(const keychain_frame_map *map, const keychain_wal_index *index);

/* Empties the map if the -wal file was restarted since. Unlike extending it, this keeps it from having more frames than SQLite's copy of the
   index. */
void keychain_frame_map_forget_restarted(keychain_frame_map *map, const keychain_wal_index *index);

/* Compares the page numbers in the index with those in the frames of the map. Returns SQLITE_OK, KEYCHAIN_WAL_INDEX_IS_WRONG, or the code of a
   read that failed. */
int keychain_frame_map_compare(const keychain_frame_map *map, sqlite3_file *wal, const keychain_wal_index *index);

/* Returns the newest frame of a page; 0 if there is none. */
uint32_t keychain_frame_map_newest(const keychain_frame_map *map, uint32_t page);

#endif
