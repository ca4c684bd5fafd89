// SPDX-License-Identifier: Apache-2.0
import Valet

// Consumer fill|get|contains|absent|set|new|list COUNT: repeats one operation on the keychain in KEYCHAIN_HOME. The difference of two counts is
// the cost of the operation without that of starting the process and opening the keychain.
let arguments = CommandLine.arguments
struct BadArguments: Error {}
guard arguments.count == 3, let count = Int(arguments[2]), let identifier = Identifier(nonEmpty: "Instructions") else {
    throw BadArguments()
}
let valet = Valet.valet(with: identifier, accessibility: .afterFirstUnlock)
let keys = (0..<1_000).map { "key number \($0)" }
let value = "a value of thirty-two characters"

switch arguments[1] {
case "fill": for key in keys { try valet.setString(value, forKey: key) }
case "get": for index in 0..<count { _ = try valet.string(forKey: keys[index * 37 % keys.count]) }
case "contains": for index in 0..<count { _ = try valet.containsObject(forKey: keys[index * 37 % keys.count]) }
case "absent": for index in 0..<count { _ = try valet.containsObject(forKey: "absent \(index)") }
case "set": for index in 0..<count { try valet.setString("\(value) \(index)", forKey: keys[index * 37 % keys.count]) }
case "new": for index in 0..<count { try valet.setString(value, forKey: "new \(index)") }
case "list": for _ in 0..<count { _ = try valet.allKeys() }
default: throw BadArguments()
}
