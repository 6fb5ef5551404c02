//! A host with one processor on which nothing takes time but to look at its clock: user-mode Linux in virtual time, the lab
//! in which real md is a witness. There it decides what md's thread finds together.
//!
//! - A look takes so long ([`HostSpec::look_us`](crate::config::HostSpec)), and the clock goes in steps of as much. A worker
//!   looks once for each request that it gives a device after another has completed; md's thread once when it begins to
//!   gather, and again whenever that is handed on early; a client three times between an answer and its next request.
//! - Workers go first, then md's thread, then clients in turn, then md's thread again with what they have asked for. Whoever
//!   runs is not interrupted but by completions, of which md's thread takes up what it has not finished with.
//! - Completions are timers: an interrupt comes when the clock has passed one, or if it was set too early half a microsecond
//!   later, and serves all that the clock has passed. So two that are a look apart are mostly heard of together.
//!
//! Reference: `timer_read` and `itimer_next_event` of Linux 6.12, arch/um/kernel/time.c; `blk_time_get_ns`, block/blk.h.

use super::{Observer, Sim};
use crate::config::SimConfig;
use raidlab_array::{ArrayOp, Event, OF_ARRAY};
use raidlab_load::Generator;
use raidlab_types::{Duration, Instant, SpecError};

/// The soonest that a timer can be set for (`TIMER_MIN_DELTA`).
const SOONEST_NS: u64 = 500;

/// What a client looks at the clock for: an answer's time, its next request's, and the block layer for that.
const LOOKS_OF_CLIENT: u32 = 3;

/// Of a request that nobody gathers: when it is made, and when a device begins with it.
const LOOKS_OF_REQUEST: u32 = 2;

/// Whose turn it is when the processor is free again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum HostTurn {
    /// Nobody's: what comes next decides.
    Nobody,
    Thread,
    /// Md's thread gathers, and has looked at the clock for that.
    Gathering,
    /// Clients hear of what is done.
    Answers,
    /// The client that has heard of it last sends its next request.
    Request,
}

/// Who has the processor.
#[derive(Debug)]
pub(super) struct Turns {
    look: Duration,
    busy_until: Instant,
    turn: HostTurn,
    /// When the next interrupt comes, and the completion for which that was set.
    interrupt: Instant,
    set_for: Instant,
}

impl Turns {
    /// None where looking at the clock takes no time.
    pub(super) fn new(config: &SimConfig, merges: bool) -> Result<Option<Turns>, SpecError> {
        let look = crate::path::cost("host.look", config.host.look_us)?;
        let plain = config.path.caches.is_empty() && config.files.is_none() && config.streams.is_none();
        if look > Duration::ZERO && !(merges && plain) {
            let message = "is for hosts that merge operations, and requests; accepted: 0, or such a policy";
            return Err(SpecError::new("host.look", message));
        }
        let (busy_until, turn) = (Instant::ZERO, HostTurn::Thread);
        let (interrupt, set_for) = (Instant::MAX, Instant::MAX);
        Ok((look > Duration::ZERO).then_some(Turns { look, busy_until, turn, interrupt, set_for }))
    }

    /// What the clock shows.
    pub(super) fn clock(&self, now: Instant) -> Instant {
        Instant::from_ns(now.as_ns() / self.look.as_ns() * self.look.as_ns())
    }

    /// When something is looked at that comes at this time.
    pub(super) fn not_before(&self, at: Instant) -> Instant {
        match self.turn {
            HostTurn::Nobody if at == Instant::MAX => at,
            HostTurn::Nobody => at.max(self.busy_until),
            _ => self.busy_until,
        }
    }

    /// Whether somebody has yet to go on once the processor is free.
    pub(super) fn is_taken(&self) -> bool {
        self.turn != HostTurn::Nobody
    }

    /// Whoever has the processor looks at the clock.
    fn look(&mut self, now: Instant, times: u32) {
        self.busy_until = self.busy_until.max(now) + Duration::from_ns(self.look.as_ns() * u64::from(times));
    }

    /// When the next interrupt comes, of completions of which the first is at `first`; not while somebody looks at the clock.
    pub(super) fn next_interrupt(&mut self, now: Instant, first: Instant) -> Instant {
        if first < self.set_for {
            self.set(now, first);
        }
        if self.interrupt >= self.busy_until {
            return self.interrupt;
        }
        let (left, look) = (self.busy_until.since(self.interrupt).as_ns(), self.look.as_ns());
        Instant::from_ns(self.busy_until.as_ns() - left / look * look)
    }

    /// Sets the timer.
    fn set(&mut self, now: Instant, first: Instant) {
        self.set_for = first;
        self.interrupt = Instant::MAX;
        if first < Instant::MAX {
            let clock = self.clock(now);
            let away = if first > clock { first.since(clock).as_ns() } else { 0 };
            self.interrupt = now + Duration::from_ns(away.max(SOONEST_NS) + 1);
        }
    }
}

