/// The events of the app, one after the other. `App.events` describes them.
public struct AppEvents: AsyncSequence, Sendable {
    let app: App

    /// Makes an iterator, as `for await` does.
    public func makeAsyncIterator() -> AsyncIterator { AsyncIterator(app: app) }

    /// Gives the events, and answers each when the next one is asked for.
    public struct AsyncIterator: AsyncIteratorProtocol {
        private let current: Current

        init(app: App) { current = Current(app) }

        /// Answers the event before, and waits for the next one.
        ///
        /// - Returns: `nil` if the app has to end, or the task was cancelled.
        public mutating func next() async -> AppEvent? { await next(isolation: nil) }

        /// As `next()`, on the caller's actor.
        public mutating func next(isolation actor: isolated (any Actor)?) async -> AppEvent? {
            await current.next(isolation: actor)
        }
    }

    /// The event that the loop handles now.
    private final class Current {
        private let app: App
        private var delivery: Connection.Delivery?

        init(_ app: App) { self.app = app }

        // The loop is left: what it was handling is handled.
        deinit { finish() }

        func next(isolation actor: isolated (any Actor)?) async -> AppEvent? {
            finish()
            app.start()
            delivery = await app.connection.nextDelivery()
            if delivery == nil, app.connection.hasEnded { await app.connection.flushAsync() }
            return delivery?.event
        }

        private func finish() {
            if let delivery = exchange(&delivery, nil) { app.finish(delivery) }
        }
    }
}
