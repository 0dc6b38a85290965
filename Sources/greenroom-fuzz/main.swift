import ManifestProperties

/// Runs libFuzzer's driver (FuzzerInterface.h). libFuzzer's own `main` cannot be used: SwiftPM generates the program's entry
/// point.
@_silgen_name("LLVMFuzzerRunDriver")
private func runFuzzer(
    _ count: UnsafeMutablePointer<CInt>,
    _ arguments: UnsafeMutablePointer<UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>>,
    _ target: @convention(c) (UnsafePointer<UInt8>?, Int) -> CInt
) -> CInt

var count = CommandLine.argc
var arguments = CommandLine.unsafeArgv
_ = runFuzzer(&count, &arguments) { bytes, count in
    let violated = violations(Array(UnsafeBufferPointer(start: bytes, count: count)))
    if !violated.isEmpty { fatalError(violated.joined(separator: "\n")) }
    return 0
}
