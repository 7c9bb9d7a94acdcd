//! Masks: values that clients add to their updates so that even raw samples do not show a single update.
//!
//! In each round, client `k` of `K` sends
//!
//! ```text
//! u_k = x_k + z_k + m_k,     z_k ~ N(0, σ_z² I),     m_k = Σ_{j≠k} sgn(j − k)·p_{kj},     p_{kj} = p_{jk} ~ N(0, (σ_m²/K) I)
//! ```
//!
//! `z_k` is its own noise. `p_{kj}` comes from a secret that only `k` and `j` share, and `Σ_k m_k = 0`.

use serde::{Deserialize, Serialize};

use crate::choice::ChoiceError;

/// Masks and local noise, in range by construction: `{ mask_std = 2, noise_std = 0.1, colluding = 0 }` in a file.
///
/// ```
/// use floras_core::Masks;
///
/// let masks = Masks::new(3.0, 0.5, 0)?;
/// // σ_m²·(1 − 1/K) + σ_z² for K = 3.
/// assert!((masks.symbol_power(3) - 6.25).abs() < 1e-12);
/// # Ok::<(), floras_core::ChoiceError>(())
/// ```
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Serialize)]
#[serde(try_from = "Parts", into = "Parts")]
pub struct Masks(Parts);

#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields, expecting = "a table, { mask_std = m, noise_std = z, colluding = a }")]
struct Parts {
    #[serde(default)]
    mask_std: f64,
    noise_std: f64,
    #[serde(default)]
    colluding: u32,
}

impl Masks {
    /// Name of the masks' standard deviation in errors.
    pub const MASK_STD: &'static str = "standard deviation of the masks";
    /// Name of the noise's standard deviation in errors.
    pub const NOISE_STD: &'static str = "standard deviation of the clients' noise";

    /// Masks of standard deviation `mask_std`, 0 or between 1e-30 and 1e30, and noise of `noise_std`, between 1e-30 and 1e30, in
    /// the units of an update. `colluding` clients reveal their secrets to the adversary.
    pub fn new(mask_std: f64, noise_std: f64, colluding: u32) -> Result<Self, ChoiceError> {
        Parts { mask_std, noise_std, colluding }.try_into()
    }

    /// `σ_m`: the standard deviation of a client's mask, times `√(K/(K − 1))`. 0 for local noise alone.
    pub fn mask_std(self) -> f64 {
        self.0.mask_std
    }

    /// `σ_z`: the standard deviation of the noise that each client adds to each of its parameters; above 0.
    pub fn noise_std(self) -> f64 {
        self.0.noise_std
    }

    /// `a`: the number of clients per round that may reveal their secrets.
    pub fn colluding(self) -> u32 {
        self.0.colluding
    }

    /// `σ_m²·(1 − 1/K) + σ_z²`: the mean square of masks plus noise in one parameter of one of `clients = K ≥ 1`.
    pub fn symbol_power(self, clients: usize) -> f64 {
        let Parts { mask_std, noise_std, .. } = self.0;
        mask_std * mask_std * (1.0 - 1.0 / clients.max(1) as f64) + noise_std * noise_std
    }

    /// Variance that masks and noise leave in one parameter of the decoded sum, with `square_sum = Σ_k |g_k|²` and `sum_square
    /// = |Σ_k g_k|²` over the clients that send, out of `clients = K` selected ones:
    ///
    /// ```text
    /// σ_m²·(Σ|g_k|² − |Σ g_k|²/K) + σ_z²·Σ|g_k|²
    /// ```
    ///
    /// A silent client has gain 0; the masks that it shares with other clients remain in the sum.
    pub fn decoded_variance(self, square_sum: f64, sum_square: f64, clients: usize) -> f64 {
        let Parts { mask_std, noise_std, .. } = self.0;
        let uncancelled = (square_sum - sum_square / clients.max(1) as f64).max(0.0);
        mask_std * mask_std * uncancelled + noise_std * noise_std * square_sum
    }
}

impl TryFrom<Parts> for Masks {
    type Error = ChoiceError;

    fn try_from(parts: Parts) -> Result<Self, ChoiceError> {
        let refuse = |what, allowed: &str, value: f64| {
            Err(ChoiceError { what, allowed: allowed.to_owned(), value: value.to_string() })
        };
        let range = 1e-30..=1e30;
        if parts.mask_std != 0.0 && !range.contains(&parts.mask_std) {
            return refuse(Masks::MASK_STD, "0 or between 1e-30 and 1e30", parts.mask_std);
        }
        if !range.contains(&parts.noise_std) {
            return refuse(Masks::NOISE_STD, "between 1e-30 and 1e30", parts.noise_std);
        }
        Ok(Self(parts))
    }
}

impl From<Masks> for Parts {
    fn from(masks: Masks) -> Self {
        masks.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn masks_out_of_range_are_refused() {
        let refusal = |mask_std, noise_std| Masks::new(mask_std, noise_std, 0).unwrap_err().to_string();
        assert_eq!(
            refusal(-1.0, 1.0),
            "the standard deviation of the masks must be 0 or between 1e-30 and 1e30, not -1"
        );
        for noise_std in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            assert!(refusal(1.0, noise_std).contains("clients' noise must be between 1e-30 and 1e30, not"));
        }
        assert!(Masks::new(f64::NAN, 1.0, 0).is_err() && Masks::new(f64::INFINITY, 1.0, 0).is_err());
        let read = |text: &str| serde_json::from_str::<Masks>(text);
        assert_eq!(read(r#"{"noise_std": 2}"#).unwrap(), Masks::new(0.0, 2.0, 0).unwrap());
        assert!(read(r#"{"mask_std": 2}"#).unwrap_err().to_string().contains("noise_std"));
    }

    /// Masks of three clients by hand: with σ_p² = 1, `Σ g_k m_k` has the variance `Σ_{i<j} (g_i − g_j)²`.
    #[test]
    fn what_is_left_of_masks_is_their_disagreement() {
        let masks = Masks::new(3.0_f64.sqrt(), 0.5, 0).unwrap();
        let left = |gains: [f64; 3]| {
            let square_sum: f64 = gains.iter().map(|g| g * g).sum();
            masks.decoded_variance(square_sum, gains.iter().sum::<f64>().powi(2), 3) - 0.25 * square_sum
        };
        assert!(left([1.0; 3]).abs() < 1e-12);
        assert!((left([1.0, 0.5, 2.0]) - (0.25 + 1.0 + 2.25)).abs() < 1e-12);
        // The third is silent: its masks with the two others remain.
        assert!((left([1.0, 1.0, 0.0]) - 2.0).abs() < 1e-12);
    }
}
