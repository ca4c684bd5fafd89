/* SPDX-License-Identifier: Apache-2.0 */

/// A stub of Apple's Foundation, for compiling the classes as on Apple platforms: with their runtime, with automatic reference counting, and as a
/// module. It declares the parts that the classes use, as Apple documents them. It cannot be linked.
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef signed char BOOL;
#define YES __objc_yes
#define NO __objc_no
#define nil NULL

typedef long NSInteger;
typedef unsigned long NSUInteger;
typedef unsigned short unichar;
typedef double NSTimeInterval;
typedef struct {
    NSUInteger location;
    NSUInteger length;
} NSRange;

#define NS_ENUM(type, name) enum name : type name; enum __attribute__((enum_extensibility(open))) name : type
#define NS_ASSUME_NONNULL_BEGIN _Pragma("clang assume_nonnull begin")
#define NS_ASSUME_NONNULL_END _Pragma("clang assume_nonnull end")

NS_ASSUME_NONNULL_BEGIN

static inline NSRange NSMakeRange(NSUInteger location, NSUInteger length) {
    return (NSRange){location, length};
}

@class NSData;
@class NSString;

enum : NSUInteger { NSUTF8StringEncoding = 4 };

@protocol NSObject
- (BOOL)isEqual:(id)object;
- (BOOL)isKindOfClass:(Class)aClass;
#if !__has_feature(objc_arc)
- (instancetype)retain;
- (oneway void)release;
- (instancetype)autorelease;
#endif
- (NSString *)description;
@property (readonly) NSUInteger hash;
@end

@protocol NSCopying
@end

__attribute__((objc_root_class)) @interface NSObject <NSObject>
+ (instancetype)alloc;
+ (instancetype)new;
+ (Class)class;
- (instancetype)init;
- (void)dealloc;
- (Class)class;
- (id)copy;
@end

@interface NSString : NSObject <NSCopying>
+ (instancetype)stringWithFormat:(NSString *)format, ...;
- (instancetype)initWithCharacters:(const unichar *)characters length:(NSUInteger)length;
- (NSUInteger)length;
- (void)getCharacters:(unichar *)buffer range:(NSRange)range;
- (NSString *)substringFromIndex:(NSUInteger)index;
- (NSString *)stringByAppendingString:(NSString *)string;
- (nullable NSData *)dataUsingEncoding:(NSUInteger)encoding;
@end

@interface NSConstantString : NSString
@end

@interface NSData : NSObject <NSCopying>
+ (instancetype)data;
+ (instancetype)dataWithBytes:(nullable const void *)bytes length:(NSUInteger)length;
- (NSUInteger)length;
- (const void *)bytes __attribute__((objc_returns_inner_pointer));
@end

@interface NSNumber : NSObject <NSCopying>
+ (NSNumber *)numberWithBool:(BOOL)value;
+ (NSNumber *)numberWithLongLong:(long long)value;
- (BOOL)boolValue;
- (long long)longLongValue;
- (BOOL)isEqualToNumber:(NSNumber *)number;
@end

@interface NSDate : NSObject <NSCopying>
- (NSTimeInterval)timeIntervalSince1970;
@end

typedef struct {
    unsigned long state;
    id __unsafe_unretained _Nullable *_Nullable itemsPtr;
    unsigned long *_Nullable mutationsPtr;
    unsigned long extra[5];
} NSFastEnumerationState;

@interface NSDictionary<__covariant KeyType, __covariant ObjectType> : NSObject <NSCopying>
+ (instancetype)dictionaryWithObject:(ObjectType)object forKey:(KeyType)key;
- (NSUInteger)count;
- (nullable ObjectType)objectForKey:(KeyType)key;
- (NSUInteger)countByEnumeratingWithState:(NSFastEnumerationState *)state
                                  objects:(id __unsafe_unretained _Nullable[_Nonnull])buffer
                                    count:(NSUInteger)length;
@end

@interface NSMutableDictionary<KeyType, ObjectType> : NSDictionary <KeyType, ObjectType>
+ (instancetype)dictionary;
- (void)setObject:(ObjectType)object forKey:(KeyType)key;
@end

@interface NSSet<__covariant ObjectType> : NSObject <NSCopying>
- (NSUInteger)count;
@end

@interface NSMutableSet<ObjectType> : NSSet <ObjectType>
+ (instancetype)set;
- (void)addObject:(ObjectType)object;
@end

extern NSString *const NSLocalizedDescriptionKey;
extern NSString *const NSLocalizedFailureReasonErrorKey;

@interface NSError : NSObject <NSCopying>
+ (instancetype)errorWithDomain:(NSString *)domain code:(NSInteger)code userInfo:(nullable NSDictionary<NSString *, id> *)userInfo;
- (NSString *)domain;
- (NSInteger)code;
@end

NS_ASSUME_NONNULL_END
