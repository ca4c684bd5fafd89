/* SPDX-License-Identifier: Apache-2.0 */
/// Helpers for the test cases.
#import <ValetObjectiveC/ValetObjectiveC.h>

#include <stdio.h>

/// The number of failed checks on all threads.
extern int failedCheckCount;

/// Continues after a failure. Each printed line is a failure.
#define CHECK(condition)                                                   \
    do {                                                                   \
        if (!(condition)) {                                                \
            __atomic_fetch_add(&failedCheckCount, 1, __ATOMIC_SEQ_CST);    \
            printf("%s:%d: not so: %s\n", __FILE__, __LINE__, #condition); \
        }                                                                  \
    } while (0)

/// Evaluates a call with the error pointer `failure`, and checks that it returns NO or nil and sets this error.
#define CHECK_ERROR(call, expectedDomain, expectedCode)                                                                            \
    do {                                                                                                                           \
        NSError *received = nil;                                                                                                   \
        NSError **failure = &received;                                                                                             \
        BOOL isFailed = !(call);                                                                                                   \
        BOOL isExpected = [[received domain] isEqual:(expectedDomain)] && [received code] == (expectedCode);                       \
        if (!isFailed || !isExpected || [[received localizedDescription] length] == 0) {                                           \
            __atomic_fetch_add(&failedCheckCount, 1, __ATOMIC_SEQ_CST);                                                            \
            printf("%s:%d: %s gives %s, not %s\n", __FILE__, __LINE__, #call, [[received description] UTF8String], #expectedCode); \
        }                                                                                                                          \
    } while (0)

/// Evaluates a call with the error pointer `failure`, and checks that it returns YES or an object and sets no error.
#define CHECK_DONE(call)                                                                                            \
    do {                                                                                                            \
        NSError *received = nil;                                                                                    \
        NSError **failure = &received;                                                                              \
        if (!(call) || received != nil) {                                                                           \
            __atomic_fetch_add(&failedCheckCount, 1, __ATOMIC_SEQ_CST);                                             \
            printf("%s:%d: %s gives %s\n", __FILE__, __LINE__, #call, [[received description] UTF8String]);         \
        }                                                                                                           \
    } while (0)

/// A valet of this program without values.
VALValet *emptyValet(NSString *identifier);

/// Bytes from a text.
NSData *bytes(const char *text);

void checkMaking(void);
void checkValues(void);
void checkText(void);
void checkErrors(void);
void checkMigrations(void);
void checkBlocks(void);
void checkForeignItems(void);
void checkWithoutPasscode(void);
void checkEnclaves(void);
void checkSinglePrompts(void);
void checkLocked(void);
void checkThreads(void);
void checkGrowth(long rounds, BOOL isLeaking);
