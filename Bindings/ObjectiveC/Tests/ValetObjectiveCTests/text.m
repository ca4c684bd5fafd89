/* SPDX-License-Identifier: Apache-2.0 */
#import "Checks.h"

/// A string of these UTF-16 units, terminated by 0xFFFF.
static NSString *units(const unichar *first) {
    NSUInteger count = 0;
    while (first[count] != 0xFFFF) count++;
    NSString *text = [NSString stringWithCharacters:first length:count];
    if ([text length] != count) {
        // GNUstep removes a byte order mark at the beginning.
        unichar prefixed[8] = {' '};
        for (NSUInteger index = 0; index < count && index < 7; index++) prefixed[index + 1] = first[index];
        text = [[NSString stringWithCharacters:prefixed length:count + 1] substringFromIndex:1];
    }
    CHECK([text length] == count);
    return text;
}

/// Compares unit by unit, because Foundation may consider different strings equal.
static BOOL isExactly(NSString *one, NSString *other) {
    if ([one length] != [other length]) return NO;
    for (NSUInteger index = 0; index < [one length]; index++) {
        if ([one characterAtIndex:index] != [other characterAtIndex:index]) return NO;
    }
    return YES;
}

#define UNITS(...) units((unichar[]){__VA_ARGS__, 0xFFFF})

/// Text of every UTF-8 length, with a NUL, and with a byte order mark, as key and as value.
static void checkExactness(VALValet *valet) {
    NSArray *texts = [NSArray arrayWithObjects:UNITS('a'), UNITS(0x7F, 0x80), UNITS(0x7FF, 0x800), UNITS(0xD7FF, 0xE000, 0xFFFD),
                                               UNITS(0xD800, 0xDC00), UNITS(0xDBFF, 0xDFFF), UNITS('a', 0, 'b'), UNITS(0xFEFF, 'a'),
                                               UNITS('a', 0xFEFF), UNITS(0xE9), UNITS('e', 0x301), UNITS(0xFEFF), UNITS(0xFEFF, 0xFEFF),
                                               UNITS(0xFFFE, 'a'), nil];
    for (NSString *text in texts) {
        CHECK_DONE([valet setString:text forKey:text error:failure]);
        CHECK([[valet stringForKey:text error:NULL] length] == [text length]);
    }
    // Keys that look alike are different keys.
    // The set contains each key unchanged. GNUstep considers two of them equal, so one of these may be missing.
    NSSet *keys = [valet allKeysWithError:NULL];
    CHECK([keys count] == [texts count] || [keys count] == [texts count] - 1);
    for (NSString *key in keys) {
        BOOL isThere = NO;
        for (NSString *text in texts) isThere = isThere || isExactly(key, text);
        CHECK(isThere);
    }
    for (NSString *text in texts) {
        CHECK(isExactly([valet stringForKey:text error:NULL], text));
    }
    CHECK([[valet objectForKey:UNITS(0xD800, 0xDC00) error:NULL] isEqual:bytes("\xF0\x90\x80\x80")]);
    CHECK([[valet objectForKey:UNITS(0x7FF, 0x800) error:NULL] isEqual:bytes("\xDF\xBF\xE0\xA0\x80")]);
    CHECK([[valet objectForKey:UNITS(0xFEFF, 'a') error:NULL] isEqual:bytes("\xEF\xBB\xBF" "a")]);
}

/// Half of a surrogate pair is refused, and nothing is stored.
static void checkHalves(VALValet *valet) {
    // Taken from a pair, because GNUstep creates none otherwise.
    NSString *pairs = UNITS('a', 0xD800, 0xDC00, 0xD800, 0xDC00);
    NSArray *halves = [NSArray arrayWithObjects:[pairs substringToIndex:2], [pairs substringFromIndex:2],
                                                [pairs substringWithRange:NSMakeRange(2, 1)], [pairs substringWithRange:NSMakeRange(1, 1)],
                                                [pairs substringWithRange:NSMakeRange(2, 2)], nil];
    CHECK([halves count] == 5);
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
