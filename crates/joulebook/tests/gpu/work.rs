//! Something that makes a card draw more for a while, with known edges.

/// Work on one card.
pub trait Work: Send {
    /// Begins; the instant it took hold, ns of [`joulebook::clock`].
    fn begin(&mut self) -> Result<u64, String>;

    /// Ends; the instant by which all of it was done.
    fn end(&mut self) -> Result<u64, String>;

    /// How far an edge can lie from those instants, ns.
    fn edge_ns(&self) -> u64;

    /// What it is, in a few words.
    fn words(&self) -> String;

    /// What the card really drew between two instants, J, where that is known.
    fn truth_j(&self, _open_ns: u64, _close_ns: u64) -> Option<f64> {
        None
    }
}
