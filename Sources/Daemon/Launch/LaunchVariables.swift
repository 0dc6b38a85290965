import LifecycleCore

/// The variables that a request passes to one launch (`Launch`, option `environment`).
enum LaunchVariables {
    /// Why variables are refused, as a sentence; `nil`: they are accepted. They are not quoted beyond their names: a value may
    /// be a password.
    static func problem(of variables: [String]) -> String? {
        guard variables.count <= Launch.maximumVariables else {
            return "Too many variables: \(variables.count); expected at most \(Launch.maximumVariables)."
        }
        let bytes = variables.reduce(0) { $0 + $1.utf8.count + 1 }
        guard bytes <= Launch.maximumVariableBytes else {
            return "Variables of \(bytes) bytes are too long; expected at most \(Launch.maximumVariableBytes)."
        }
        for (position, variable) in variables.enumerated() {
            let name = variable.utf8.prefix { $0 != UInt8(ascii: "=") }
            guard name.endIndex < variable.utf8.endIndex, isName(name), !variable.utf8.contains(0) else {
                return
                    "Invalid variable \(position + 1); expected NAME=value, with a name of letters, digits and '_' that "
                    + "does not start with a digit."
            }
            let text = String(Substring(name))
            if LaunchEnvironment.isOwn(text) {
                return "The variable \(text) cannot be passed: greenroomd sets it."
            }
        }
        return nil
    }

    private static func isName(_ name: Substring.UTF8View) -> Bool {
        guard let first = name.first, !isDigit(first) else { return false }
        return name.allSatisfy { isDigit($0) || isLetter($0) || $0 == UInt8(ascii: "_") }
    }

    private static func isDigit(_ byte: UInt8) -> Bool { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) }
    private static func isLetter(_ byte: UInt8) -> Bool {
        (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(byte | 0x20)
    }
}
