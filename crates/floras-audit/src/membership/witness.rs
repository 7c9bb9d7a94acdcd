//! Three adversaries observe one round of real updates, and test two hypotheses about one client's update.
//!
//! They know the data of all other clients, hence their updates, and have trained the watched client's model in both worlds,
//! with their own order of mini-batches: `m₁` and `m₀`. With `y` their observation of the client's update, under gain `g` and
//! noise `ν`,
//!
//! ```text
//! ln p₁(y)/p₀(y) = (⟨y, g(m₁ − m₀)⟩ − g²(‖m₁‖² − ‖m₀‖²)/2)/ν²
//! ```

use floras_core::Fidelity;
use floras_phy::{EffectiveChannel, Round, Uplink, UplinkError, precode, transmit};
use floras_sim::{Settings, purpose};
use rand_distr::{Distribution, StandardNormal};

use crate::game::despread;
use crate::inner::dot;

/// The scores of each adversary for one round or several.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Verdict {
    pub(super) released_model: f64,
    pub(super) decoder: f64,
    /// 0 for schemes without spreading.
    pub(super) raw_signal: f64,
}

impl Verdict {
    pub(super) fn add(self, other: Self) -> Self {
        Self {
            released_model: self.released_model + other.released_model,
            decoder: self.decoder + other.decoder,
            raw_signal: self.raw_signal + other.raw_signal,
        }
    }
}

/// The watched client's expected update, as it would be sent.
pub(super) struct Hypotheses {
    /// `m₁ − m₀`.
    difference: Vec<f32>,
    /// `(‖m₁‖² − ‖m₀‖²)/2`.
    offset: f64,
}

impl Hypotheses {
    pub(super) fn new(with: &[f32], without: &[f32]) -> Self {
        let difference = with.iter().zip(without).map(|(one, other)| one - other).collect();
        Self { difference, offset: 0.5 * (dot(with, with) - dot(without, without)) }
    }

    /// The log-likelihood ratio, given `⟨y, m₁ − m₀⟩`.
    fn log_likelihood_ratio(&self, along: f64, gain: f64, noise_std: f64) -> f64 {
        let exponent = gain * along - gain * gain * self.offset;
        if gain == 0.0 || self.difference.iter().all(|&value| value == 0.0) {
            0.0
        } else if noise_std == 0.0 {
            exponent.signum() * f64::INFINITY
        } else {
            exponent / (noise_std * noise_std)
        }
    }
}

/// The updates of a round as sent, and the index of the watched client.
pub(super) struct Sent<'a> {
    pub(super) updates: &'a [Vec<f32>],
    pub(super) watched: usize,
}

/// The uplink that the adversaries observe.
pub(super) struct Witness<'a> {
    pub(super) settings: &'a Settings,
    pub(super) uplink: &'a dyn Uplink,
    /// The uplink without masks, if its raw samples are attacked.
    pub(super) spread: Option<&'a dyn Uplink>,
}

impl Witness<'_> {
    /// Sends the updates of a round over the air and returns the scores of all three adversaries.
    pub(super) fn score(
        &self,
        round: &Round<'_>,
        sent: &Sent<'_>,
        hypotheses: &Hypotheses,
    ) -> Result<Verdict, UplinkError> {
        let decoded = transmit(self.uplink, round, sent.updates, self.fidelity())?;
        let decoder = decoder(&decoded.sum, &decoded.channel, sent, hypotheses);
        let mut released = decoded.sum;
        if let Some(bound) = self.settings.uplink.truncate {
            precode::truncate(&mut released, bound)?;
        }
        Ok(Verdict {
            released_model: released_model(&released, sent, hypotheses),
            decoder,
            raw_signal: self.raw_signal(round, sent, hypotheses)?,
        })
    }

    /// Real masks at the chip level need `K²·d` values per round, and agree in distribution with the symbol level.
    fn fidelity(&self) -> Fidelity {
        if self.settings.masks.is_some() { Fidelity::Symbol } else { self.settings.uplink.fidelity }
    }

    /// The adversary knows the client's sequence, and despreads it: `z = h·x + s·n`.
    fn raw_signal(
        &self,
        round: &Round<'_>,
        sent: &Sent<'_>,
        hypotheses: &Hypotheses,
    ) -> Result<f64, UplinkError> {
        let Some(uplink) = self.spread else { return Ok(0.0) };
        let seen = despread(uplink, round)?;
        let normal: f64 = StandardNormal.sample(&mut round.stream(purpose::DESPREAD_NOISE));
        let size = dot(&hypotheses.difference, &hypotheses.difference).sqrt();
        let arrived =
            seen.amplitudes[sent.watched] * dot(&sent.updates[sent.watched], &hypotheses.difference);
        let along = arrived + seen.symbol_noise_std * size * normal;
        Ok(hypotheses.log_likelihood_ratio(
            along,
            seen.estimates[seen.assigned[sent.watched]],
            seen.symbol_noise_std,
        ))
    }
}

