// SPDX-License-Identifier: Apache-2.0

/// The machine of a measurement.
package struct Machine: Codable, Equatable, Sendable {
    package let processor: String
    package let coreCount: Int
    package let memoryGigabytes: Double
    package let kernel: String
    package let operatingSystem: String
    /// The file system of the folder with all measured data.
    package let fileSystem: String

    package init(
        processor: String, coreCount: Int, memoryGigabytes: Double, kernel: String, operatingSystem: String, fileSystem: String
    ) {
        self.processor = processor
        self.coreCount = coreCount
        self.memoryGigabytes = memoryGigabytes
        self.kernel = kernel
        self.operatingSystem = operatingSystem
        self.fileSystem = fileSystem
    }

    package var summary: String {
        "\(processor), \(coreCount) cores, \(Quantity.short(memoryGigabytes)) GB, Linux \(kernel), \(operatingSystem), \(fileSystem)"
    }
}
