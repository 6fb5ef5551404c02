//! Every address has one place and every place one address, under each way of laying sectors out.

use super::{DiskLayout, Stretch};
use crate::{HddSpec, SpecError};
use proptest::prelude::*;
use std::collections::BTreeMap;

/// Two heads, a revolution of 10 ms; the rest as told.
fn layout(more: &str) -> Result<DiskLayout, SpecError> {
    let text = format!(
        r#"{{"revolution_ms": 10.0, "heads": 2, "cylinders": 50, "head_switch_ms": 0.5, "seek": {{"kind": "constant", "ms": 1.0}}, {more}}}"#
    );
    let spec: HddSpec = serde_json::from_str(&text).unwrap();
    Ok(spec.compile_model(0.0)?.layout)
}

/// One zone of `cylinders` cylinders of tracks of five sectors, with further keys.
fn zone(sparing: &str, cylinders: u32, more: &str) -> Result<DiskLayout, SpecError> {
    let comma = if more.is_empty() { "" } else { ", " };
    layout(&format!(
        r#""sparing": {sparing}, "zones": [{{"cylinders": {cylinders}, "sectors_per_track": 5{comma}{more}}}]"#
    ))
}

type TrackAngle = (u32, u32, u64);

/// Where each address lies: cylinder, head, and angle in ns.
fn places(layout: &DiskLayout) -> Vec<TrackAngle> {
    let place = |lba| {
        let stretch = layout.stretch(lba);
        assert!((stretch.first..stretch.end).contains(&lba));
        (stretch.cylinder, stretch.head, stretch.angle_ns(lba) % 10_000_000)
    };
    (0..layout.capacity()).map(place).collect()
}

/// The sectors, numbered along the tracks of a zone without skews, that hold the addresses.
fn sectors(layout: &DiskLayout) -> Vec<u64> {
    places(layout)
        .into_iter()
        .map(|(cylinder, head, angle)| (cylinder as u64 * 2 + head as u64) * 5 + angle / 2_000_000)
        .collect()
}

/// That stretches follow one another, and that no two addresses share a place.
fn check(layout: &DiskLayout) {
    let (mut next, mut stretch) = (0, Some(layout.stretch(0)));
    while let Some(here) = stretch {
        assert_eq!(here.first, next);
        assert!(here.end > here.first);
        next = here.end;
        stretch = layout.after(&here);
        assert_eq!(stretch.map(|after| layout.before(&after).unwrap()), stretch.map(|_| here));
    }
    assert_eq!(next, layout.capacity());
    let mut back = BTreeMap::new();
    for (lba, place) in places(layout).into_iter().enumerate() {
        assert_eq!(back.insert(place, lba), None, "{place:?} of {lba}");
    }
}

