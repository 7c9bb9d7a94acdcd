//! Independent computations at the same time.

use std::thread::{ScopedJoinHandle, scope};

/// The value of `f` for each item, each in its own thread. Results do not depend on the number of processors.
pub(crate) fn in_parallel<I: Send, T: Send, const COUNT: usize>(
    items: [I; COUNT],
    f: impl Fn(I) -> T + Sync,
) -> [T; COUNT] {
    scope(|scope| {
        let f = &f;
        items.map(|item| scope.spawn(move || f(item))).map(joined)
    })
}

/// The values of two functions, computed at the same time.
pub(crate) fn both<A, B: Send>(one: impl FnOnce() -> A, other: impl FnOnce() -> B + Send) -> (A, B) {
    scope(|scope| {
        let other = scope.spawn(other);
        (one(), joined(other))
    })
}

fn joined<T>(thread: ScopedJoinHandle<'_, T>) -> T {
    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}
