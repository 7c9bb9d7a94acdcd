//! The bound of masks: an adversary who sees everything that every client transmits, exactly.
//!
//! Client `k` of `K` sends `u_k = x_k + z_k + m_k` ([`Masks`]). Coordinate by coordinate, `(u_1 … u_K)` is `x + N(0, Σ)` with
//!
//! ```text
//! Σ = (σ_m²/K)·(K·I − 11ᵀ) + σ_z²·I,     eigenvalues σ_z² on 1 and σ_m² + σ_z² on its complement.
//! ```
//!
//! If a client moves by `Δ`, the round is a Gaussian mechanism with `μ² = Δ²·(Σ⁻¹)_kk`. If `a` clients reveal their masks and
//! noise, `H = K − a` honest ones are left. Their masks among each other have `Σ_H = (σ_m²/K)·(H·I − 11ᵀ) + σ_z²·I`:
//!
//! ```text
//! μ² = Δ²·[(1 − 1/H)/(σ_m²·H/K + σ_z²) + 1/(H·σ_z²)]
//! ```
//!
//! Everything that a receiver obtains from the radio is computed from the `u_k` and from noise that does not depend on the data.
//! So this bounds every view. If clients are silent, the covariance is a principal submatrix of `Σ_H`, whose inverse has no larger
//! diagonal: `μ` does not increase. The adversary sees who transmits, so there is no amplification by sampling.
//!
//! # Citations
//! Bonawitz et al., *Practical secure aggregation for privacy-preserving machine learning*, CCS 2017, for pairwise masks. Liao,
//! Chen, Larsson, *Over-the-air federated learning with privacy protection via correlated additive perturbations*,
//! arXiv:2210.02235, for perturbations that cancel in the sum. Balle, Wang, *Improving the Gaussian mechanism*, ICML 2018.

use floras_core::Masks;

use crate::engine::distribution::MuDistribution;
use crate::error::{PrivacyError, require_positive};

/// The adversary of the bound of masks.
pub(crate) const ADVERSARY: &str =
    "an adversary who sees every symbol that every client transmits, all channels and all receiver noise";
/// The same adversary for local noise without masks.
pub(crate) const ADVERSARY_WITHOUT_MASKS: &str =
    "an adversary who sees everything that every client transmits, all channels and all receiver noise";

/// The assumption of the number for `K` of `M` clients.
pub(crate) const RANDOM_SELECTION: &str = "the adversary sees which clients take part, and does not select them: against a base \
     station that selects them, the number for a client in every round holds";

/// The privacy loss of one client in a round with masks and local noise, against an adversary who sees every transmitted symbol.
///
/// ```
/// use floras_core::Masks;
/// use floras_privacy::MaskBound;
///
/// // Large masks turn the noise of 100 clients into central noise of standard deviation √100·σ_z.
/// let bound = MaskBound::new(Masks::new(1e6, 0.4, 0)?, 100, 2.0)?;
/// assert!((bound.mu() - 2.0 / 4.0).abs() < 1e-6);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct MaskBound {
    pub(crate) curve: MuDistribution,
    pub(crate) assumptions: Vec<String>,
    pub(crate) adversary: &'static str,
    /// Whether clients receive the list of participants, or some of them work with the adversary: sampling then amplifies nothing.
    pub(crate) shows_participants: bool,
    mu: f64,
}

impl MaskBound {
    /// The bound for rounds with `per_round = K` selected clients, any of which may be silent, and updates that move by at most
    /// `sensitivity = Δ` in norm.
    pub fn new(masks: Masks, per_round: u64, sensitivity: f64) -> Result<Self, PrivacyError> {
        require_positive("the sensitivity", sensitivity)?;
        let honest = honest(masks, per_round)?;
        let mu = mu(masks, honest as f64, per_round as f64, sensitivity);
        let assumptions = assumptions(masks, honest);
        let adversary = if masks.mask_std() > 0.0 { ADVERSARY } else { ADVERSARY_WITHOUT_MASKS };
        let shows_participants = masks.mask_std() > 0.0 || masks.colluding() > 0;
        Ok(Self { curve: MuDistribution::Constant(mu), assumptions, adversary, shows_participants, mu })
    }

    /// `μ` of a round in which a client takes part, rounded up. All rounds of a client are a Gaussian mechanism with `√T·μ`.
    pub fn mu(&self) -> f64 {
        self.mu
    }
}

