/* SPDX-License-Identifier: Apache-2.0 */
/* The map from pages to frames, and the index in the -shm file. Source of its format: SQLite, "WAL-mode File Format", section 2. */
#include "wal_frames.h"

#include <stdlib.h>
#include <string.h>

#include "wal_file.h"

/* MARK: The index */

/* The first region begins with two copies of a header and the state of checkpoints. The page numbers of the frames follow; after them comes a
   hash table. The other regions have page numbers from their beginning. */
enum {
    HEADER_BYTE_COUNT = 48,
    LAST_FRAME = 16,
    PAGE_COUNT = 20,
    SALTS = 32,
    CHECKSUM = 40,
    BACKFILLED = 96,
    PREFIX_BYTE_COUNT = 136,
    FRAMES_PER_REGION = 4096
};

int keychain_wal_index_add(keychain_wal_index *index, int region, const volatile uint8_t *memory) {
    if (!memory) return SQLITE_OK;
    if (region >= index->region_count) {
        const volatile uint8_t **regions = realloc(index->regions, ((size_t)region + 1) * sizeof *regions);
        if (!regions) return SQLITE_IOERR_NOMEM;
        for (int added = index->region_count; added <= region; added++) regions[added] = NULL;
        index->regions = regions;
        index->region_count = region + 1;
    }
    index->regions[region] = memory;
    return SQLITE_OK;
}

void keychain_wal_index_clear(keychain_wal_index *index) {
    free(index->regions);
    *index = (keychain_wal_index){.regions = NULL, .region_count = 0};
}

const volatile uint8_t *keychain_wal_index_header(const keychain_wal_index *index) {
    return index->region_count > 0 ? index->regions[0] : NULL;
}

/* Other processes write the index at any time. A number is aligned, so it is read in one piece. */
static uint32_t number_at(const volatile uint8_t *region, uint32_t offset) { return *(const volatile uint32_t *)(region + offset); }

int keychain_wal_index_region_of(uint32_t frame) { return (int)((frame - 1 + PREFIX_BYTE_COUNT / 4) / FRAMES_PER_REGION); }

uint32_t keychain_wal_index_page(const keychain_wal_index *index, uint32_t frame) {
    uint32_t position = frame - 1 + PREFIX_BYTE_COUNT / 4;
    uint32_t region = position / FRAMES_PER_REGION;
    if (frame == 0 || region >= (uint32_t)index->region_count || !index->regions[region]) return 0;
    return number_at(index->regions[region], position % FRAMES_PER_REGION * 4);
}

uint32_t keychain_wal_index_frame_count(const keychain_wal_index *index) {
    const volatile uint8_t *region = keychain_wal_index_header(index);
    return region ? number_at(region, LAST_FRAME) : 0;
}

uint32_t keychain_wal_index_backfilled(const keychain_wal_index *index) {
    const volatile uint8_t *region = keychain_wal_index_header(index);
    return region ? number_at(region, BACKFILLED) : 0;
}

void keychain_wal_index_copy_salts(const keychain_wal_index *index, uint8_t *salts) {
    const volatile uint8_t *region = keychain_wal_index_header(index);
    uint32_t numbers[2] = {0, 0};
    if (region) numbers[0] = number_at(region, SALTS), numbers[1] = number_at(region, SALTS + 4);
    memcpy(salts, numbers, sizeof numbers);
}

bool keychain_wal_index_has_salts(const keychain_wal_index *index, const uint8_t *salts) {
    uint8_t current[8];
    keychain_wal_index_copy_salts(index, current);
    return memcmp(current, salts, sizeof current) == 0;
}

static void copy_header(const volatile uint8_t *region, uint32_t offset, uint8_t *header) {
    for (uint32_t byte = 0; byte < HEADER_BYTE_COUNT; byte++) header[byte] = region[offset + byte];
}

static uint32_t header_number(const uint8_t *header, int offset) {
    uint32_t number;
    memcpy(&number, header + offset, sizeof number);
    return number;
}

/* The checksum of the header is in the byte order of the machine. */
static bool header_is_valid(const uint8_t *header) {
    uint32_t first = 0, second = 0;
    for (int offset = 0; offset < CHECKSUM; offset += 8) {
        first += header_number(header, offset) + second;
        second += header_number(header, offset + 4) + first;
    }
    return first == header_number(header, CHECKSUM) && second == header_number(header, CHECKSUM + 4);
}

bool keychain_wal_index_is_complete(const keychain_wal_index *index) {
    const volatile uint8_t *region = keychain_wal_index_header(index);
    if (!region) return false;
    uint8_t header[HEADER_BYTE_COUNT], copy[HEADER_BYTE_COUNT];
    copy_header(region, 0, header);
    copy_header(region, HEADER_BYTE_COUNT, copy);
    /* A header of zeros has a valid checksum. SQLite does not use it. */
    return memcmp(header, copy, sizeof header) == 0 && header[12] != 0 && header_is_valid(header);
}

/* MARK: The map */

void keychain_frame_map_clear(keychain_frame_map *map) {
    free(map->slots);
    *map = (keychain_frame_map){.slots = NULL};
}

static struct keychain_frame_slot *slot_of(struct keychain_frame_slot *slots, uint32_t slot_count, uint32_t page) {
    uint32_t position = page * UINT32_C(2654435769) & (slot_count - 1);
    while (slots[position].page != 0 && slots[position].page != page) position = (position + 1) & (slot_count - 1);
    return slots + position;
}

uint32_t keychain_frame_map_newest(const keychain_frame_map *map, uint32_t page) {
    return map->slot_count == 0 ? 0 : slot_of(map->slots, map->slot_count, page)->frame;
}

