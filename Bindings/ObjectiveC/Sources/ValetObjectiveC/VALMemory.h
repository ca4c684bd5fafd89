/* SPDX-License-Identifier: Apache-2.0 */
#import <Foundation/Foundation.h>

// One source with and without automatic reference counting: GCC's runtime, which GNUstep has on Debian, knows only the latter.
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