impl<L: Generator, O: Observer> Sim<'_, L, O> {
    fn turns(&mut self) -> &mut Turns {
        match &mut self.turns {
            Some(turns) => turns,
            None => unreachable!("the caller looked"),
        }
    }

    fn take_turn(&mut self, turn: HostTurn, looks: u32) {
        let now = self.now;
        let turns = self.turns();
        turns.turn = turn;
        turns.look(now, looks);
    }

    /// An interrupt: everything that the clock has passed is complete.
    pub(super) fn interrupt(&mut self, now: Instant) {
        let passed = self.turns().clock(now);
        while self.timers.first().0 <= passed {
            let leaf = self.timers.first().1;
            if self.devices[leaf as usize].queued() > 0 {
                let turns = self.turns();
                turns.look(now, 1);
                let begins = turns.clock(turns.busy_until);
                self.devices[leaf as usize].serve_not_before(begins);
            }
            self.poll_device(leaf);
        }
        let first = self.timers.first().0;
        let turns = self.turns();
        turns.set(now, first);
        if turns.turn == HostTurn::Nobody {
            turns.turn = HostTurn::Thread;
        }
    }

    /// What follows at this instant, one after another, as far as the processor is free.
    pub(super) fn settle_in_turns(&mut self) {
        let mut goes_on = true;
        loop {
            let now = self.now;
            if now < self.turns().busy_until {
                return;
            }
            match self.turns().turn {
                HostTurn::Nobody | HostTurn::Thread | HostTurn::Gathering => goes_on |= self.run_thread(),
                HostTurn::Request => {
                    self.ask_load();
                    (self.turns().turn, goes_on) = (HostTurn::Answers, true);
                }
                HostTurn::Answers => match self.array.poll_event() {
                    Some(event) => {
                        self.hear(event);
                        goes_on = true;
                        if matches!(event, Event::RequestDone { .. }) {
                            self.take_turn(HostTurn::Request, LOOKS_OF_CLIENT);
                        }
                    }
                    None if self.ask_load() || goes_on => (self.turns().turn, goes_on) = (HostTurn::Thread, false),
                    None => return self.turns().turn = HostTurn::Nobody,
                },
            }
        }
    }

    /// Md's thread, and whoever hands operations on without it; whether there was anything to do.
    fn run_thread(&mut self) -> bool {
        let mut did = self.turns().turn == HostTurn::Gathering;
        while let Some(op) = self.array.poll_op() {
            did = true;
            match op {
                ArrayOp::Device(op) => {
                    self.issue(&op);
                    let is_gathered = self.array.is_gathered(op.id);
                    if is_gathered && self.turns().turn != HostTurn::Gathering {
                        self.take_turn(HostTurn::Gathering, 1);
                        return true;
                    }
                    if !is_gathered && op.tag != OF_ARRAY {
                        self.take_turn(HostTurn::Thread, LOOKS_OF_REQUEST);
                    }
                }
                ArrayOp::Compute { id, read_bytes, .. } => self.compute(id, read_bytes),
            }
        }
        let now = self.now;
        let clock = self.turns().clock(now);
        let early = self.blocks.as_mut().map_or(0, |blocks| {
            blocks.hand_on(clock, &mut self.devices);
            blocks.take_early()
        });
        self.note_asked();
        self.take_turn(HostTurn::Answers, early);
        did
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn turns() -> Turns {
        let (look, busy_until, turn) = (Duration::from_ns(256), Instant::ZERO, HostTurn::Nobody);
        Turns { look, busy_until, turn, interrupt: Instant::MAX, set_for: Instant::MAX }
    }

    #[test]
    fn completions_a_look_apart_are_heard_of_together() {
        let mut turns = turns();
        let [first, second, third] = [5_000_000, 5_000_256, 5_000_512].map(Instant::from_ns);
        let early = turns.next_interrupt(Instant::ZERO, first);
        assert_eq!(early.as_ns(), 5_000_001);
        assert!(turns.clock(early) < first, "the clock goes in steps and has not come so far");
        turns.set(early, first);
        let heard = turns.next_interrupt(early, first);
        assert_eq!(heard.as_ns(), 5_000_502);
        assert!(turns.clock(heard) >= second && turns.clock(heard) < third);
    }

    #[test]
    fn nobody_is_interrupted_while_he_looks_at_the_clock() {
        let mut turns = turns();
        turns.look(Instant::ZERO, 3);
        assert_eq!(turns.next_interrupt(Instant::ZERO, Instant::from_ns(100)).as_ns(), 512);
        assert_eq!(turns.not_before(Instant::from_ns(10)).as_ns(), 768);
    }
}
