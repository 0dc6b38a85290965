import Glibc
import TestKit
import Testing

/// A folder for one test, removed with its contents.
final class TemporaryFolder {
    let path: String

    init() throws {
        path = makeTemporaryFolder("posix-tests")
    }

    deinit { removeTree(path) }
}