static bool grow(keychain_frame_map *map) {
    uint32_t slot_count = map->slot_count == 0 ? 256 : map->slot_count * 2;
    struct keychain_frame_slot *slots = calloc(slot_count, sizeof *slots);
    if (!slots) return false;
    for (uint32_t old = 0; old < map->slot_count; old++) {
        if (map->slots[old].page != 0) *slot_of(slots, slot_count, map->slots[old].page) = map->slots[old];
    }
    free(map->slots);
    map->slots = slots;
    map->slot_count = slot_count;
    return true;
}

static bool insert(keychain_frame_map *map, uint32_t page, uint32_t frame) {
    if (map->used_slot_count >= map->slot_count / 2 && !grow(map)) return false;
    struct keychain_frame_slot *slot = slot_of(map->slots, map->slot_count, page);
    if (slot->page == 0) map->used_slot_count++;
    *slot = (struct keychain_frame_slot){.page = page, .frame = frame};
    return true;
}

static uint32_t big_endian(const uint8_t *bytes) {
    return (uint32_t)bytes[0] << 24 | (uint32_t)bytes[1] << 16 | (uint32_t)bytes[2] << 8 | bytes[3];
}

/* Whether a frame with other salts is damaged, or the whole file is not the one of the index. */
static int code_of_other_salts(sqlite3_file *wal, const uint8_t *expected) {
    uint8_t salts[8];
    int code = wal->pMethods->xRead(wal, salts, sizeof salts, 16);
    if (code != SQLITE_OK && code != SQLITE_IOERR_SHORT_READ) return code;
    return code == SQLITE_OK && memcmp(salts, expected, sizeof salts) == 0 ? SQLITE_IOERR_DATA : KEYCHAIN_WAL_IS_LOST;
}

static int add_frames(keychain_frame_map *map, sqlite3_file *wal, uint32_t last_frame) {
    while (map->frame_count < last_frame) {
        uint8_t header[KEYCHAIN_FRAME_HEADER_BYTE_COUNT];
        uint32_t frame = map->frame_count + 1;
        int code = wal->pMethods->xRead(wal, header, sizeof header, keychain_frame_offset(frame));
        if (code == SQLITE_IOERR_SHORT_READ) return KEYCHAIN_WAL_IS_LOST;
        if (code != SQLITE_OK) return code;
        if (memcmp(header + 8, map->salts, sizeof map->salts) != 0) return code_of_other_salts(wal, map->salts);
        uint32_t page = big_endian(header);
        if (page == 0) return SQLITE_IOERR_DATA;
        if (!insert(map, page, frame)) return SQLITE_IOERR_NOMEM;
        map->frame_count = frame;
        map->page_count = big_endian(header + 4);
    }
    return SQLITE_OK;
}

bool keychain_frame_map_is_restarted(const keychain_frame_map *map, const keychain_wal_index *index) {
    return !keychain_wal_index_header(index) || !keychain_wal_index_has_salts(index, map->salts);
}

void keychain_frame_map_forget_restarted(keychain_frame_map *map, const keychain_wal_index *index) {
    if (keychain_frame_map_is_restarted(map, index)) keychain_frame_map_clear(map);
}

int keychain_frame_map_extend(keychain_frame_map *map, sqlite3_file *wal, const keychain_wal_index *index) {
    const volatile uint8_t *region = keychain_wal_index_header(index);
    if (!region) {
        keychain_frame_map_clear(map);
        return SQLITE_OK;
    }
    if (!map->is_stale && keychain_wal_index_has_salts(index, map->salts) && number_at(region, LAST_FRAME) == map->frame_count) return SQLITE_OK;

    uint8_t before[HEADER_BYTE_COUNT], after[HEADER_BYTE_COUNT];
    copy_header(region, 0, before);
    map->is_stale = true;
    if (!header_is_valid(before)) return SQLITE_OK;
    uint32_t last_frame = header_number(before, LAST_FRAME);
    bool is_restarted = memcmp(map->salts, before + SALTS, sizeof map->salts) != 0;
    bool shrinks = !is_restarted && last_frame < map->frame_count;
    if (is_restarted) {
        keychain_frame_map_clear(map);
        memcpy(map->salts, before + SALTS, sizeof map->salts);
        map->is_stale = true;
    }
    int code = shrinks ? KEYCHAIN_WAL_INDEX_IS_WRONG : add_frames(map, wal, last_frame);
    copy_header(region, 0, after);
    bool is_unchanged = memcmp(before, after, sizeof before) == 0;
    if (code == SQLITE_OK && last_frame > 0 && map->page_count != header_number(before, PAGE_COUNT)) code = KEYCHAIN_WAL_INDEX_IS_WRONG;
    if (code == SQLITE_OK) {
        map->is_stale = !is_unchanged;
        return SQLITE_OK;
    }
    keychain_frame_map_clear(map);
    map->is_stale = true;
    /* The frames may have been overwritten after the index was restarted. */
    return is_unchanged || code == SQLITE_IOERR_NOMEM ? code : SQLITE_OK;
}

int keychain_frame_map_compare(const keychain_frame_map *map, sqlite3_file *wal, const keychain_wal_index *index) {
    for (uint32_t frame = 1; frame <= map->frame_count; frame++) {
        uint8_t page[4];
        int code = wal->pMethods->xRead(wal, page, sizeof page, keychain_frame_offset(frame));
        if (code != SQLITE_OK) return code;
        if (keychain_wal_index_page(index, frame) != big_endian(page)) return KEYCHAIN_WAL_INDEX_IS_WRONG;
    }
    return SQLITE_OK;
}
