/* SPDX-License-Identifier: Apache-2.0 */
#import <Foundation/Foundation.h>
#include <valet.h>

#import "VALText.h"

NS_ASSUME_NONNULL_BEGIN

/// A query as the interface for C takes it. It points into the data of the dictionary it is made from, which must outlive it.
typedef struct {
    /// `valet_success`, or why the dictionary is no query; then there are no entries.
    valet_status status;
    valet_query_entry *_Nullable entries;
    size_t count;
    /// The names, each followed by the text of its value if that is text.
    VALText *_Nullable texts;
} VALQuery;

/// The query that a dictionary stands for.
VALQuery VALQueryMake(NSDictionary *_Nullable dictionary);

/// Wipes and frees a query.
void VALQueryFree(VALQuery *query);

/// Declares a query that is freed when its scope ends, in whatever way.
#define VAL_QUERY(name, dictionary) __attribute__((cleanup(VALQueryFree))) VALQuery name = VALQueryMake(dictionary)

NS_ASSUME_NONNULL_END
