/* SPDX-License-Identifier: Apache-2.0 */
#import <Foundation/Foundation.h>
#include <valet.h>

#import "VALText.h"

NS_ASSUME_NONNULL_BEGIN

/// A query for the C interface. It points into the data of its dictionary, which must outlive it.
typedef struct {
    /// `valet_success`, or the reason why the dictionary is not a query; then there are no entries.
    valet_status status;
    valet_query_entry *_Nullable entries;
    size_t count;
    /// The names, each followed by the value if that is a string.
    VALText *_Nullable texts;
} VALQuery;

/// The query of a dictionary.
VALQuery VALQueryMake(NSDictionary *_Nullable dictionary);

/// Wipes and frees a query.
void VALQueryFree(VALQuery *query);

/// Declares a query that is freed when its scope ends.
#define VAL_QUERY(name, dictionary) __attribute__((cleanup(VALQueryFree))) VALQuery name = VALQueryMake(dictionary)

NS_ASSUME_NONNULL_END
