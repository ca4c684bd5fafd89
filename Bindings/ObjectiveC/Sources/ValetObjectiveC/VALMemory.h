/* SPDX-License-Identifier: Apache-2.0 */
#import <Foundation/Foundation.h>

// The source compiles with and without automatic reference counting, which GCC's runtime does not support.
#if __has_feature(objc_arc)
#define VAL_AUTORELEASE(object) (object)
#define VAL_RETAIN(object) (object)
#define VAL_RELEASE(object) ((void)(object))
#define VAL_SUPER_DEALLOC ((void)0)
#else
#define VAL_AUTORELEASE(object) [(object) autorelease]
#define VAL_RETAIN(object) [(object) retain]
#define VAL_RELEASE(object) [(object) release]
#define VAL_SUPER_DEALLOC [super dealloc]
#endif