/// The adversary knows every gain, and subtracts all other updates.
fn decoder(sum: &[f32], channel: &EffectiveChannel, sent: &Sent<'_>, hypotheses: &Hypotheses) -> f64 {
    let others: f64 = others_of(sent)
        .map(|place| channel.gains()[place] * dot(&sent.updates[place], &hypotheses.difference))
        .sum();
    let along = dot(sum, &hypotheses.difference) - others;
    hypotheses.log_likelihood_ratio(along, channel.gains()[sent.watched], channel.noise_std())
}

/// The adversary assumes that every gain is 1, and that the residual is noise.
fn released_model(sum: &[f32], sent: &Sent<'_>, hypotheses: &Hypotheses) -> f64 {
    let mut rest = sum.to_vec();
    for place in others_of(sent) {
        rest.iter_mut().zip(&sent.updates[place]).for_each(|(rest, known)| *rest -= known);
    }
    let spread = (dot(&rest, &rest) / rest.len() as f64).sqrt();
    hypotheses.log_likelihood_ratio(dot(&rest, &hypotheses.difference), 1.0, spread)
}

fn others_of(sent: &Sent<'_>) -> impl Iterator<Item = usize> {
    let watched = sent.watched;
    (0..sent.updates.len()).filter(move |&place| place != watched)
}

#[cfg(test)]
mod tests {
    use floras_core::{Fading, Modulation, Receiver, Snr, SnrConvention};
    use floras_phy::{Floras, FlorasSettings, Ideal, SequenceSet};

    use super::*;

    fn floras(snr_db: f64) -> Floras {
        Floras::new(FlorasSettings {
            sequences: SequenceSet::walsh(6, 8).unwrap(),
            modulation: Modulation::Real,
            receiver: Receiver::clipped(1.0).unwrap(),
            channels: Fading::Rayleigh.into(),
            snr: Snr::new(snr_db, SnrConvention::Symbol).unwrap(),
            ..FlorasSettings::default()
        })
    }

    /// Three clients with updates of 40 numbers; the second is watched.
    fn updates() -> Vec<Vec<f32>> {
        let value = |client: usize, i: usize| ((7 * client + 3 * i) % 11) as f32 / 11.0 - 0.4;
        (0..3).map(|client| (0..40).map(|i| value(client, i)).collect()).collect()
    }

    /// `(‖y − g·m₀‖² − ‖y − g·m₁‖²)/(2ν²)`, from the densities themselves.
    #[test]
    fn the_decoder_computes_a_likelihood_ratio() {
        let (uplink, updates) = (floras(5.0), updates());
        let settings = Settings::default();
        let other: Vec<f32> = updates[1].iter().map(|value| 0.5 - value * value).collect();
        let hypotheses = Hypotheses::new(&updates[1], &other);
        let sent = Sent { updates: &updates, watched: 1 };
        let witness = Witness { settings: &settings, uplink: &uplink, spread: Some(&uplink) };
        for number in 0..20 {
            let round = Round::new(2, 3, number + 1, &[4, 5, 6]).unwrap();
            let found = witness.score(&round, &sent, &hypotheses).unwrap().decoder;
            let decoded = transmit(&uplink, &round, &updates, Fidelity::Symbol).unwrap();
            let (gains, noise_std) = (decoded.channel.gains(), decoded.channel.noise_std());
            let distance = |expected: &[f32]| -> f64 {
                let term = |i: usize| {
                    let others = gains[0] * f64::from(updates[0][i]) + gains[2] * f64::from(updates[2][i]);
                    (f64::from(decoded.sum[i]) - others - gains[1] * f64::from(expected[i])).powi(2)
                };
                (0..40).map(term).sum()
            };
            let expected = (distance(&other) - distance(&updates[1])) / (2.0 * noise_std * noise_std);
            assert!((found - expected).abs() < 1e-3 * (1.0 + expected.abs()), "{found}, {expected}");
        }
    }

