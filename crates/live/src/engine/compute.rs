//! Parity and recovery, run on the bytes that a plan names.

use raidlab_array::plan::{Input, Segment};
use raidlab_array::{ComputeKind, ComputeWork, Space};
use raidlab_parity::{combine_raw, gf, pq_raw, xor_raw, MAX_INPUTS};

/// Memory of a window: its first byte, and how many sectors it holds.
#[derive(Debug, Clone, Copy)]
pub(crate) struct MemorySpan {
    pub start: *mut u8,
    pub sectors: u64,
}

impl MemorySpan {
    /// No memory.
    pub(super) const NONE: MemorySpan = MemorySpan { start: std::ptr::null_mut(), sectors: 0 };
}

/// Where the memory of a window lies.
#[derive(Debug, Clone, Copy)]
pub(crate) struct WindowMemory {
    pub user: MemorySpan,
    pub scratch: MemorySpan,
    pub sector_bytes: usize,
}

impl WindowMemory {
    /// The first byte of `sectors` sectors from sector `offset` on.
    ///
    /// # Panics
    /// When they do not lie within the memory that is there.
    #[inline]
    pub(super) fn at(&self, space: Space, offset: u32, sectors: u32) -> *mut u8 {
        let place = match space {
            Space::User => self.user,
            Space::Scratch => self.scratch,
            Space::Discard => unreachable!("what is dropped is neither computed from nor to"),
        };
        let end = u64::from(offset) + u64::from(sectors);
        assert!(end <= place.sectors, "sector {end} of a window's memory, which has {}", place.sectors);
        place.start.wrapping_add(offset as usize * self.sector_bytes)
    }
}

impl WindowMemory {
    /// Sector `offset` of scratch memory.
    ///
    /// # Safety
    /// Nothing writes it while the slice lives.
    pub(super) unsafe fn sector<'m>(&self, offset: u32) -> &'m [u8] {
        // SAFETY: `at` has found it within the window's memory; the rest is the caller's.
        unsafe { std::slice::from_raw_parts(self.at(Space::Scratch, offset, 1), self.sector_bytes) }
    }
}

/// Runs computations; keeps its lists so that none is allocated.
#[derive(Debug, Default)]
pub(crate) struct Combiner {
    inputs: Vec<*const u8>,
    coefficients: [Vec<u8>; 2],
}

impl Combiner {
    /// Carries out `work`.
    ///
    /// # Safety
    /// `places` are those of the plan's request and window, and nothing else touches the memory of its inputs and outputs.
    pub(super) unsafe fn run(&mut self, work: &ComputeWork<'_>, places: WindowMemory) {
        for segment in work.segments {
            // SAFETY: passed on to the caller.
            unsafe { self.segment(work.kind, segment, work.plan.inputs(segment), places) };
        }
    }

    unsafe fn segment(&mut self, kind: ComputeKind, segment: &Segment, inputs: &[Input], places: WindowMemory) {
        let mut outputs = [std::ptr::null_mut(); 2];
        let mut wanted = [0; 2];
        let mut count = 0;
        for (k, output) in segment.outputs.iter().enumerate() {
            if let Some((space, offset)) = output {
                (outputs[count], wanted[count]) = (places.at(*space, *offset, segment.sectors), k);
                count += 1;
            }
        }
        if count == 0 {
            return;
        }
        let (outputs, wanted) = (&outputs[..count], &wanted[..count]);
        let len = segment.sectors as usize * places.sector_bytes;
        let at = |input: &Input| places.at(input.space, input.offset, segment.sectors).cast_const();
        if inputs.len() <= MAX_INPUTS {
            self.collect(inputs, wanted, at, |_| true);
            // SAFETY: passed on to the caller.
            return unsafe { self.sum(kind, outputs, len) };
        }
        // More than one call takes. Inputs that are outputs too go first, before they are overwritten.
        let is_output = |pointer: *const u8| outputs.contains(&pointer.cast_mut());
        self.collect(inputs, wanted, at, is_output);
        let first = self.inputs.len();
        let mut rest = inputs.iter().filter(|i| !is_output(at(i))).peekable();
        let mut started = first > 0;
        while rest.peek().is_some() {
            // Room for the sums so far.
            let room = MAX_INPUTS - count - self.inputs.len();
            rest.by_ref().take(room).for_each(|input| self.add(input, wanted, at(input)));
            // SAFETY: passed on to the caller; an output that is an input is that very memory.
            unsafe { self.sum(ComputeKind::Recover, outputs, len) };
            started = true;
            self.clear();
            for (k, output) in outputs.iter().enumerate() {
                self.inputs.push(output.cast_const());
                (0..count).for_each(|other| self.coefficients[other].push(u8::from(other == k)));
            }
        }
        assert!(started, "a sum of nothing");
    }

    fn clear(&mut self) {
        self.inputs.clear();
        self.coefficients.iter_mut().for_each(Vec::clear);
    }

    fn add(&mut self, input: &Input, wanted: &[usize], start: *const u8) {
        self.inputs.push(start);
        for (list, &k) in self.coefficients.iter_mut().zip(wanted) {
            list.push(input.coefficients[k]);
        }
    }

    /// Lists the inputs that `keep` takes; `at` says where each begins.
    fn collect(
        &mut self,
        inputs: &[Input],
        wanted: &[usize],
        at: impl Fn(&Input) -> *const u8,
        keep: impl Fn(*const u8) -> bool,
    ) {
        self.clear();
        for input in inputs.iter().filter(|input| keep(at(input))) {
            self.add(input, wanted, at(input));
        }
    }

    /// The outputs from what was collected, by the quickest kernel that does it.
    unsafe fn sum(&self, kind: ComputeKind, outputs: &[*mut u8], len: usize) {
        let [first, second] = &self.coefficients;
        let inputs = self.inputs.len();
        assert!(
            (1..=MAX_INPUTS).contains(&inputs) && first.len() == inputs,
            "{inputs} inputs of {} coefficients",
            first.len()
        );
        assert!(outputs.len() < 2 || second.len() == inputs, "{inputs} inputs of {} coefficients", second.len());
        // SAFETY: passed on to the caller.
        unsafe {
            match outputs {
                [out] if kind == ComputeKind::Xor => xor_raw(*out, &self.inputs, len),
                [out] => combine_raw(&[*out], &self.inputs, &[first], len),
                [p, q] if kind == ComputeKind::Pq && is_pq(first, second) => pq_raw(*p, *q, &self.inputs, len),
                [p, q] => combine_raw(&[*p, *q], &self.inputs, &[first, second], len),
                _ => unreachable!("a segment has one or two outputs"),
            }
        }
    }
}

/// Whether the coefficients are those of P and Q over the blocks in their order.
fn is_pq(first: &[u8], second: &[u8]) -> bool {
    first.iter().all(|&c| c == 1) && second.iter().enumerate().all(|(i, &c)| c == gf::exp(i))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_lies_within_a_window_has_an_address() {
        let mut memory = [0_u8; 4 * 512];
        let user = MemorySpan { start: memory.as_mut_ptr(), sectors: 4 };
        let places = WindowMemory { user, scratch: MemorySpan::NONE, sector_bytes: 512 };
        assert_eq!(places.at(Space::User, 3, 1), user.start.wrapping_add(3 * 512));
        for (space, offset, sectors) in [(Space::User, 3, 2), (Space::User, u32::MAX, 1), (Space::Scratch, 0, 1)] {
            let asked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| places.at(space, offset, sectors)));
            assert!(asked.is_err(), "{sectors} sectors from {offset} on of {space:?}");
        }
    }
}
