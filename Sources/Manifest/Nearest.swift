/// The known name that is most like what was written, if any is like it: for “did you mean …?”. Of two that are as like,
/// the first.
package func nearest(_ written: String, among known: [String]) -> String? {
    // Nothing that long is a slip of the finger, and the comparison is quadratic.
    guard written.utf8.count <= longestName else { return nil }
    let written = lowercased(written)
    var best: (name: String, distance: Int)?
    for name in known where name.utf8.count <= 2 * longestName {
        // A third of the letters may be wrong, and one always.
        let most = max(1, min(written.count, name.utf8.count) / 3)
        let enough = min(most, (best?.distance ?? Int.max) - 1)
        // As many letters as one has more must be put in.
        guard abs(written.count - name.utf8.count) <= enough else { continue }
        if let distance = editDistance(written, lowercased(name), upTo: enough) { best = (name, distance) }
    }
    return best?.name
}

/// In bytes; IDs, which are compared too, may have twice as many.
private let longestName = 64

/// ASCII's letters: no name that is known has others.
private func lowercased(_ text: String) -> [UInt8] {
    text.utf8.map { (UInt8(ascii: "A")...UInt8(ascii: "Z")).contains($0) ? $0 | 0x20 : $0 }
}

/// Damerau and Levenshtein's, with neighbours exchanged as one edit; `nil`: more than `enough`.
private func editDistance(_ a: [UInt8], _ b: [UInt8], upTo enough: Int) -> Int? {
    var before: [Int] = []
    var last = Array(0...b.count)
    var row = last
    // The least of the last row: all that comes builds on it or on the one before.
    var least = 0
    for i in a.indices {
        row[0] = i + 1
        var leastOfRow = i + 1
        for j in b.indices {
            var cost = min(last[j + 1] + 1, row[j] + 1, last[j] + (a[i] == b[j] ? 0 : 1))
            if i > 0, j > 0, a[i] == b[j - 1], a[i - 1] == b[j] { cost = min(cost, before[j - 1] + 1) }
            row[j + 1] = cost
            leastOfRow = min(leastOfRow, cost)
        }
        guard min(least, leastOfRow) <= enough else { return nil }
        least = leastOfRow
        (before, last, row) = (last, row, before.isEmpty ? last : before)
    }
    return last[b.count] <= enough ? last[b.count] : nil
}
