//! Deliberate faults of the array, for the schedules of `crates/hazard`: what these do not catch, they would not catch in a
//! change either.
//!
//! Without the feature `weakened` they are words and nothing more: nothing can give one to an array, and what asks whether it
//! has one is a constant `false`.

/// Names each deliberate fault once: its variant, its word, and what it does.
macro_rules! weaknesses {
    ($($variant:ident $word:literal $does:literal;)*) => {
        /// A deliberate fault of the array.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Weakness {
            $(#[doc = $does] $variant,)*
        }

        impl Weakness {
            /// All there are.
            pub const ALL: &'static [Weakness] = &[$(Weakness::$variant),*];

            /// Its word on a command line.
            pub fn word(self) -> &'static str {
                match self { $(Weakness::$variant => $word,)* }
            }

            /// What is wrong with an array that has it.
            pub fn does(self) -> &'static str {
                match self { $(Weakness::$variant => $does,)* }
            }
        }
    };
}

weaknesses! {
    DegradedWriteSkipsParity "degraded-write-skips-parity" "A write of a degraded stripe leaves its parity as it was.";
    SmallWriteSkipsQ "small-write-skips-q" "A small write of RAID 6 updates P and not Q.";
    RestoreTakesNewData "restore-takes-new-data" "What a degraded write cannot read it works out from the new data instead of the old.";
    ModifyPrefersBlindly "modify-prefers-blindly" "A degraded write reads and modifies also where what it reads is lost.";
    MirrorWritesOneCopy "mirror-writes-one-copy" "A write reaches the first copy of a mirror only.";
    MirrorReadsStaleCopy "mirror-reads-stale-copy" "A mirror reads a copy where it has not yet been rebuilt.";
    WritesTakeNoLocks "writes-take-no-locks" "Writes lock nothing: two of them read and modify one parity at once.";
    DegradedReadsTakeNoLocks "degraded-reads-take-no-locks" "A read that works out lost data does not wait for a write of the same stripe.";
    ReplansWithoutLocks "replans-without-locks" "A read that meets a failure is planned anew without the locks that it needs now.";
    SittingOutTakesNoLocks "sitting-out-takes-no-locks" "A read around a member that sits out does not wait for a write of the same stripe.";
    RebuildTakesNoLocks "rebuild-takes-no-locks" "A unit of a rebuild runs beside writes of the same stripes.";
    RebuildLocksItsNodeOnly "rebuild-locks-its-node-only" "A unit of a rebuild locks its own node and nothing of those above it.";
    BarrierNotKept "barrier-not-kept" "Writes begin before all that their window reads has been read.";
    RowsLeftHalfWritten "rows-left-half-written" "A row that is being written is given up when another of its window is planned anew.";
    MediaErrorIgnored "media-error-ignored" "A read that the member could not serve counts as done.";
    MediaErrorForgotten "media-error-forgotten" "A bad sector is forgotten at once, and read again and again.";
    NeverLooksCloser "never-looks-closer" "Of a long operation with a media error all counts as unreadable.";
    ErrorsFailTheLast "errors-fail-the-last" "A member with too many read errors is taken out also where its level does not bear that.";
    WriteErrorForgiven "write-error-forgiven" "A member that has failed to write stays in use.";
    LocksKeptAfterError "locks-kept-after-error" "A request that is refused keeps its locks.";
    ErrorsAreSwallowed "errors-are-swallowed" "A request beyond what the level bears ends with success.";
    NewMemberIsBelieved "new-member-is-believed" "A new member counts as whole at once.";
    FailedStaysInRebuild "failed-stays-in-rebuild" "A member that fails while it is rebuilt stays in the rebuild's list.";
    LostNodeIsTrusted "lost-node-is-trusted" "When a lost node comes back, its other members count as whole, though they have missed writes.";
    ValidFromTheBeginning "valid-from-the-beginning" "A unit counts as rebuilt when it begins.";
    ValidOverGaps "valid-over-gaps" "A unit counts as rebuilt with all before it, also those not yet done.";
    BadBlocksAreRead "bad-blocks-are-read" "What a rebuild has gone without is read all the same.";
    FailedUnitsCount "failed-units-count" "A unit of a rebuild that could not be read counts as done.";
    LastUnitLeftOut "last-unit-left-out" "A rebuild ends one unit early.";
    RebuildCopiesStale "rebuild-copies-stale" "A unit writes what its memory held before, not what was worked out.";
    WritesSkipInFront "writes-skip-in-front" "A write in front of what is rebuilt does not reach the new member, though a unit there may be done.";
    WritesSkipBehind "writes-skip-behind" "A write of what is rebuilt already does not reach the new member.";
    SparesMissWrites "spares-miss-writes" "A write does not reach what stands in a distributed spare.";
    ScrubTakesNoLocks "scrub-takes-no-locks" "A unit of a scrub runs beside writes of the same stripes.";
    RepairTakesNoLocks "repair-takes-no-locks" "What a read could not read is written anew beside writes of the same stripes.";
    ScrubLeavesOutUnits "scrub-leaves-out-units" "A scrub passes over the first unit of a node.";
    RepairWritesNothing "repair-writes-nothing" "A repair counts what is wrong, and writes nothing anew.";
    RepairTakesWrongSide "repair-takes-wrong-side" "A repair believes what differs, and writes the others anew.";
    UnitsAreAllOrNothing "units-are-all-or-nothing" "A unit with bad sectors of two members at different places is given up.";
}