    /// Over 400 rounds at 20 dB, with hypotheses at distance 3.
    #[test]
    fn raw_samples_reveal_more_than_the_sum() {
        let (uplink, updates) = (floras(20.0), updates());
        let settings = Settings::default();
        let other: Vec<f32> = updates[1].iter().map(|value| value - 0.5).collect();
        let hypotheses = Hypotheses::new(&updates[1], &other);
        let sent = Sent { updates: &updates, watched: 1 };
        let witness = Witness { settings: &settings, uplink: &uplink, spread: Some(&uplink) };
        let scores: Vec<Verdict> = (0..400)
            .map(|number| {
                let round = Round::new(2, 4, number + 1, &[4, 5, 6]).unwrap();
                witness.score(&round, &sent, &hypotheses).unwrap()
            })
            .collect();
        let right = |of: fn(&Verdict) -> f64| scores.iter().filter(|verdict| of(verdict) > 0.0).count();
        let (released, decoder, raw) =
            (right(|v| v.released_model), right(|v| v.decoder), right(|v| v.raw_signal));
        assert!(released > 200 && decoder > 220, "{released}, {decoder}");
        assert!(raw > 380 && raw > decoder, "{raw}, {decoder}");
    }

    /// The same channel and `μ` as above: verdicts on the truth are `N(½, 1)`. Standard errors of 4,000 rounds are 0.016 and 0.022.
    #[test]
    fn raw_samples_have_the_channels_own_noise() {
        let settings = FlorasSettings {
            channels: Fading::None.into(),
            snr: Snr::new(20.0 * 50_f64.log10(), SnrConvention::Despread).unwrap(),
            ..floras(0.0).settings().clone()
        };
        let uplink = Floras::new(settings);
        let (updates, settings) = (updates(), Settings::default());
        let other: Vec<f32> = updates[1].iter().map(|value| value - 0.02 / 40_f32.sqrt()).collect();
        let hypotheses = Hypotheses::new(&updates[1], &other);
        let sent = Sent { updates: &updates, watched: 1 };
        let witness = Witness { settings: &settings, uplink: &uplink, spread: Some(&uplink) };
        let score = |number: u32| {
            let round = Round::new(2, 6, number + 1, &[4, 5, 6]).unwrap();
            let seen = uplink.despread(&round).unwrap();
            // The comparison omits the product of the pilot's error and an update that is 100 times the difference.
            let pilot = seen.estimates[seen.assigned[1]];
            let bias = (seen.amplitudes[1] - pilot) * pilot * dot(&updates[1], &hypotheses.difference);
            witness.raw_signal(&round, &sent, &hypotheses).unwrap() - bias / seen.symbol_noise_std.powi(2)
        };
        let scores: Vec<f64> = (0..4000).map(score).collect();
        let mean = scores.iter().sum::<f64>() / 4000.0;
        let variance = scores.iter().map(|score| (score - mean).powi(2)).sum::<f64>() / 4000.0;
        assert!((mean - 0.5).abs() < 0.07, "{mean}");
        assert!((variance - 1.0).abs() < 0.1, "{variance}");
    }

    #[test]
    fn verdicts_without_noise_or_difference() {
        let updates = updates();
        let settings = Settings::default();
        let witness = Witness { settings: &settings, uplink: &Ideal, spread: None };
        let round = Round::new(2, 5, 1, &[4, 5, 6]).unwrap();
        let sent = Sent { updates: &updates, watched: 1 };
        let score =
            |other: &[f32]| witness.score(&round, &sent, &Hypotheses::new(&updates[1], other)).unwrap();
        let certain = score(&updates[0]);
        assert_eq!((certain.decoder, certain.raw_signal), (f64::INFINITY, 0.0));
        assert_eq!(score(&updates[1]), Verdict::default());
    }
}
