/// Wraps a help text. Lines of a paragraph are joined first. A line that is indented by two spaces begins an item: an option
/// or a verb, and its description in the second column.
package func reflowed(_ text: String, to columns: Int) -> String {
    var reflow = Reflow(columns: columns)
    for line in text.split(separator: "\n", omittingEmptySubsequences: false) { reflow.add(String(line)) }
    return reflow.finish()
}

private struct Reflow {
    /// A paragraph or the description of an item, before it is wrapped.
    private struct Block {
        /// The option or verb; empty for a paragraph.
        var head = ""
        var text = ""
    }

    let columns: Int
    private var block: Block?
    private var lines: [String] = []

    /// The column of descriptions, and that on a narrow screen, where a description is below its head.
    private static let column = 26
    private static let narrowColumn = 6
    /// The fewest columns for a description beside its head.
    private static let narrow = 24

    init(columns: Int) { self.columns = columns }

    mutating func add(_ line: String) {
        let indent = line.prefix { $0 == " " }.count
        let content = String(line.dropFirst(indent))
        if content.isEmpty {
            flush()
            lines.append("")
        } else if indent == 2 {
            flush()
            block = item(content)
        } else if let open = block, indent > 2 || open.head.isEmpty {
            block = Block(head: open.head, text: open.text.isEmpty ? content : open.text + " " + content)
        } else {
            flush()
            block = Block(text: content)
        }
    }

    /// Splits an item at its first two spaces, or at the last column of the heads.
    private func item(_ content: String) -> Block {
        let characters = Array(content)
        for index in characters.indices.dropLast() where characters[index] == " " && characters[index + 1] == " " {
            let text = characters[index...].drop { $0 == " " }
            return Block(head: String(characters[..<index]), text: String(text))
        }
        return Block(head: content)
    }

    private mutating func flush() {
        guard let block else { return }
        self.block = nil
        guard !block.head.isEmpty else {
            lines += wrapped(block.text, to: columns)
            return
        }
        let head = "  " + block.head
        let isNarrow = columns - Self.column < Self.narrow || displayWidth(head) >= Self.column
        let indent = isNarrow ? Self.narrowColumn : Self.column
        let gap = String(repeating: " ", count: indent)
        var text = wrapped(block.text, to: max(1, columns - indent)).map { gap + $0 }
        if block.text.isEmpty { text = [] }
        if isNarrow || text.isEmpty {
            lines += wrapped(block.head, to: max(1, columns - 2)).map { "  " + $0 } + text
        } else {
            text[0] = head.padded(to: Self.column) + text[0].dropFirst(Self.column)
            lines += text
        }
    }

    mutating func finish() -> String {
        flush()
        // The last line feed of the text has become an empty line.
        return lines.joined(separator: "\n")
    }
}
