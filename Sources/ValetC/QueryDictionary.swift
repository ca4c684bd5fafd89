// SPDX-License-Identifier: Apache-2.0
internal import CValet
internal import Foundation

/// The dictionary that a list of entries stands for.
///
/// - Throws: Also for what no dictionary can say: a name twice, a date that is none.
func queryDictionary(_ entries: UnsafePointer<valet_query_entry>?, _ count: Int) throws(CallFailure) -> [String: AnyHashable] {
    guard count >= 0 else { throw CallFailure(valet_error_invalid_length) }
    guard unsafe entries != nil || count == 0 else { throw CallFailure(valet_error_null_argument) }
    var query: [String: AnyHashable] = [:]
    // As many entries as the caller says are there.
    for index in 0..<count {
        guard let entry = unsafe entries?[index] else { throw CallFailure(valet_error_null_argument) }
        let name = try unsafe Input.text(entry.name, -1)
        guard query[name] == nil else { throw CallFailure(valet_error_invalid_query) }
        query[name] = try unsafe queryValue(entry)
    }
    return query
}

private func queryValue(_ entry: valet_query_entry) throws(CallFailure) -> AnyHashable {
    switch unsafe Int(entry.type) {
    case valet_value_text: return try unsafe Input.text(entry.bytes?.assumingMemoryBound(to: CChar.self), entry.length)
    case valet_value_bytes: return try unsafe Data(Input.bytes(entry.bytes, entry.length))
    case valet_value_number:
        guard let number = unsafe Int(exactly: entry.number) else { throw CallFailure(valet_error_invalid_query) }
        return number
    case valet_value_boolean: return unsafe entry.number != 0
    case valet_value_date:
        guard unsafe entry.seconds.isFinite else { throw CallFailure(valet_error_invalid_query) }
        return unsafe Date(timeIntervalSince1970: entry.seconds)
    default: throw CallFailure(valet_error_unknown_constant)
    }
}
