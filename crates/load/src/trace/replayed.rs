//! What became of a trace, besides the times.

/// Counts of records, and the volumes.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Replayed {
    /// Offered to the array.
    pub requests: u64,
    /// Left out: of another kind than asked for, or of a volume that has none here.
    pub left_out: u64,
    /// Whose address was taken modulo the volume's length.
    pub wrapped: u64,
    /// That were no whole sectors of the array, and were offered as those they touch.
    pub rounded: u64,
    /// Whose time lay before that of the record before them: offered together with that one.
    pub out_of_order: u64,
    /// Whether it was replayed to its end.
    pub to_its_end: bool,
    /// Length of what was offered, by the trace's own clock.
    pub span_ns: u64,
    /// The trace's volumes of which something was met, and the array's volume of each, if it has one.
    pub volumes: Vec<(String, Option<u32>)>,
}

impl Replayed {
    /// What was done otherwise than recorded, a phrase each; none for a replay that is the trace.
    pub fn changes(&self) -> Vec<String> {
        let counted = [
            (self.left_out, "left out"),
            (self.wrapped, "beyond their volume and wrapped into it"),
            (self.rounded, "widened to whole sectors"),
            (self.out_of_order, "older than the one before them and offered with it"),
        ];
        let phrase = |&(count, what): &(u64, &str)| (count > 0).then(|| format!("{count} {what}"));
        counted.iter().filter_map(phrase).collect()
    }
}
