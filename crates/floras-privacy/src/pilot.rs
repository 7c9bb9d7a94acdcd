//! The pilot's noise `e` on a client's own sequence, in units of `s`: a standard normal number, as a rule of integration.

use crate::normal;
use crate::quadrature::narrow_panels;
use crate::receiver::Receiver;

/// Beyond this there is less than 4e-33.
const REACH: f64 = 12.0;
/// What lies beyond [`REACH`].
pub(crate) const BEYOND_REACH: f64 = 4e-33;
/// Widest panel.
const WIDEST: f64 = 1.5;

/// Values of `τ = t + e` with their weights, finer wherever the receiver's weight turns.
pub(crate) fn estimates(receiver: Receiver, t: f64) -> Vec<(f64, f64)> {
    let (from, to) = (t - REACH, t + REACH);
    let mut points = vec![from, to];
    match receiver {
        Receiver::Paper => {
            // 1/τ has its pole at 0: panels that become finer towards it from both sides.
            points.push(0.0);
            let fine = (0..15).map(|power| 0.25_f64.powi(power));
            points.extend(fine.flat_map(|distance| [-distance, distance]));
        }
        Receiver::Mmse => points.extend([-1.0, 0.0, 1.0]),
        Receiver::Clipped(c) => points.extend([-c, c]),
    }
    points.retain(|&point| point >= from && point <= to);
    points.sort_by(f64::total_cmp);
    points.dedup();
    let weighted = |(estimate, weight): (f64, f64)| (estimate, weight * normal::density(estimate - t));
    // A strong client's estimate never comes near the turns.
    let widest = if t > REACH + 2.0 { 2.0 } else { WIDEST };
    narrow_panels(&points, widest).into_iter().map(weighted).collect()
}

/// `|e|` with its weights.
pub(crate) fn sizes() -> Vec<(f64, f64)> {
    let weighted = |(e, weight): (f64, f64)| (e, 2.0 * weight * normal::density(e));
    narrow_panels(&[0.0, REACH], 0.5).into_iter().map(weighted).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights_are_those_of_a_standard_normal_number() {
        for receiver in [Receiver::Paper, Receiver::Mmse, Receiver::Clipped(1.0)] {
            for t in [0.0, 0.7, 4.0, 13.9, 30.0] {
                let nodes = estimates(receiver, t);
                let moment =
                    |power: i32| -> f64 { nodes.iter().map(|&(x, w)| w * (x - t).powi(power)).sum() };
                assert!((moment(0) - 1.0).abs() < 1e-9 && moment(1).abs() < 1e-9, "{receiver:?}");
                assert!((moment(2) - 1.0).abs() < 1e-8 && (moment(4) - 3.0).abs() < 1e-7, "{receiver:?}");
            }
        }
        assert!((sizes().iter().map(|&(e, w)| w * e * e).sum::<f64>() - 1.0).abs() < 1e-12);
    }
}
