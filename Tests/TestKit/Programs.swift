import Glibc

/// The folder where `swift build` puts the programs: that of the test bundle.
package func programFolder() -> String {
    // The tests run in a bundle below the products folder, or in a runner of the toolchain: the bundle is an argument.
    for argument in CommandLine.arguments where argument.hasSuffix(".xctest") {
        if let slash = argument.lastIndex(of: "/") { return String(argument[..<slash]) }
    }
    let own = realpath("/proc/self/exe", nil)
    defer { free(own) }
    let path = own.map { String(cString: $0) } ?? ""
    return path.lastIndex(of: "/").map { String(path[..<$0]) } ?? "."
}
