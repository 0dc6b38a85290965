import ManifestProperties

/// libFuzzer's own `main`, as a function (FuzzerInterface.h). SwiftPM names a program's entry itself, so the library's
/// can't be the one.
@_silgen_name("LLVMFuzzerRunDriver")
private func runFuzzer(
    _ count: UnsafeMutablePointer<CInt>,
    _ arguments: UnsafeMutablePointer<UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>>,
    _ target: @convention(c) (UnsafePointer<UInt8>?, Int) -> CInt
) -> CInt

var count = CommandLine.argc
var arguments = CommandLine.unsafeArgv
_ = runFuzzer(&count, &arguments) { bytes, count in
    let found = violations(Array(UnsafeBufferPointer(start: bytes, count: count)))
    if !found.isEmpty { fatalError(found.joined(separator: "\n")) }
    return 0
}
