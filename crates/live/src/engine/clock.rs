//! The run's clock: nanoseconds since its start on the monotonic clock of the system.

use raidlab_types::Instant;

/// Started once a stage; read once a turn of the loop.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Clock(std::time::Instant);

impl Clock {
    pub fn start() -> Clock {
        Clock(std::time::Instant::now())
    }

    #[inline]
    pub fn now(&self) -> Instant {
        Instant::from_ns(self.0.elapsed().as_nanos() as u64)
    }
}
