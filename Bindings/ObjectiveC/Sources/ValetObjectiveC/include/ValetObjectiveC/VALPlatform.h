/* SPDX-License-Identifier: Apache-2.0 */
/* What a platform lacks. */
#ifndef VAL_PLATFORM_H
#define VAL_PLATFORM_H

#if __has_include(<TargetConditionals.h>)
#include <TargetConditionals.h>
#endif

/// 0 on tvOS and watchOS, where one prompt cannot cover several reads: there is no `VALSinglePromptSecureEnclaveValet`, as in Swift.
#if (defined(TARGET_OS_TV) && TARGET_OS_TV) || (defined(TARGET_OS_WATCH) && TARGET_OS_WATCH)
#define VAL_HAS_SINGLE_PROMPT 0
#else
#define VAL_HAS_SINGLE_PROMPT 1
#endif

#endif
