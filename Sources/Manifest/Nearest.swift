/// Returns the known name that is most similar to a misspelled one, for "did you mean …?" hints.
///
/// - Returns: `nil` if more than a third of the letters differ. Of several equally similar names, the first.
package func nearest(_ written: String, among known: [String]) -> String? {
    // The comparison takes quadratic time, and a long name is hardly a typing error.
    guard written.utf8.count <= longestName else { return nil }
    let written = lowercased(written)
    var best: (name: String, distance: Int)?
    for name in known where name.utf8.count <= 2 * longestName {
        // At most a third of the letters may differ, but one always may.
        let allowed = max(1, min(written.count, name.utf8.count) / 3)
        let limit = min(allowed, (best?.distance ?? Int.max) - 1)
        // The distance is at least the difference of the lengths.
        guard abs(written.count - name.utf8.count) <= limit else { continue }
        if let distance = editDistance(written, lowercased(name), upTo: limit) { best = (name, distance) }
    }
    return best?.name
}

/// In bytes. Known names may have twice as many: they include app IDs.
private let longestName = 64

/// Converts ASCII letters only: known names contain no others.
private func lowercased(_ text: String) -> [UInt8] {
    text.utf8.map { (UInt8(ascii: "A")...UInt8(ascii: "Z")).contains($0) ? $0 | 0x20 : $0 }
}

/// The Damerau-Levenshtein distance (optimal string alignment: an exchange of two neighbouring letters is one edit).
///
/// - Returns: `nil` if the distance exceeds `limit`.
private func editDistance(_ a: [UInt8], _ b: [UInt8], upTo limit: Int) -> Int? {
    var before: [Int] = []
    var last = Array(0...b.count)
    var row = last
    // The minimum of the last row. Every later value is at least the minimum of the last two rows.
    var minimum = 0
    for i in a.indices {
        row[0] = i + 1
        var rowMinimum = i + 1
        for j in b.indices {
            var cost = min(last[j + 1] + 1, row[j] + 1, last[j] + (a[i] == b[j] ? 0 : 1))
            if i > 0, j > 0, a[i] == b[j - 1], a[i - 1] == b[j] { cost = min(cost, before[j - 1] + 1) }
            row[j + 1] = cost
            rowMinimum = min(rowMinimum, cost)
        }
        guard min(minimum, rowMinimum) <= limit else { return nil }
        minimum = rowMinimum
        (before, last, row) = (last, row, before.isEmpty ? last : before)
    }
    return last[b.count] <= limit ? last[b.count] : nil
}
