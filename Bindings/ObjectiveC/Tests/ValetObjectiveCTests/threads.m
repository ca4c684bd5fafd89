/* SPDX-License-Identifier: Apache-2.0 */
#import "Checks.h"

enum { threadCount = 8, roundCount = 25 };

/// The work of one thread.
@interface Worker : NSObject {
  @private
    VALValet *_shared;
    int _number;
    NSConditionLock *_running;
}
- (instancetype)initWithValet:(VALValet *)shared number:(int)number running:(NSConditionLock *)running;
- (void)work:(id)nothing;
@end

@implementation Worker

- (instancetype)initWithValet:(VALValet *)shared number:(int)number running:(NSConditionLock *)running {
    self = [super init];
    if (self != nil) {
        _shared = [shared retain];
        _number = number;
        _running = [running retain];
    }
    return self;
}

- (void)dealloc {
    [_shared release];
    [_running release];
    [super dealloc];
}

/// A shared object and one of this thread, with equal sandboxes; a shared key and one of this thread.
- (void)work:(id)nothing {
    (void)nothing;
    @autoreleasepool {
        [self work];
    }
    [_running lock];
    [_running unlockWithCondition:[_running condition] - 1];
}

- (void)work {
    NSString *key = [NSString stringWithFormat:@"thread %d", _number];
    for (int round = 0; round < roundCount; round++) {
        @autoreleasepool {
            VALValet *own = [VALValet valetWithIdentifier:@"Threads" accessibility:VALAccessibilityWhenUnlocked];
            NSString *value = [NSString stringWithFormat:@"%d in round %d", _number, round];
            CHECK_DONE([_shared setString:value forKey:key error:failure]);
            CHECK([[own stringForKey:key error:NULL] isEqual:value]);
            CHECK_DONE([own setString:value forKey:@"of all" error:failure]);
            CHECK([[_shared stringForKey:@"of all" error:NULL] length] >= [@"0 in round 0" length]);
            CHECK_ERROR([own stringForKey:@"absent" error:failure], VALKeychainErrorDomain, VALKeychainErrorItemNotFound);
            CHECK([own isEqual:_shared] && [[own allKeysWithError:NULL] containsObject:key]);
        }
    }
}

@end

void checkThreads(void) {
    VALValet *shared = emptyValet(@"Threads");
    NSConditionLock *running = [[[NSConditionLock alloc] initWithCondition:threadCount] autorelease];
    for (int number = 0; number < threadCount; number++) {
        Worker *worker = [[[Worker alloc] initWithValet:shared number:number running:running] autorelease];
        [NSThread detachNewThreadSelector:@selector(work:) toTarget:worker withObject:nil];
    }
    BOOL isDone = [running lockWhenCondition:0 beforeDate:[NSDate dateWithTimeIntervalSinceNow:120]];
    CHECK(isDone);
    if (isDone) [running unlock];
    CHECK([[shared allKeysWithError:NULL] count] == threadCount + 1);
}
