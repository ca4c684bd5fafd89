/* SPDX-License-Identifier: Apache-2.0 */
#import "Checks.h"

/// A string of these units of UTF-16, ended by 0xFFFF.
static NSString *units(const unichar *first) {
    NSUInteger count = 0;
    while (first[count] != 0xFFFF) count++;
    return [NSString stringWithCharacters:first length:count];
}

#define UNITS(...) units((unichar[]){__VA_ARGS__, 0xFFFF})

/// Text of every length of UTF-8, with a NUL inside, with a byte order mark: as key and as value, and its bytes are UTF-8.
static void checkExactness(VALValet *valet) {
    NSArray *texts = [NSArray arrayWithObjects:UNITS('a'), UNITS(0x7F, 0x80), UNITS(0x7FF, 0x800), UNITS(0xD7FF, 0xE000, 0xFFFD),
                                               UNITS(0xD800, 0xDC00), UNITS(0xDBFF, 0xDFFF), UNITS('a', 0, 'b'), UNITS(0xFEFF, 'a'),
                                               UNITS('a', 0xFEFF), UNITS(0xE9), UNITS('e', 0x301), nil];
    for (NSString *text in texts) {
        CHECK_DONE([valet setString:text forKey:text error:failure]);
        CHECK([[valet stringForKey:text error:NULL] length] == [text length]);
    }
    // One of two that look alike is not the other.
    NSSet *keys = [valet allKeysWithError:NULL];
    CHECK([keys count] == [texts count]);
    for (NSString *text in texts) {
        NSString *value = [valet stringForKey:text error:NULL];
        BOOL isSame = [value length] == [text length];
        for (NSUInteger index = 0; isSame && index < [text length]; index++) {
            isSame = [value characterAtIndex:index] == [text characterAtIndex:index];
        }
        CHECK(isSame);
        CHECK([keys containsObject:text]);
    }
    CHECK([[valet objectForKey:UNITS(0xD800, 0xDC00) error:NULL] isEqual:bytes("\xF0\x90\x80\x80")]);
    CHECK([[valet objectForKey:UNITS(0x7FF, 0x800) error:NULL] isEqual:bytes("\xDF\xBF\xE0\xA0\x80")]);
    CHECK([[valet objectForKey:UNITS(0xFEFF, 'a') error:NULL] isEqual:bytes("\xEF\xBB\xBF" "a")]);
}

/// Half of a pair is refused, and nothing is stored.
static void checkHalves(VALValet *valet) {
    NSArray *halves = [NSArray arrayWithObjects:UNITS(0xD800), UNITS('a', 0xDC00), UNITS(0xDC00, 0xD800), UNITS(0xD800, 0xD800, 0xDC00), nil];
    for (NSString *half in halves) {
        CHECK_ERROR([valet setString:half forKey:@"half" error:failure], VALValetErrorDomain, VALValetErrorNotUnicode);
        CHECK_ERROR([valet setString:@"value" forKey:half error:failure], VALValetErrorDomain, VALValetErrorNotUnicode);
        CHECK_ERROR([valet stringForKey:half error:failure], VALValetErrorDomain, VALValetErrorNotUnicode);
        CHECK(![valet containsObjectForKey:half] && ![valet containsObjectForKey:@"half"]);
        CHECK([VALValet valetWithIdentifier:half accessibility:VALAccessibilityWhenUnlocked] == nil);
    }
}

void checkText(void) {
    checkExactness(emptyValet(@"Text"));
    checkHalves(emptyValet(@"Halves"));
}
