// SPDX-License-Identifier: Apache-2.0

/// A storage that devices see at different times: what one creates becomes visible to another some day.
package struct SimulatedStorage {
    package private(set) var objects: [String: [UInt8]] = [:]
    /// The names that each device sees.
    ///
    /// A name may be visible after its object was removed.
    private var views: [[String]]
    private var visible: [Set<String>]
    /// The names in the order of creation, by which views catch up.
    private(set) var names: [String] = []
    private(set) var changeCount = 0

    init(deviceCount: Int) {
        views = Array(repeating: [], count: deviceCount)
        visible = Array(repeating: [], count: deviceCount)
    }

    mutating func addView() {
        views.append([])
        visible.append([])
    }

    mutating func create(_ name: String, _ bytes: [UInt8], by device: Int) {
        if objects[name] == nil {
            objects[name] = bytes
            names.append(name)
            changeCount += 1
        }
        show(name, to: device)
    }

    mutating func remove(_ name: String) {
        if objects.removeValue(forKey: name) != nil {
            names.removeAll { $0 == name }
            changeCount += 1
        }
    }

    /// The objects as of now.
    var snapshot: [(name: String, bytes: [UInt8])] { names.compactMap { name in objects[name].map { (name, $0) } } }

    /// Puts back an object that was removed.
    ///
    /// A device that has seen it sees it again.
    mutating func putBack(_ name: String, _ bytes: [UInt8]) {
        guard objects[name] == nil else { return }
        objects[name] = bytes
        names.append(name)
        changeCount += 1
    }

    mutating func show(_ name: String, to device: Int) {
        if visible[device].insert(name).inserted { views[device].append(name) }
    }

    mutating func showAll(to device: Int) {
        for name in names { show(name, to: device) }
    }

    /// Takes a device's view back to an earlier one.
    mutating func setView(_ names: [String], of device: Int) {
        views[device] = names
        visible[device] = Set(names)
    }

    func view(of device: Int) -> [String] { views[device] }

    func list(_ folder: String, for device: Int) -> [String] {
        views[device].filter { $0.utf8.first == folder.utf8.first && objects[$0] != nil }
    }

    func read(_ name: String, for device: Int) -> [UInt8]? { visible[device].contains(name) ? objects[name] : nil }
}
