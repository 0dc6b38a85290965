/// The known name that is most like what was written, if any is like it: for “did you mean …?”.
package func nearest(_ written: String, among known: [String]) -> String? {
    // Nothing that long is a slip of the finger, and the comparison is quadratic.
    guard written.utf8.count <= 64 else { return nil }
    var best: (name: String, distance: Int)?
    for name in known where name.utf8.count <= 128 {
        let distance = editDistance(Array(written.lowercased().utf8), Array(name.lowercased().utf8))
        if distance < best?.distance ?? Int.max { best = (name, distance) }
    }
    guard let best, best.distance <= max(1, min(written.utf8.count, best.name.utf8.count) / 3) else { return nil }
    return best.name
}

/// Damerau and Levenshtein's, with neighbours exchanged as one edit.
private func editDistance(_ a: [UInt8], _ b: [UInt8]) -> Int {
    var before: [Int] = []
    var last = Array(0...b.count)
    for i in 0..<a.count {
        var row = [i + 1]
        for j in 0..<b.count {
            var cost = min(last[j + 1] + 1, row[j] + 1, last[j] + (a[i] == b[j] ? 0 : 1))
            if i > 0, j > 0, a[i] == b[j - 1], a[i - 1] == b[j] { cost = min(cost, before[j - 1] + 1) }
            row.append(cost)
        }
        before = last
        last = row
    }
    return last[b.count]
}
