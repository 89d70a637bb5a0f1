//! Books that are off cost nothing: no clock is read, nothing is allocated. (Nothing is written
//! either: a ticket of such books holds nothing that could be.)

use std::{
    alloc::{GlobalAlloc, Layout, System},
    sync::atomic::{AtomicU64, Ordering},
};

use joulebook::{
    Fault, Meter, Node,
    books::{Books, Labels, Level, Settings, Usage},
};

static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);
static LOOKS: AtomicU64 = AtomicU64::new(0);

struct Counting;

// SAFETY: hands every call to the system's allocator unchanged.
#[allow(unsafe_code)]
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        // SAFETY: the caller's promises are passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        // SAFETY: the caller's promises are passed on.
        unsafe { System.dealloc(at, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

fn clock() -> u64 {
    LOOKS.fetch_add(1, Ordering::Relaxed);
    joulebook::clock::now_ns()
}

/// A ticket's whole life; how often memory and the clock were asked for.
fn life(books: &Books) -> (u64, u64) {
    let before = (ALLOCATIONS.load(Ordering::Relaxed), LOOKS.load(Ordering::Relaxed));
    for _ in 0..100 {
        let mut ticket = books.open(&Labels { model: Some("m"), ..Labels::default() });
        ticket.prompt(100, Some(20));
        ticket.admitted();
        ticket.tokens(1);
        ticket.tokens(3);
        ticket.mark("written");
        drop(ticket.close(Usage::default()));
        drop(books.open(&Labels::default()));
    }
    let after = (ALLOCATIONS.load(Ordering::Relaxed), LOOKS.load(Ordering::Relaxed));
    (after.0 - before.0, after.1 - before.1)
}

#[test]
fn off_reads_no_clock_and_allocates_nothing() {
    let meter = Meter::none(&Node::of("0"), Fault::DriverAbsent);
    let off = Settings { level: Level::Off, clock, ..Settings::default() };
    let books = Books::of(&meter, off).unwrap();
    assert_eq!(life(&books), (0, 0));
    // That the counters count is seen on books that are on.
    let on = Books::of(&meter, Settings { clock, ..Settings::default() }).unwrap();
    let (allocations, looks) = life(&on);
    assert!(allocations >= 100 && looks >= 500, "{allocations} {looks}");
}
