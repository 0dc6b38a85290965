import LifecycleCore
import Testing

@Suite("Time spans")
struct TimeSpanTests {
    @Test(
        "a time span is written as systemd writes it",
        arguments: [
            (.zero, "0s"), (.seconds(-3), "0s"), (.nanoseconds(400), "0s"), (.microseconds(400), "400us"),
            (.microseconds(1499), "1ms"), (.milliseconds(310), "310ms"), (.microseconds(999_600), "1s"),
            (.seconds(5), "5s"), (.milliseconds(5210), "5.210s"), (.milliseconds(5002), "5.002s"),
            (.milliseconds(59_999), "59.999s"), (.microseconds(59_999_600), "1min"), (.seconds(60), "1min"),
            (.seconds(90), "1min 30s"), (.milliseconds(90_600), "1min 31s"), (.seconds(3599), "59min 59s"),
            (.seconds(3600), "1h"), (.seconds(7500), "2h 5min"), (.seconds(86_400), "1d"), (.seconds(273_600), "3d 4h"),
            (.seconds(Int64.max), "11574074d 1h"),
        ] as [(Duration, String)])
    func full(span: Duration, expected: String) {
        #expect(span.timeSpan == expected)
    }

    @Test(
        "a countdown has the requested number of decimal digits",
        arguments: [
            (3210, 1, "3.2s"), (3210, 0, "3s"), (3210, 2, "3.21s"), (40, 1, "0s"), (60, 1, "0.1s"), (310, 1, "0.3s"),
            (9960, 1, "10s"), (28_400, 0, "28s"), (59_600, 0, "1min"), (90_000, 1, "1min 30s"), (3000, 1, "3s"),
        ])
    func countdown(milliseconds: Int, digits: Int, expected: String) {
        #expect(Duration.milliseconds(milliseconds).timeSpan(digits: digits) == expected)
    }
}
