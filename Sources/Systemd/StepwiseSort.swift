/// Sorts an array in steps: at once, 10,000 names take some 10 ms.
///
/// A merge sort from the bottom up: first short blocks are sorted, then neighbouring blocks are merged until one is left.
package struct StepwiseSort<Element: Comparable> {
    /// The elements; sorted once `advance` has returned false.
    package private(set) var elements: [Element]
    /// The length of the sorted blocks; 0: they are still being sorted.
    private var width = 0
    /// While the blocks are sorted: the end of those that are.
    private var sorted = 0
    /// The blocks of this round that are merged so far.
    private var merged: [Element] = []
    /// The next element of the two blocks that are being merged.
    private var left = 0
    private var right = 0
    /// The start of these two.
    private var start = 0

    /// How many elements a step sorts or moves.
    package static var elementsPerStep: Int { 256 }

    package init(_ elements: [Element]) {
        self.elements = elements
    }

    /// Does the next step.
    /// - Returns: whether there is more to do.
    package mutating func advance() -> Bool {
        if width == 0 {
            let end = min(elements.count, sorted + Self.elementsPerStep)
            elements[sorted..<end].sort()
            sorted = end
            if sorted == elements.count { beginRound(Self.elementsPerStep) }
        } else {
            merge()
        }
        return width == 0 || width < elements.count
    }

    private mutating func beginRound(_ width: Int) {
        self.width = width
        merged = []
        merged.reserveCapacity(elements.count)
        beginPair(0)
    }

    private mutating func beginPair(_ start: Int) {
        self.start = start
        left = start
        right = min(elements.count, start + width)
    }

    private mutating func merge() {
        for _ in 0..<Self.elementsPerStep {
            let middle = min(elements.count, start + width)
            let end = min(elements.count, start + 2 * width)
            if left < middle, right == end || elements[left] <= elements[right] {
                merged.append(elements[left])
                left += 1
            } else if right < end {
                merged.append(elements[right])
                right += 1
            }
            if left == middle, right == end { beginPair(end) }
            if merged.count == elements.count { break }
        }
        guard merged.count == elements.count else { return }
        elements = merged
        beginRound(2 * width)
    }
}