/// The masks of standard deviation `mask_std` whose local noise is just sufficient for `μ` in a round. `per_round = K`,
/// `colluding = a` and `sensitivity = Δ` are those of [`MaskBound::new`]. The noise is rounded up to six digits.
///
/// With `A = σ_m²·H/K` and `q = (μ/Δ)²`, the bound is `q·z² + (q·A − 1)·z − A/H = 0` in `z = σ_z²`.
pub(crate) fn masks_for(
    mu: f64,
    sensitivity: f64,
    per_round: u64,
    colluding: u32,
    mask_std: f64,
) -> Result<Masks, PrivacyError> {
    let honest = honest(Masks::new(mask_std, 1.0, colluding)?, per_round)? as f64;
    // In units of Δ/μ, so that q = 1.
    let unit = sensitivity / mu;
    let a = (mask_std / unit).powi(2) * honest / per_round as f64;
    let root = ((1.0 - a).powi(2) + 4.0 * a / honest).sqrt();
    // The form of the positive root that has no cancellation.
    let z = if a < 1.0 { 0.5 * (1.0 - a + root) } else { 2.0 * a / honest / (a - 1.0 + root) };
    let noise_std = unit * z.sqrt() * (1.0 + 1e-12);
    Ok(Masks::new(mask_std, with_digits(noise_std, 6, f64::ceil), colluding)?)
}

/// The number rounded by `round` to this many significant decimal digits.
pub(crate) fn with_digits(number: f64, digits: i32, round: impl Fn(f64) -> f64) -> f64 {
    let exponent = number.log10().floor() as i32 + 1 - digits;
    // Parsing the decimal text yields the double that the short number stands for.
    let steps = round(number / 10_f64.powi(exponent));
    format!("{steps}e{exponent}").parse().unwrap_or(number)
}

/// `H = K − a`, at least 2 if there are colluders.
fn honest(masks: Masks, per_round: u64) -> Result<u64, PrivacyError> {
    let colluding = u64::from(masks.colluding());
    if colluding > 0 && colluding + 2 > per_round {
        return Err(PrivacyError::Inconsistent {
            name: "the number of colluding clients",
            allowed: match per_round {
                0..2 => "0 with a single client per round".to_owned(),
                clients => format!("at most {}: two of {clients} clients per round stay honest", clients - 2),
            },
            value: colluding,
        });
    }
    Ok(per_round.saturating_sub(colluding).max(1))
}

fn mu(masks: Masks, honest: f64, clients: f64, sensitivity: f64) -> f64 {
    let (mask, noise) = (masks.mask_std(), masks.noise_std());
    // Relative to the noise, to avoid overflow of a square.
    let ratio = mask / noise;
    let masked = (1.0 - 1.0 / honest) / (ratio * ratio * honest / clients + 1.0);
    // A dozen roundings, each of at most 2⁻⁵³.
    sensitivity / noise * (masked + 1.0 / honest).sqrt() * (1.0 + 1e-14)
}

