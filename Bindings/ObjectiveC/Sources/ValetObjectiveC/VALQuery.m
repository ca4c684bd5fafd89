/* SPDX-License-Identifier: Apache-2.0 */
#import "VALQuery.h"

#include <stdlib.h>
#include <string.h>

/// Booleans are numbers of a separate class, in GNUstep and in Apple's Foundation.
static BOOL isBoolean(NSNumber *number) {
    return [number isKindOfClass:[[NSNumber numberWithBool:YES] class]];
}

static valet_status setNumber(valet_query_entry *entry, NSNumber *number) {
    if (isBoolean(number)) {
        entry->type = valet_value_boolean;
        entry->number = [number boolValue] ? 1 : 0;
        return valet_success;
    }
    entry->type = valet_value_number;
    entry->number = [number longLongValue];
    // A number that is not a 64-bit integer would change its value.
    BOOL isExact = [number isEqualToNumber:[NSNumber numberWithLongLong:entry->number]];
    return isExact ? valet_success : valet_error_invalid_query;
}

static valet_status setValue(valet_query_entry *entry, VALText *text, id value) {
    if ([value isKindOfClass:[NSString class]]) {
        *text = VALTextMake(value);
        entry->type = valet_value_text;
        entry->bytes = text->bytes;
        entry->length = text->length;
    } else if ([value isKindOfClass:[NSData class]]) {
        entry->type = valet_value_bytes;
        entry->length = [(NSData *)value length];
        entry->bytes = [(NSData *)value bytes];
    } else if ([value isKindOfClass:[NSNumber class]]) {
        return setNumber(entry, value);
    } else if ([value isKindOfClass:[NSDate class]]) {
        entry->type = valet_value_date;
        entry->seconds = [(NSDate *)value timeIntervalSince1970];
    } else {
        return valet_error_invalid_query;
    }
    return valet_success;
}

/// The name ends with NUL, so it must not contain NUL.
static valet_status setName(valet_query_entry *entry, VALText *text, id name) {
    if (![name isKindOfClass:[NSString class]] || [(NSString *)name length] == 0) return valet_error_invalid_query;
    NSString *ended = [(NSString *)name stringByAppendingString:[NSString stringWithFormat:@"%C", (unichar)0]];
    *text = VALTextMake(ended);
    if (text->bytes == NULL) return valet_error_no_memory;
    entry->name = text->bytes;
    return strlen(text->bytes) + 1 == text->length ? valet_success : valet_error_invalid_query;
}

VALQuery VALQueryMake(NSDictionary *dictionary) {
    VALQuery query = {valet_success, NULL, [dictionary count], NULL};
    if (query.count == 0) return query;
    query.entries = calloc(query.count, sizeof(valet_query_entry));
    query.texts = calloc(query.count * 2, sizeof(VALText));
    if (query.entries == NULL || query.texts == NULL) {
        query.status = valet_error_no_memory;
        return query;
    }
    size_t index = 0;
    for (id name in dictionary) {
        if (index == query.count || query.status != valet_success) break;
        query.status = setName(&query.entries[index], &query.texts[index * 2], name);
        if (query.status != valet_success) break;
        query.status = setValue(&query.entries[index], &query.texts[index * 2 + 1], [dictionary objectForKey:name]);
        index++;
    }
    return query;
}

void VALQueryFree(VALQuery *query) {
    for (size_t index = 0; query->texts != NULL && index < query->count * 2; index++) VALTextFree(&query->texts[index]);
    free(query->texts);
    free(query->entries);
    query->texts = NULL;
    query->entries = NULL;
    query->count = 0;
}
