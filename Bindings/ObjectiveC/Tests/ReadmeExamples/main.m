/* SPDX-License-Identifier: Apache-2.0 */

/// The Objective-C examples of Valet and of the documentation, unchanged. After each, its valets store and read values, as the Swift program does
/// with the same valets.
///
/// `ReadmeExamples write` runs them and stores values; `ReadmeExamples read` runs them and reads the values that Swift stored. Exits with 0 on success.
#import <ValetObjectiveC/ValetObjectiveC.h>

#include <stdio.h>
#include <string.h>

static int failureCount = 0;

static void expectText(NSString *text, NSString *expected, const char *example, NSError *error) {
    if (text == expected || [text isEqualToString:expected]) return;
    failureCount++;
    printf("%s: \"%s\", not \"%s\" (%s)\n", example, [[text description] UTF8String], [expected UTF8String],
           [[error description] UTF8String]);
}

typedef void (*Use)(id aValet, const char *example);

/// A valet of any class that needs no prompt to write.
static void write(id aValet, const char *example) {
    NSError *error = nil;
    BOOL isWritten = [(VALValet *)aValet setString:[NSString stringWithFormat:@"Objective-C: %s", example]
                                            forKey:@"Objective-C"
                                             error:&error];
    expectText(isWritten ? @"written" : @"not written", @"written", example, error);
}

static void read(id aValet, const char *example) {
    NSError *error = nil;
    NSString *expected = [NSString stringWithFormat:@"Swift: %s", example];
    NSString *text = nil;
    if ([aValet isKindOfClass:[VALValet class]]) {
        text = [(VALValet *)aValet stringForKey:@"Swift" error:&error];
    } else {
        text = [(VALSecureEnclaveValet *)aValet stringForKey:@"Swift" withPrompt:@"Read what Swift wrote" error:&error];
    }
    expectText(text, expected, example, error);
}

static void basicInitialization(Use use) {
    VALValet *const myValet = [VALValet valetWithIdentifier:@"Druidia" accessibility:VALAccessibilityWhenUnlocked];

    use(myValet, "basic");
}

static void explicitIdentifier(Use use) {
    VALValet *const myValet = [VALValet valetWithExplicitlySetIdentifier:@"Druidia" accessibility:VALAccessibilityWhenUnlocked];

    use(myValet, "explicit");
}

static void changingAccessibility(void) {
    VALValet *const before = [VALValet valetWithExplicitlySetIdentifier:@"Druidia" accessibility:VALAccessibilityWhenUnlocked];
    [before setString:@"12345" forKey:@"moved" error:nil];

    VALValet *const myOldValet = [VALValet valetWithExplicitlySetIdentifier:@"Druidia" accessibility:VALAccessibilityWhenUnlocked];
    VALValet *const myNewValet = [VALValet valetWithExplicitlySetIdentifier:@"Druidia" accessibility:VALAccessibilityAfterFirstUnlock];
    [myNewValet migrateObjectsFrom:myOldValet removeOnCompletion:true error:nil];

    NSError *error = nil;
    expectText([myNewValet stringForKey:@"moved" error:&error], @"12345", "changing accessibility", error);
    expectText([before stringForKey:@"moved" error:nil], nil, "changing accessibility", nil);
    // As before, with the values that Swift stored.
    [myNewValet removeObjectForKey:@"moved" error:nil];
    [before migrateObjectsFrom:myNewValet removeOnCompletion:YES error:nil];
}

static void readingAndWriting(void) {
    VALValet *const myValet = [VALValet valetWithIdentifier:@"Druidia" accessibility:VALAccessibilityWhenUnlocked];

    NSString *const username = @"Skroob";
    [myValet setString:@"12345" forKey:username error:nil];
    NSString *const myLuggageCombination = [myValet stringForKey:username error:nil];

    expectText(myLuggageCombination, @"12345", "reading and writing", nil);
}

static void sharedByAppIDPrefix(Use use) {
    VALValet *const mySharedValet = [VALValet sharedGroupValetWithAppIDPrefix:@"AppID12345" sharedGroupIdentifier:@"Druidia" accessibility:VALAccessibilityWhenUnlocked];

    use(mySharedValet, "App ID prefix");
}

static void sharedByGroupPrefix(Use use) {
    VALValet *const mySharedValet = [VALValet sharedGroupValetWithGroupPrefix:@"group" sharedGroupIdentifier:@"Druidia" accessibility:VALAccessibilityWhenUnlocked];

    use(mySharedValet, "application group");
}

static void cloud(Use use) {
    VALValet *const myCloudValet = [VALValet iCloudValetWithIdentifier:@"Druidia" accessibility:VALAccessibilityWhenUnlocked];

    use(myCloudValet, "iCloud");
}