fn assumptions(masks: Masks, honest: u64) -> Vec<String> {
    let noise = format!(
        "every honest client draws its noise, of standard deviation {}, from a generator that the adversary cannot predict",
        masks.noise_std()
    );
    if masks.mask_std() == 0.0 {
        return vec![noise];
    }
    let colluding = masks.colluding();
    let bound = match colluding {
        0 => "no selected client reveals its keys or its noise".to_owned(),
        1 => "at most 1 selected client reveals its keys or its noise".to_owned(),
        some => format!("at most {some} selected clients reveal their keys or their noise"),
    };
    vec![
        noise,
        "masks are computational: they are as good as X25519, HKDF and ChaCha20, and no seed is used twice"
            .to_owned(),
        format!(
            "of the clients selected for a round, at least {honest} are honest: {bound}, and the base station enrols no more \
             clients of its own"
        ),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The covariance of `H` honest clients of `K`, built from its pairwise masks.
    fn covariance(masks: Masks, honest: usize, clients: usize) -> Vec<Vec<f64>> {
        let pair = masks.mask_std().powi(2) / clients as f64;
        let mut covariance = vec![vec![0.0; honest]; honest];
        for k in 0..honest {
            covariance[k][k] += masks.noise_std().powi(2);
            for j in 0..k {
                // p_{kj} enters k with one sign and j with the other.
                covariance[k][k] += pair;
                covariance[j][j] += pair;
                covariance[k][j] -= pair;
                covariance[j][k] -= pair;
            }
        }
        covariance
    }

    /// `(Σ⁻¹)_kk` by Cholesky's factors `Σ = LLᵀ`: the squared norm of the solution of `L·y = e_k`.
    fn inverse_diagonal(covariance: &[Vec<f64>], k: usize) -> f64 {
        let n = covariance.len();
        let mut factor = vec![vec![0.0; n]; n];
        for i in 0..n {
            for j in 0..=i {
                let sum: f64 = (0..j).map(|l| factor[i][l] * factor[j][l]).sum();
                let rest = covariance[i][j] - sum;
                factor[i][j] = if i == j { rest.sqrt() } else { rest / factor[j][j] };
            }
        }
        let mut solution = vec![0.0; n];
        for i in 0..n {
            let sum: f64 = (0..i).map(|l| factor[i][l] * solution[l]).sum();
            solution[i] = (f64::from(u8::from(i == k)) - sum) / factor[i][i];
        }
        solution.iter().map(|y| y * y).sum()
    }

    const CASES: [(f64, f64, u32, usize); 8] = [
        (1.0, 1.0, 0, 2),
        (2.0, 0.1, 0, 3),
        (0.0, 0.7, 0, 5),
        (3.0, 0.2, 1, 5),
        (3.0, 0.2, 3, 5),
        (10.0, 0.05, 4, 20),
        (0.5, 2.0, 18, 20),
        (30.0, 1.5, 7, 60),
    ];

    #[test]
    fn the_closed_form_inverts_the_covariance() {
        for (mask_std, noise_std, colluding, clients) in CASES {
            let masks = Masks::new(mask_std, noise_std, colluding).unwrap();
            let honest = clients - colluding as usize;
            let exact = 2.0 * inverse_diagonal(&covariance(masks, honest, clients), honest / 2).sqrt();
            let mu = MaskBound::new(masks, clients as u64, 2.0).unwrap().mu();
            assert!((mu / exact - 1.0).abs() < 1e-9, "{masks:?}, K = {clients}: {mu}, not {exact}");
        }
    }

    #[test]
    fn silent_clients_never_increase_mu() {
        for (mask_std, noise_std, colluding, clients) in CASES {
            let masks = Masks::new(mask_std, noise_std, colluding).unwrap();
            let honest = clients - colluding as usize;
            let whole = covariance(masks, honest, clients);
            let mu = MaskBound::new(masks, clients as u64, 2.0).unwrap().mu();
            for sending in 1..=honest {
                let part: Vec<Vec<f64>> =
                    whole[..sending].iter().map(|row| row[..sending].to_vec()).collect();
                let left = 2.0 * inverse_diagonal(&part, 0).sqrt();
                assert!(left <= mu * (1.0 + 1e-9), "{masks:?}, {sending} of {clients} send: {left} > {mu}");
            }
        }
    }

    #[test]
    fn limits_are_central_and_local_noise() {
        let mu = |mask_std, clients| {
            MaskBound::new(Masks::new(mask_std, 0.25, 0).unwrap(), clients, 2.0).unwrap().mu()
        };
        assert!((mu(0.0, 100) / 8.0 - 1.0).abs() < 1e-12);
        assert!((mu(1e9, 100) / 0.8 - 1.0).abs() < 1e-12);
        assert!((mu(5.0, 1) / 8.0 - 1.0).abs() < 1e-12);
    }

    #[test]
    fn noise_for_a_mu_has_that_mu() {
        for (clients, colluding) in [(2, 0), (20, 0), (20, 7), (1000, 100), (1, 0)] {
            for mu in [0.01, 0.3, 5.0] {
                for ratio in [0.0, 1e-3, 0.5, 1.0, 3.0, 1e3] {
                    let masks = masks_for(mu, 2.0, clients, colluding, ratio * 2.0 / mu).unwrap();
                    let found = MaskBound::new(masks, clients, 2.0).unwrap().mu();
                    assert!(
                        (0.99998..=1.0 + 1e-12).contains(&(found / mu)),
                        "{masks:?}, {clients}: {found}, {mu}"
                    );
                }
            }
        }
    }

    #[test]
    fn two_clients_have_to_stay_honest() {
        let bound = |colluding, clients| {
            MaskBound::new(Masks::new(1.0, 1.0, colluding).unwrap(), clients, 2.0).map(|bound| bound.mu())
        };
        assert!(bound(3, 5).is_ok());
        let error = bound(4, 5).unwrap_err().to_string();
        assert_eq!(
            error,
            "the number of colluding clients must be at most 3: two of 5 clients per round stay honest, not 4"
        );
    }
}
