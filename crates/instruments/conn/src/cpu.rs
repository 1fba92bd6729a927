//! CPU time of one future among others on its thread.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use serde::Serialize;

use crate::thread_cpu;

/// What a figure of CPU time covers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum CpuScope {
    /// The polls of this connection's own task: its TLS work, its system calls, and what the kernel
    /// does within them for this thread. That includes softirq work that runs at the end of a system
    /// call (sending over a veth or loopback delivers the packet there), unless the kernel accounts
    /// interrupt time apart (CONFIG_IRQ_TIME_ACCOUNTING). Not included: softirq work on other threads
    /// and processors, and the runtime's own waiting (`epoll_wait`).
    Connection,
    /// Everything that the thread did from the connection's start to its end, the runtime included.
    /// It is this connection's only if nothing else ran on the thread meanwhile.
    Thread,
    /// What the TLS library used, and nothing of TCP or the runtime.
    TlsLibrary,
}

/// A future whose polls are measured by the thread's CPU clock, so that concurrent connections on one
/// thread are told apart. Its output comes with the CPU time that its polls took.
pub struct Metered<F> {
    inner: Pin<Box<F>>,
    spent: Duration,
}

impl<F: Future> Metered<F> {
    /// Measures every poll of `inner`.
    pub fn new(inner: F) -> Self {
        Metered { inner: Box::pin(inner), spent: Duration::ZERO }
    }
}

impl<F: Future> Future for Metered<F> {
    type Output = (F::Output, Duration);

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let started = thread_cpu();
        let polled = self.inner.as_mut().poll(cx);
        self.spent += thread_cpu().saturating_sub(started);
        polled.map(|output| (output, self.spent))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn burn(at_least: Duration) {
        let started = thread_cpu();
        while thread_cpu() - started < at_least {
            std::hint::spin_loop();
        }
    }

    #[tokio::test]
    async fn each_future_is_charged_its_own_polls() {
        const WORK: Duration = Duration::from_millis(5);
        let busy = Metered::new(async {
            for _ in 0..4 {
                burn(WORK);
                tokio::task::yield_now().await;
            }
        });
        let idle = Metered::new(async {
            for _ in 0..4 {
                tokio::task::yield_now().await;
            }
        });
        let (((), busy), ((), idle)) = tokio::join!(busy, idle);
        assert!(busy >= 4 * WORK, "{busy:?}");
        assert!(idle < busy, "{idle:?} {busy:?}");
    }
}
