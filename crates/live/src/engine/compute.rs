//! Parity and recovery, run on the bytes that a plan names.

use raidlab_array::plan::{Input, Segment};
use raidlab_array::{ComputeKind, ComputeWork, Space};
use raidlab_parity::{combine_raw, gf, pq_raw, xor_raw, MAX_INPUTS};

/// Where the memory of a window lies.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Places {
    pub user: *mut u8,
    pub scratch: *mut u8,
    pub sector_bytes: usize,
}

impl Places {
    /// The first byte of a piece.
    #[inline]
    pub fn at(&self, space: Space, offset: u32) -> *mut u8 {
        let base = match space {
            Space::User => self.user,
            Space::Scratch => self.scratch,
            Space::Discard => unreachable!("what is dropped is neither computed from nor to"),
        };
        base.wrapping_add(offset as usize * self.sector_bytes)
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
    /// `places` are those of the plan's request and window, long enough for it, and nothing else touches the memory of
    /// its inputs and outputs.
    pub unsafe fn run(&mut self, work: &ComputeWork<'_>, places: Places) {
        for segment in work.segments {
            // SAFETY: passed on to the caller.
            unsafe { self.segment(work.kind, segment, work.plan.inputs(segment), places) };
        }
    }

    unsafe fn segment(&mut self, kind: ComputeKind, segment: &Segment, inputs: &[Input], places: Places) {
        let mut outputs = [std::ptr::null_mut(); 2];
        let mut wanted = [0; 2];
        let mut count = 0;
        for (k, output) in segment.outputs.iter().enumerate() {
            if let Some((space, offset)) = output {
                (outputs[count], wanted[count]) = (places.at(*space, *offset), k);
                count += 1;
            }
        }
        if count == 0 {
            return;
        }
        let (outputs, wanted) = (&outputs[..count], &wanted[..count]);
        let len = segment.sectors as usize * places.sector_bytes;
        if inputs.len() <= MAX_INPUTS {
            self.collect(inputs, wanted, places, |_| true);
            // SAFETY: passed on to the caller.
            return unsafe { self.sum(kind, outputs, len) };
        }
        // More than one call takes. Inputs that are outputs too go first, before they are overwritten.
        let is_output = |pointer: *const u8| outputs.contains(&pointer.cast_mut());
        self.collect(inputs, wanted, places, is_output);
        let first = self.inputs.len();
        let mut rest = inputs.iter().filter(|i| !is_output(places.at(i.space, i.offset))).peekable();
        let mut started = first > 0;
        while rest.peek().is_some() {
            // Room for the sums so far.
            let room = MAX_INPUTS - count - self.inputs.len();
            rest.by_ref().take(room).for_each(|input| self.add(input, wanted, places));
            // SAFETY: passed on to the caller; an output that is an input is that very memory.
            unsafe { self.sum(ComputeKind::Recover, outputs, len) };
            started = true;
            self.clear();
            for (k, output) in outputs.iter().enumerate() {
                self.inputs.push(output.cast_const());
                (0..count).for_each(|other| self.coefficients[other].push(u8::from(other == k)));
            }
        }
        debug_assert!(started);
    }

    fn clear(&mut self) {
        self.inputs.clear();
        self.coefficients.iter_mut().for_each(Vec::clear);
    }

    fn add(&mut self, input: &Input, wanted: &[usize], places: Places) {
        self.inputs.push(places.at(input.space, input.offset));
        for (list, &k) in self.coefficients.iter_mut().zip(wanted) {
            list.push(input.coefficients[k]);
        }
    }

    fn collect(&mut self, inputs: &[Input], wanted: &[usize], places: Places, keep: impl Fn(*const u8) -> bool) {
        self.clear();
        for input in inputs.iter().filter(|i| keep(places.at(i.space, i.offset))) {
            self.add(input, wanted, places);
        }
    }

    /// The outputs from what was collected, by the quickest kernel that does it.
    unsafe fn sum(&self, kind: ComputeKind, outputs: &[*mut u8], len: usize) {
        let [first, second] = &self.coefficients;
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
