/* SPDX-License-Identifier: Apache-2.0 */

/// Valet's examples for Objective-C, and README's, word for word. Each is followed by what stores and reads with the valets it makes, beside
/// what the program in Swift does with the same valets.
///
/// `ReadmeExamples write` runs them and stores; `ReadmeExamples read` runs them and reads what Swift stored. Ends with 0 if all is as it should be.
#import <ValetObjectiveC/ValetObjectiveC.h>

#include <stdio.h>
#include <string.h>

static int failureCount = 0;

static void expectText(NSString *text, NSString *expected, const char *example, NSError *error) {
    if ([text isEqualToString:expected]) return;
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
    [myNewValet removeAllObjectsAndReturnError:nil];
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

/// README's own.
static void readme(void) {
    VALValet *const vault = [VALValet valetWithIdentifier:@"Druidia" accessibility:VALAccessibilityWhenUnlocked];
    [vault setString:@"12345" forKey:@"Skroob" error:nil];
    NSString *const combination = [vault stringForKey:@"Skroob" error:nil];

    expectText(combination, @"12345", "README", nil);

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
        if (isWriting) readme();
    }
    return failureCount == 0 ? 0 : 1;
}
