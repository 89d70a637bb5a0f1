//! The line `a + b / B` through points, by least squares of their relative errors.

use super::Point;

/// The `a` and `b`, neither below 0: where the free line would have one there, the other alone is
/// fitted, which is the least squares of all lines that the ledger takes.
pub fn fitted(points: &[Point]) -> (f64, f64) {
    // Each point says a·(1/ρ) + b·(1/(B·ρ)) = 1.
    let sides = points.iter().map(|point| {
        let weight = 1.0 / point.rho;
        (weight, weight / f64::from(point.sequences))
    });
    let (mut aa, mut ab, mut bb, mut a_one, mut b_one) = (0.0, 0.0, 0.0, 0.0, 0.0);
    for (a, b) in sides {
        aa += a * a;
        ab += a * b;
        bb += b * b;
        a_one += a;
        b_one += b;
    }
    let determinant = aa * bb - ab * ab;
    let a = (a_one * bb - b_one * ab) / determinant;
    let b = (b_one * aa - a_one * ab) / determinant;
    if determinant > 0.0 && a >= 0.0 && b >= 0.0 {
        return (a, b);
    }
    let alone = [(a_one / aa, 0.0), (0.0, b_one / bb)];
    let squares = |(a, b): &(f64, f64)| -> f64 {
        let off = |point: &Point| (a + b / f64::from(point.sequences)) / point.rho - 1.0;
        points.iter().map(|point| off(point).powi(2)).sum()
    };
    let [level, shared] = alone;
    if squares(&level) <= squares(&shared) { level } else { shared }
}
