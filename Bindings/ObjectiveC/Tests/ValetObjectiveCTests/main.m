/* SPDX-License-Identifier: Apache-2.0 */

/// Tests the classes on the keychain of the environment: `ValetObjectiveCTests CASE…`. Prints each failure, and exits with 0 if there is none.
/// `Scripts/objective-c-tests.sh` prepares the keychain for each case.
#import "Checks.h"

#include <stdlib.h>
#include <string.h>

int failedCheckCount = 0;

VALValet *emptyValet(NSString *identifier) {
    VALValet *valet = [VALValet valetWithIdentifier:identifier accessibility:VALAccessibilityWhenUnlocked];
    CHECK([valet removeAllObjectsAndReturnError:NULL]);
    return valet;
}

NSData *bytes(const char *text) {
    return [NSData dataWithBytes:text length:strlen(text)];
}

static const struct {
    const char *name;
    void (*check)(void);
} cases[] = {
    {"making", checkMaking},
    {"values", checkValues},
    {"text", checkText},
    {"errors", checkErrors},
    {"migrations", checkMigrations},
    {"blocks", checkBlocks},
    {"foreign-items", checkForeignItems},
    {"without-passcode", checkWithoutPasscode},
    {"enclaves", checkEnclaves},
    {"single-prompts", checkSinglePrompts},
    {"locked", checkLocked},
    {"threads", checkThreads},
};

static BOOL run(const char *name) {
    for (size_t index = 0; index < sizeof cases / sizeof cases[0]; index++) {
        if (strcmp(name, cases[index].name) != 0) continue;
        @autoreleasepool {
            cases[index].check();
        }
        return YES;
    }
    return NO;
}

int main(int count, const char *words[]) {
    @autoreleasepool {
        // An unknown or missing case is an error.
        if (count < 2) return 2;
        if (strcmp(words[1], "growth") == 0 && count > 2) {
            checkGrowth(atol(words[2]), count > 3 && strcmp(words[3], "leaking") == 0);
        } else {
            for (int index = 1; index < count; index++) {
                int before = failedCheckCount;
                if (!run(words[index])) return 2;
                printf("  %-18s %s\n", words[index], failedCheckCount == before ? "passed" : "FAILED");
            }
        }
    }
    return failedCheckCount == 0 ? 0 : 1;
}
