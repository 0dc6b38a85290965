@testable import LifecycleCore

/// Tests name apps by number, in the order in which they are registered.
extension AppIndex: ExpressibleByIntegerLiteral {
    package init(integerLiteral number: Int) { self.init(number) }
}
