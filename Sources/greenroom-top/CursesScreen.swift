import CNcurses
import Glibc

/// The terminal, through ncurses: what of a picture differs from the last one is sent, so that nothing flickers.
final class CursesScreen {
    private var isOpen = true

    /// - Parameter hasColor: whether colours are used if the terminal has them.
    /// - Returns: `nil` if terminfo does not know the terminal, or it cannot move its cursor.
    init?(hasColor: Bool) {
        // ncurses would prefer them to the real size.
        unsetenv("LINES")
        unsetenv("COLUMNS")
        guard cncurses_start(hasColor ? 1 : 0) == 0 else { return nil }
    }

    deinit { close() }

    /// Gives the terminal back.
    func close() {
        if isOpen { cncurses_end() }
        isOpen = false
    }

    var size: (rows: Int, columns: Int) {
        var (rows, columns): (Int32, Int32) = (0, 0)
        cncurses_size(&rows, &columns)
        return (Int(rows), Int(columns))
    }

    /// - Parameter everything: also what has not changed.
    func show(_ picture: Picture, everything: Bool) {
        cncurses_begin()
        for (row, line) in picture.lines.enumerated() {
            var column = 0
            for part in line.parts {
                let (attributes, color) = part.style.attributes
                let reverse = line.isReversed ? UInt32(CNCURSES_REVERSE) : 0
                let scalars = part.text.unicodeScalars.map(\.value)
                cncurses_add(Int32(row), Int32(column), scalars, Int32(scalars.count), attributes | reverse, color)
                column += displayWidth(part.text)
            }
        }
        cncurses_show(everything ? 1 : 0)
    }

    /// The next key that was typed; `nil`: there is none.
    func nextKey() -> Key? {
        while true {
            var number: UInt32 = 0
            switch cncurses_key(&number) {
            case Int32(CNCURSES_CHARACTER):
                if let key = Self.key(character: number) { return key }
            case Int32(CNCURSES_FUNCTION):
                if let key = Self.key(function: Int32(bitPattern: number)) { return key }
            default: return nil
            }
        }
    }

    private static func key(character: UInt32) -> Key? {
        switch character {
        case 0x0A, 0x0D: .enter
        case 0x1B: .escape
        case 0x08, 0x7F: .backspace
        default: Unicode.Scalar(character).map { .character($0) }
        }
    }

    private static func key(function: Int32) -> Key? {
        switch function {
        case KEY_UP: .up
        case KEY_DOWN: .down
        case KEY_LEFT: .left
        case KEY_RIGHT: .right
        case KEY_PPAGE: .pageUp
        case KEY_NPAGE: .pageDown
        case KEY_HOME: .home
        case KEY_END: .end
        case KEY_ENTER: .enter
        case KEY_BACKSPACE: .backspace
        case KEY_RESIZE: .resize
        default: nil
        }
    }
}

extension Style {
    /// The attributes, and a colour of ECMA-48: 1 red, 2 green, 3 yellow, 5 magenta, 6 cyan.
    fileprivate var attributes: (UInt32, Int32) {
        let bold = UInt32(CNCURSES_BOLD)
        return switch self {
        case .plain: (0, 0)
        case .bold: (bold, 0)
        case .faint: (UInt32(CNCURSES_DIM), 0)
        case .boldGreen: (bold, 2)
        case .green: (0, 2)
        case .yellow: (0, 3)
        case .cyan: (0, 6)
        case .magenta: (0, 5)
        case .red: (0, 1)
        }
    }
}
