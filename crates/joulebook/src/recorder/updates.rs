//! How often a gauge's value is updated, by how closely distinct values follow each other.

/// The spacing of a gauge's distinct values.
#[derive(Default)]
pub(crate) struct Updates {
    changed_ns: Option<u64>,
    spacings_ns: Vec<u64>,
}

impl Updates {
    /// The value changed: how closely changes follow each other, once there are a few. A sensor shows
    /// no change while power stands still, so long spacings say nothing of its period and the lower
    /// quartile stands for it.
    pub(crate) fn changed(&mut self, at_ns: u64) -> Option<u64> {
        const KEPT: usize = 64;
        let since_ns = self.changed_ns.replace(at_ns).map(|last| at_ns.saturating_sub(last))?;
        if self.spacings_ns.len() == KEPT {
            self.spacings_ns.remove(0);
        }
        self.spacings_ns.push(since_ns);
        let mut sorted = self.spacings_ns.clone();
        sorted.sort_unstable();
        (sorted.len() >= 3).then(|| sorted.get(sorted.len() / 4).copied()).flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    #[test]
    fn a_power_that_stands_still_is_no_slow_sensor() {
        let mut updates = Updates::default();
        // Two windows a minute apart: each edge shows as two values, one period apart.
        let changes_ms = [0, 100, 1_000, 1_100, 60_000, 60_100, 61_000, 61_100];
        let found: Vec<_> = changes_ms.iter().map(|at_ms| updates.changed(at_ms * MS)).collect();
        assert_eq!(found[..3], [None; 3]);
        assert_eq!(found.last(), Some(&Some(100 * MS)));
        let mut slow = Updates::default();
        let last = (0..8).map(|second| slow.changed(second * 1_000 * MS)).last();
        assert_eq!(last, Some(Some(1_000 * MS)), "one that is slow stays slow");
    }
}