static void secureEnclave(Use use) {
    VALSecureEnclaveValet *const mySecureEnclaveValet = [VALSecureEnclaveValet valetWithIdentifier:@"Druidia" accessControl:VALAccessControlUserPresence];

    use(mySecureEnclaveValet, "Secure Enclave");
}

static void singlePrompt(Use use) {
    VALSinglePromptSecureEnclaveValet *const mySecureEnclaveValet = [VALSinglePromptSecureEnclaveValet valetWithIdentifier:@"Druidia" accessControl:VALAccessControlUserPresence];

    use(mySecureEnclaveValet, "single prompt");
}

/// The first example of the README.
static void firstOfReadme(void) {
    VALValet *const vault = [VALValet valetWithIdentifier:@"Druidia" accessibility:VALAccessibilityWhenUnlocked];
    [vault setString:@"12345" forKey:@"Skroob" error:nil];
    NSString *const combination = [vault stringForKey:@"Skroob" error:nil];

    expectText(combination, @"12345", "README: five lines", nil);
    [vault removeObjectForKey:@"Skroob" error:nil];
}

static void valetOfReadme(void) {
    VALValet *const mine = [VALValet valetWithIdentifier:@"Druidia" accessibility:VALAccessibilityWhenUnlocked];
    VALValet *const ours = [VALValet sharedGroupValetWithAppIDPrefix:@"AppID12345"
                                               sharedGroupIdentifier:@"Druidia"
                                                       accessibility:VALAccessibilityWhenUnlocked];
    VALValet *const everywhere = [VALValet iCloudValetWithIdentifier:@"Druidia" accessibility:VALCloudAccessibilityWhenUnlocked];

    NSError *error = nil;
    NSString *const combination = [mine stringForKey:@"Skroob" error:&error];
    if (combination != nil) {
        NSLog(@"The same as on my luggage: %lu digits", (unsigned long)combination.length);
    } else if ([error.domain isEqual:VALKeychainErrorDomain] && error.code == VALKeychainErrorItemNotFound) {
        [mine setString:@"12345" forKey:@"Skroob" error:&error];
    }

    expectText([mine stringForKey:@"Skroob" error:nil], @"12345", "README: errors", error);
    expectText([ours stringForKey:@"Skroob" error:nil], nil, "README: another valet", nil);
    expectText([everywhere stringForKey:@"Skroob" error:nil], nil, "README: another valet", nil);

    VALValet *const before = [VALValet valetWithIdentifier:@"Planet Druidia" accessibility:VALAccessibilityWhenUnlocked];
    [before setString:@"Vespa" forKey:@"princess" error:nil];
    [before setString:@"fresh" forKey:@"air" error:nil];

    VALValet *const old = [VALValet valetWithIdentifier:@"Planet Druidia" accessibility:VALAccessibilityWhenUnlocked];
    [mine migrateObjectsFrom:old compactMap:^VALMigratableKeyValuePairOutput *(VALMigratableKeyValuePairInput *pair) {
        if ([pair.key isEqual:@"air"]) return nil;
        NSString *const key = [@"Druidia " stringByAppendingString:pair.key];
        return [[VALMigratableKeyValuePairOutput alloc] initWithKey:key value:pair.value];
    } error:&error];

    expectText([mine stringForKey:@"Druidia princess" error:nil], @"Vespa", "README: migration", error);
    expectText([mine stringForKey:@"Druidia air" error:nil], nil, "README: migration", error);
    [mine removeObjectForKey:@"Druidia princess" error:nil];
}

static void enclaveOfReadme(void) {
    VALSecureEnclaveValet *const luggage = [VALSecureEnclaveValet valetWithIdentifier:@"Luggage" accessControl:VALAccessControlUserPresence];
    [luggage setString:@"12345" forKey:@"combination" error:nil];
    NSString *const code = [luggage stringForKey:@"combination" withPrompt:@"Open the luggage" error:nil];

    expectText(code, @"12345", "README: Secure Enclave", nil);
}

int main(int count, const char *words[]) {
    @autoreleasepool {
        BOOL isWriting = count == 2 && strcmp(words[1], "write") == 0;
        if (!isWriting && !(count == 2 && strcmp(words[1], "read") == 0)) {
            printf("ReadmeExamples write | read\n");
            return 2;
        }
        Use use = isWriting ? write : read;
        basicInitialization(use);
        if (isWriting) changingAccessibility();
        explicitIdentifier(use);
        if (isWriting) readingAndWriting();
        sharedByAppIDPrefix(use);
        sharedByGroupPrefix(use);
        cloud(use);
        secureEnclave(use);
        singlePrompt(use);
        if (isWriting) {
            firstOfReadme();
            valetOfReadme();
            enclaveOfReadme();
        }
    }
    return failureCount == 0 ? 0 : 1;
}
