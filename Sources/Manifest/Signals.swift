/// Parses a signal's name or number: `SIGUSR1`, `USR1`, `10`, `SIGRTMIN+1`, `RTMAX-2` (signal(7)).
func parseSignal(_ text: String) -> Int32? {
    guard isASCII(text) else { return nil }
    if let number = parseNumber(text, in: 1...Int(lastRealTime)) { return Int32(number) }
    let name = text.hasPrefix("SIG") ? String(text.dropFirst(3)) : text
    if let number = signalNumbers[name] { return number }
    for (prefix, sign, base) in [("RTMIN", "+", firstRealTime), ("RTMAX", "-", lastRealTime)]
    where name.hasPrefix(prefix) {
        let rest = name.dropFirst(prefix.count)
        if rest.isEmpty { return base }
        guard rest.hasPrefix(sign), rest.dropFirst().utf8.first != UInt8(ascii: "-"),
            let offset = parseNumber(String(rest.dropFirst()), in: 0...Int(lastRealTime - firstRealTime))
        else { return nil }
        return sign == "+" ? base + Int32(offset) : base - Int32(offset)
    }
    return nil
}

/// Parses a signal that a program can catch: all except SIGKILL, SIGSTOP, and 32 and 33, which glibc reserves (nptl(7)).
func parseCatchable(_ text: String) -> Int32? {
    parseSignal(text).flatMap { [9, 19, 32, 33].contains($0) ? nil : $0 }
}

/// SIGRTMIN and SIGRTMAX of glibc.
private let firstRealTime: Int32 = 34
private let lastRealTime: Int32 = 64

private let signalNumbers: [String: Int32] = [
    "HUP": 1, "INT": 2, "QUIT": 3, "ILL": 4, "TRAP": 5, "ABRT": 6, "BUS": 7, "FPE": 8, "KILL": 9, "USR1": 10,
    "SEGV": 11, "USR2": 12, "PIPE": 13, "ALRM": 14, "TERM": 15, "STKFLT": 16, "CHLD": 17, "CONT": 18, "STOP": 19,
    "TSTP": 20, "TTIN": 21, "TTOU": 22, "URG": 23, "XCPU": 24, "XFSZ": 25, "VTALRM": 26, "PROF": 27, "WINCH": 28,
    "IO": 29, "POLL": 29, "PWR": 30, "SYS": 31,
]