#[test]
fn slips_and_reserves_by_hand() {
    let of = |sparing: &str, more: &str| sectors(&zone(sparing, 2, more).unwrap());
    let runs = |ranges: &[std::ops::Range<u64>]| ranges.iter().cloned().flatten().collect::<Vec<u64>>();
    // Twenty sectors. A spare at the end of each track that has no slip.
    let slipped = |slip: u64| format!(r#""spares": 1, "slips": [{slip}]"#);
    assert_eq!(of(r#""sectors_per_track""#, &slipped(16)), runs(&[0..4, 5..9, 10..14, 15..16, 17..20]));
    assert_eq!(of(r#""sectors_per_cylinder""#, &slipped(12)), runs(&[0..9, 10..12, 13..20]));
    assert_eq!(of(r#""sectors_per_cylinder_slip_to_end""#, &slipped(12)), runs(&[0..9, 10..12, 13..19]));
    let front = r#""spares": 2, "slips": [14]"#;
    assert_eq!(of(r#""sectors_at_cylinder_front""#, front), runs(&[2..10, 11..14, 15..20]));
    assert_eq!(of(r#""sectors_at_cylinder_front_slip_to_end""#, front), runs(&[2..10, 12..14, 15..20]));
    assert_eq!(of(r#""end_of_disk""#, &slipped(2)), runs(&[0..2, 3..20]));
    let two = r#""spares": 3, "slips": [2, 11]"#;
    assert_eq!(of(r#""sectors_per_zone""#, two), runs(&[0..2, 3..11, 12..19]));
    assert_eq!(of(r#""sectors_per_zone_slip_to_end""#, two), runs(&[0..2, 3..11, 12..17]));
    let ranges = of(r#"{"sectors_per_range": {"cylinders": 1}}"#, r#""spares": 2"#);
    assert_eq!(ranges, runs(&[0..8, 10..18]));
    // Tracks are slipped and spared whole.
    assert_eq!(of(r#""tracks_per_zone""#, r#""spares": 2, "slips": [1]"#), runs(&[0..5, 10..15]));
    // The first sectors may belong to the disk, and a bad one may lie in the reserve.
    let moved = of(r#""sectors_per_cylinder""#, r#""spares": 2, "reserved_sectors": 3, "remaps": [[5, 9]]"#);
    assert_eq!(moved[..6], [3, 4, 9, 6, 7, 10]);
}

#[test]
fn a_disk_may_give_out_less_than_it_has_room_for() {
    let of = |sectors: &str| layout(&format!(r#"{sectors}"zones": [{{"cylinders": 2, "sectors_per_track": 5}}]"#));
    let whole = places(&of("").unwrap());
    for sectors in 1..=20 {
        let less = of(&format!(r#""sectors": {sectors}, "#)).unwrap();
        assert_eq!(places(&less), whole[..sectors]);
        check(&less);
    }
    for sectors in [0, 21] {
        let error = of(&format!(r#""sectors": {sectors}, "#)).unwrap_err();
        assert_eq!((error.key.as_str(), error.message.contains("between 1 and the 20")), ("sectors", true));
    }
}

#[test]
fn heads_may_be_taken_up_and_down() {
    let heads = |mapping: &str| {
        let zones = r#""zones": [{"cylinders": 1, "sectors_per_track": 5}, {"cylinders": 3, "sectors_per_track": 4}]"#;
        let layout = layout(&format!(r#""mapping": "{mapping}", {zones}"#)).unwrap();
        check(&layout);
        let mut heads: Vec<u32> = places(&layout).into_iter().map(|place| place.0 * 10 + place.1).collect();
        heads.dedup();
        heads
    };
    assert_eq!(heads("normal"), [0, 1, 10, 11, 20, 21, 30, 31]);
    assert_eq!(heads("serpentine"), [0, 1, 11, 10, 20, 21, 31, 30]);
    assert_eq!(heads("serpentine_by_zone"), [0, 1, 10, 11, 21, 20, 30, 31]);
}

#[test]
fn skews_add_up_and_slips_turn_what_follows() {
    let text = r#""spares": 1, "slips": [2], "track_skew": {"sectors": 1}, "cylinder_skew": {"sectors": 2}"#;
    let starts = |sparing: &str| {
        let places = places(&zone(sparing, 2, text).unwrap());
        let starts =
            places.iter().enumerate().filter(|(i, p)| *i == 0 || (p.0, p.1) != (places[i - 1].0, places[i - 1].1));
        starts.map(|(_, place)| place.2 / 2_000_000).collect::<Vec<_>>()
    };
    // Tracks begin at 0, 1, then 1 + 2, then one more.
    assert_eq!(starts(r#""sectors_per_zone""#), [0, 1, 3, 4]);
    // Where spares lie in each track, the slip in the first one moves the tracks after it.
    assert_eq!(starts(r#""sectors_per_track""#), [0, 2, 4, 0]);
    assert_eq!(starts(r#""sectors_per_cylinder""#), [0, 1, 4, 0]);
}

#[test]
fn a_zone_may_begin_where_it_says() {
    let of = |angle: &str| {
        let second = format!(r#"{{"first_cylinder": 7, "cylinders": 1, "sectors_per_track": 4{angle}}}"#);
        let zones = format!(
            r#""zones": [{{"cylinders": 3, "sectors_per_track": 5, "track_skew": {{"sectors": 1}}}}, {second}]"#
        );
        let layout = layout(&zones).unwrap();
        check(&layout);
        places(&layout)[30]
    };
    // It goes on where the zone before would have: three head switches of a sector each.
    assert_eq!(of(""), (7, 0, 6_000_000));
    assert_eq!(of(r#", "start_angle": {"revolutions": 0.5}"#), (7, 0, 5_000_000));
}

const ZONES: &str = r#""zones": [{"cylinders": 20, "sectors_per_track": 5, "track_skew": {"sectors": 1}, "cylinder_skew": {"sectors": 2},
    "start_angle": {"sectors": 0}}]"#;

#[test]
fn an_index_and_a_map_can_say_what_zones_say() {
    let zones = places(&layout(ZONES).unwrap());
    let track = |lba: u32, angle: f64, head: u32| {
        format!(
            r#"{{"lba": {lba}, "cylinder": 0, "angle": {angle}, "sectors": 5, "cylinders": 0, "turn": 0, "run_sectors": 5,
                "run_cylinders": 1, "child": {{"track": {{"track": 0, "head": {head}}}}}}}"#
        )
    };
    let index = format!(
        r#""layout": {{"kind": "index", "sectors": 200, "tracks": [[0, 4, 5]], "nodes": [[{}, {}],
            [{{"lba": 0, "cylinder": 0, "angle": 0, "sectors": 10, "cylinders": 1, "turn": 0.6, "run_sectors": 200, "run_cylinders": 20,
              "child": {{"node": 0}}}}]]}}"#,
        track(0, 0.0, 0),
        track(5, 0.2, 1)
    );
    let index = layout(&index).unwrap();
    check(&index);
    let near = |a: &[TrackAngle], b: &[TrackAngle]| {
        assert_eq!(a.len(), b.len());
        for (a, b) in std::iter::zip(a, b) {
            let apart = a.2.abs_diff(b.2);
            assert!((a.0, a.1) == (b.0, b.1) && apart.min(10_000_000 - apart) <= 8, "{a:?} {b:?}");
        }
    };
    near(&places(&index), &zones);
    let extents: Vec<_> = (0..40).map(|t| format!("[{}, {}, {}, 0, 5]", t * 5, t / 2, t % 2)).collect();
    let map = format!(
        r#""layout": {{"kind": "extents", "bands": [{{"first_cylinder": 0, "last_cylinder": 19, "sectors_per_track": 5,
            "track_skew": {{"sectors": 1}}, "cylinder_skew": {{"sectors": 2}}}}], "extents": [{}]}}"#,
        extents.join(", ")
    );
    let map = layout(&map).unwrap();
    check(&map);
    near(&places(&map), &zones);
}

#[test]
fn an_index_may_leave_out_and_move() {
    let index = |more: &str| {
        let node = r#"{"lba": 0, "cylinder": 0, "angle": 0, "sectors": 5, "cylinders": 1, "turn": 0, "run_sectors": 40,
            "run_cylinders": 8, "child": {"track": {"track": 0, "head": 0}}}"#;
        layout(&format!(
            r#""layout": {{"kind": "index", "sectors": 12, "tracks": [[0, 4, 5]], "nodes": [[{node}]]{more}}}"#
        ))
    };
    let numbers = |layout: &DiskLayout| -> Vec<u64> {
        places(layout).into_iter().map(|(cylinder, _, angle)| cylinder as u64 * 5 + angle / 2_000_000).collect()
    };
    assert!(numbers(&index("").unwrap()).into_iter().eq(0..12));
    let slipped = index(r#", "slips": [[3, 2], [9, 1]]"#).unwrap();
    check(&slipped);
    assert_eq!(numbers(&slipped), [0, 1, 2, 5, 6, 7, 8, 10, 11, 12, 13, 14]);
    let moved = index(r#", "remaps": [[4, 2, 7, 0, 3, 5]]"#).unwrap();
    check(&moved);
    assert_eq!(numbers(&moved)[3..7], [3, 38, 39, 6]);
}

#[test]
fn what_makes_no_sense_is_named() {
    let key = |result: Result<DiskLayout, SpecError>| result.unwrap_err().key;
    assert_eq!(key(zone(r#""sectors_per_track""#, 2, r#""spares": 1, "slips": [0, 1]"#)), "zones[0].slips");
    assert_eq!(key(zone(r#""sectors_per_zone""#, 2, r#""slips": [20]"#)), "zones[0].slips");
    assert_eq!(key(zone(r#""sectors_per_zone""#, 2, r#""remaps": [[1, 20]]"#)), "zones[0].remaps");
    assert_eq!(key(zone(r#""sectors_per_track""#, 2, r#""spares": 5"#)), "zones[0].slips");
    assert_eq!(key(zone(r#"{"sectors_per_range": {"cylinders": 0}}"#, 2, "")), "sparing");
    assert_eq!(key(zone(r#""none""#, 51, "")), "cylinders");
    assert_eq!(
        key(zone(r#""sectors_per_zone""#, 2, r#""spares": 4, "reserved_sectors": 16"#)),
        "zones[0].reserved_sectors"
    );
    let both = format!(r#"{ZONES}, "layout": {{"kind": "extents", "bands": [], "extents": []}}"#);
    assert_eq!(key(layout(&both)), "zones");
    let gap = r#""layout": {"kind": "extents", "bands": [{"first_cylinder": 0, "last_cylinder": 1, "sectors_per_track": 5}],
        "extents": [[0, 0, 0, 0, 5], [6, 0, 1, 0, 5]]}"#;
    assert_eq!(key(layout(gap)), "layout.extents[1]");
    let circle = r#""layout": {"kind": "index", "sectors": 5, "tracks": [[0, 4, 5]], "nodes": [[{"lba": 0, "cylinder": 0, "angle": 0,
        "sectors": 5, "cylinders": 1, "turn": 0, "run_sectors": 5, "run_cylinders": 1, "child": {"node": 0}}]]}"#;
    assert_eq!(key(layout(circle)), "layout.nodes[0][0]");
}

#[test]
fn sectors_that_have_passed_are_those_whose_end_has() {
    let stretch: Stretch =
        layout(r#""zones": [{"cylinders": 1, "sectors_per_track": 7, "start_angle": {"sectors": 0}}]"#)
            .unwrap()
            .stretch(0);
    for sector in 1..=7 {
        let end = stretch.length_ns(sector);
        assert_eq!((stretch.sectors_in(end - 1), stretch.sectors_in(end)), (sector - 1, sector));
    }
}

proptest! {
    /// Whatever is spared, slipped and remapped, addresses and places match one to one, and none is lost.
    #[test]
    fn addresses_and_places_match(
        sparing in 0usize..11, mapping in 0usize..3, cylinders in 1u32..8, spares in 3u64..5, reserved in 0u64..4,
        slips in prop::collection::btree_set(0u64..80, 0..3), skew in 0u32..5,
    ) {
        let sparing = [
            r#""none""#, r#""tracks_per_zone""#, r#""sectors_per_cylinder""#, r#""sectors_per_track""#,
            r#""sectors_per_cylinder_slip_to_end""#, r#""sectors_at_cylinder_front""#, r#""sectors_at_cylinder_front_slip_to_end""#,
            r#""end_of_disk""#, r#"{"sectors_per_range": {"cylinders": 2}}"#, r#""sectors_per_zone""#, r#""sectors_per_zone_slip_to_end""#,
        ][sparing];
        let mapping = ["normal", "serpentine", "serpentine_by_zone"][mapping];
        let all = cylinders as u64 * 10;
        let slips: Vec<u64> = slips.into_iter().filter(|&slip| slip < if sparing.contains("tracks_per") { all / 5 } else { all }).collect();
        let text = format!(
            r#""mapping": "{mapping}", "sparing": {sparing}, "zones": [{{"cylinders": {cylinders}, "sectors_per_track": 5, "spares": {spares},
                "slips": {slips:?}, "reserved_sectors": {reserved}, "track_skew": {{"sectors": {skew}}}}}, {{"cylinders": 2, "sectors_per_track": 9, "spares": 3}}]"#
        );
        // A small zone may have no more than its spares and what the disk keeps.
        let Ok(layout) = layout(&text) else { return Ok(()) };
        check(&layout);
        let n = slips.len() as u64;
        let (cylinders, ranges) = (cylinders as u64, cylinders as u64 / 2);
        // Sectors of both zones that hold no address.
        let kept = match sparing {
            r#""none""# | r#""end_of_disk""# => n,
            r#""tracks_per_zone""# => spares * 5 + 3 * 9,
            r#""sectors_per_cylinder""# | r#""sectors_at_cylinder_front""# => spares * cylinders + 3 * 2,
            r#""sectors_per_track""# => spares * cylinders * 2 + 3 * 4,
            r#""sectors_per_zone""# => spares + 3,
            r#""sectors_per_zone_slip_to_end""# => {
                // One that lies in the reserve costs nothing more.
                spares + 3 + slips.iter().filter(|&&slip| slip < all - spares).count() as u64
            }
            ranged if ranged.contains("range") => {
                let loose = slips.iter().filter(|&&slip| slip / 20 >= ranges).count() as u64;
                spares * ranges + loose + 3
            }
            to_end => {
                let front = to_end.contains("front");
                let spare = |slip: u64| if front { slip % 10 < spares } else { slip % 10 >= 10 - spares };
                spares * cylinders + 3 * 2 + slips.iter().filter(|&&slip| !spare(slip)).count() as u64
            }
        };
        prop_assert_eq!(layout.capacity(), all + 36 - kept - reserved);
    }
}
