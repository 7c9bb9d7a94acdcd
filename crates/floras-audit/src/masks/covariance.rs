//! The covariance of an adversary's observation of a masked round, and the best linear distinguisher.
//!
//! Along one direction, the adversary observes `y = ±C·e_0 + N(0, Σ)`: client 0 is the victim. With `w = Σ⁻¹e_0`,
//!
//! ```text
//! ln p₊(y)/p₋(y) = 2C·wᵀy ~ N(±μ²/2, μ²),     μ² = (2C)²·(Σ⁻¹)_00
//! ```
//!
//! no adversary with the same `y` does better. A group of `n` clients, in which all `K` selected clients share masks of
//! variance `σ_p²` with each other, has
//!
//! ```text
//! Σ = (K·σ_p² + σ_z²)·I − σ_p²·11ᵀ
//! ```
//!
//! with `n < K` if clients are silent, and with `K` the number of honest clients if the adversary subtracted the others' masks.

/// A covariance matrix in row-major order.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Covariance {
    size: usize,
    entries: Vec<f64>,
}

impl Covariance {
    /// Covariance of `present` clients with masks for `sharing = K` clients each, itself included.
    pub(super) fn of_masks(present: usize, sharing: usize, pair_variance: f64, noise_variance: f64) -> Self {
        let diagonal = (sharing as f64 - 1.0) * pair_variance + noise_variance;
        let entry = |place: usize| match place / present == place % present {
            true => diagonal,
            false => -pair_variance,
        };
        Self { size: present, entries: (0..present * present).map(entry).collect() }
    }

    /// Covariance of clients that share masks with the victim alone, scaled to a different standard deviation than the
    /// victim's.
    pub(super) fn of_star(
        clients: usize,
        pair_std: f64,
        pair_std_of_others: f64,
        noise_variance: f64,
    ) -> Self {
        let entry = |place: usize| match (place / clients, place % clients) {
            (0, 0) => (clients as f64 - 1.0) * pair_std * pair_std + noise_variance,
            (row, column) if row == column => pair_std_of_others * pair_std_of_others + noise_variance,
            (0, _) | (_, 0) => -pair_std * pair_std_of_others,
            _ => 0.0,
        };
        Self { size: clients, entries: (0..clients * clients).map(entry).collect() }
    }

    /// The same plus independent noise of these variances, one per client.
    pub(super) fn with_noise(mut self, variances: &[f64]) -> Self {
        for (client, variance) in variances.iter().enumerate() {
            self.entries[client * (self.size + 1)] += variance;
        }
        self
    }

    /// `w = Σ⁻¹e_0`, by Cholesky's factors: `LLᵀw = e_0`. All values are NaN if the matrix is not positive definite.
    pub(super) fn weights(&self) -> Vec<f64> {
        let size = self.size;
        let mut factor = vec![0.0; size * size];
        for row in 0..size {
            for column in 0..=row {
                let products = (0..column).map(|k| factor[row * size + k] * factor[column * size + k]);
                let rest = self.entries[row * size + column] - products.sum::<f64>();
                factor[row * size + column] =
                    if row == column { rest.sqrt() } else { rest / factor[column * size + column] };
            }
        }
        let mut weights = vec![0.0; size];
        for row in 0..size {
            let known: f64 = (0..row).map(|k| factor[row * size + k] * weights[k]).sum();
            let right = if row == 0 { 1.0 } else { 0.0 };
            weights[row] = (right - known) / factor[row * size + row];
        }
        for row in (0..size).rev() {
            let known: f64 = (row + 1..size).map(|k| factor[k * size + row] * weights[k]).sum();
            weights[row] = (weights[row] - known) / factor[row * size + row];
        }
        weights
    }
}

/// The log-likelihood ratio `2C·wᵀy`, given `w` and the values `y`.
pub(super) fn score(weights: &[f64], along: impl IntoIterator<Item = f64>, clip: f64) -> f64 {
    2.0 * clip * weights.iter().zip(along).map(|(weight, y)| weight * y).sum::<f64>()
}

#[cfg(test)]
mod tests {
    use floras_core::Masks;
    use floras_privacy::MaskBound;

    use super::*;

    /// `μ² = Δ²·(Σ⁻¹)_00` with `Δ = 2`.
    fn mu(covariance: &Covariance) -> f64 {
        2.0 * covariance.weights()[0].sqrt()
    }

    fn close(found: f64, expected: f64) -> bool {
        (found - expected).abs() <= 1e-10 * expected.abs()
    }

    /// `(D − σ_p²·11ᵀ)⁻¹e_0` by Sherman and Morrison, for a diagonal `D`.
    fn by_sherman_morrison(diagonal: &[f64], pair_variance: f64) -> Vec<f64> {
        let inverse_sum: f64 = diagonal.iter().map(|d| 1.0 / d).sum();
        let factor = pair_variance / (1.0 - pair_variance * inverse_sum) / diagonal[0];
        let other = |(client, d): (usize, &f64)| f64::from(u8::from(client == 0)) / d + factor / d;
        diagonal.iter().enumerate().map(other).collect()
    }

    #[test]
    fn cholesky_agrees_with_sherman_and_morrison() {
        for (present, sharing) in [(2, 2), (10, 10), (9, 10), (3, 12)] {
            let noise: Vec<f64> = (0..present).map(|client| 0.01 * (client * client) as f64).collect();
            let weights = Covariance::of_masks(present, sharing, 1.7, 0.3).with_noise(&noise).weights();
            let diagonal: Vec<f64> = noise.iter().map(|noise| sharing as f64 * 1.7 + 0.3 + noise).collect();
            for (found, expected) in weights.iter().zip(by_sherman_morrison(&diagonal, 1.7)) {
                assert!(close(*found, expected), "{found}, {expected}");
            }
        }
    }

    /// Complete rounds, and rounds after `a` clients have revealed their masks.
    #[test]
    fn the_distinguisher_has_the_mu_of_the_bound() {
        for (clients, colluding) in [(2, 0), (10, 0), (10, 1), (10, 8), (12, 5)] {
            let masks = Masks::new(6.0, 0.8, colluding as u32).unwrap();
            let bound = MaskBound::new(masks, clients as u64, 2.0).unwrap();
            let (honest, pair_variance) = (clients - colluding, 36.0 / clients as f64);
            let found = mu(&Covariance::of_masks(honest, honest, pair_variance, 0.64));
            assert!(close(found, bound.mu()), "{found}, {}", bound.mu());
        }
    }

    #[test]
    fn silent_clients_do_not_increase_mu() {
        let of = |present| mu(&Covariance::of_masks(present, 10, 3.6, 0.64));
        for present in 1..10 {
            assert!(of(present) < of(present + 1), "{present} present");
        }
    }

    /// Masks among the other clients do not affect the victim; the scale of their shared masks does.
    #[test]
    fn only_the_scale_of_shared_masks_matters() {
        for clients in [2, 3, 10] {
            let star = |of_others: f64| mu(&Covariance::of_star(clients, 1.9, of_others, 0.64));
            let complete = mu(&Covariance::of_masks(clients, clients, 3.61, 0.64));
            assert!(close(star(1.9), complete), "{}, {complete}", star(1.9));
            assert!(star(4.0) > complete);
        }
    }

    #[test]
    fn a_singular_matrix_yields_no_numbers() {
        assert!(Covariance::of_masks(4, 4, 1.0, -1e-3).weights().iter().any(|weight| weight.is_nan()));
    }
}
