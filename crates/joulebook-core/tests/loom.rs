//! Every interleaving of the ring's writer with its readers, under the weak memory model.
//! `RUSTFLAGS="--cfg loom" cargo test -p joulebook-core --test loom --release`
#![cfg(loom)]

use joulebook_core::{
    Flags,
    ring::{Found, Point, ring},
};

fn point(at_ns: u64) -> Point {
    Point {
        at_ns,
        energy_uj: at_ns * 3,
        power_uw: at_ns * 5,
        uncertainty_ns: at_ns as u32,
        flags: Flags::from_bits(at_ns as u32),
    }
}

fn whole(seen: Point) {
    assert_eq!(seen, point(seen.at_ns), "a mix of two writes");
}

#[test]
fn the_newest_point_is_whole_while_its_slot_is_overwritten() {
    loom::model(|| {
        let (mut writer, ring) = ring(2);
        writer.push(point(1));
        let reader = loom::thread::spawn(move || {
            whole(ring.newest().expect("one point was there from the start"));
        });
        writer.push(point(2));
        writer.push(point(3));
        reader.join().unwrap();
    });
}

#[test]
fn a_search_finds_a_whole_point_or_says_that_it_is_gone() {
    loom::model(|| {
        let (mut writer, ring) = ring(2);
        writer.push(point(1));
        let reader = loom::thread::spawn(move || match ring.at_or_before(2) {
            Found::At(index, seen) => {
                whole(seen);
                assert_eq!(index + 1, seen.at_ns);
            }
            Found::Older(first) => assert!(first >= 2),
            Found::Empty => panic!("one point was there from the start"),
        });
        writer.push(point(2));
        writer.push(point(3));
        reader.join().unwrap();
    });
}
