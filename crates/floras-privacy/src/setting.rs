//! The privacy setting of a federation: participation, transmitted updates, and assumptions about the radio.

use floras_core::{Clipping, Level, LocalWork, Masks, Neighbours, Pilot, Receiver, View};

use crate::account::Source;
use crate::engine::distribution::MuDistribution;
use crate::engine::sampling::Sampling;
use crate::error::{PrivacyError, require, require_delta, require_positive};
use crate::published::theorems::{Participation, PublishedRound, Weight, batch_ratio};
use crate::views::actual::Coefficients;
use crate::views::masks::MaskBound;
use crate::views::receiver::clipped_mean_of_branches;
use crate::views::{self, boxed};

/// The largest `K`, `M` and `N`.
const MAX_COUNT: u64 = 1_000_000_000;

/// The unit of privacy: a [`Level`] with its parameters.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum PrivacyUnit {
    /// All data of a client.
    #[default]
    Client,
    /// One sample of a client. Every client holds at least `samples` samples.
    Item {
        /// `b`, samples per mini-batch.
        batch: u64,
        /// `D`, samples per client.
        samples: u64,
        /// The local work of a client in a round.
        local: LocalWork,
    },
}

impl PrivacyUnit {
    /// The level without its parameters.
    pub fn level(self) -> Level {
        match self {
            Self::Client => Level::Client,
            Self::Item { .. } => Level::Item,
        }
    }

    /// The probability that the data of a client or an item enter a round with `per_round = K` of `clients = M`.
    ///
    /// `n` mini-batches of `b` out of `D` samples repeat a sample only after a whole pass, which leaves out at most `D mod b` samples.
    /// So they contain a given sample with probability `n·b/D` within a pass, and with at most that probability beyond it:
    ///
    /// ```text
    /// (K/M)·min(1, n·b/D)     n steps,          K/M     epochs
    /// ```
    ///
    /// If the batches do not contain the sample, the update does not depend on it. If they do, the whole update moves by at most `2C`,
    /// after any number of steps. So amplification by subsampling holds as for one step.
    pub fn sampling(self, per_round: u64, clients: u64, neighbours: Neighbours) -> Sampling {
        let one_more = f64::from(u8::from(neighbours == Neighbours::AddRemove));
        let probability = match self {
            Self::Client => per_round as f64 / (clients as f64 + one_more),
            Self::Item { batch, samples, local } => {
                let of_client = per_round as f64 / clients as f64;
                match local {
                    LocalWork::Steps(steps) => {
                        let used = f64::from(steps.get()) * batch as f64;
                        (of_client * used / (samples as f64 + one_more)).min(of_client)
                    }
                    LocalWork::Epochs => of_client,
                }
            }
        };
        match neighbours {
            Neighbours::ReplaceOne if probability >= 1.0 => Sampling::Everyone,
            Neighbours::ReplaceOne => Sampling::ReplaceOne(probability),
            Neighbours::AddRemove => Sampling::AddRemove(probability),
        }
    }
}

/// The reason why there is no guarantee under the paper's normalisation.
pub const NORMALISED: &str = "the paper's normalisation sends the updates' means and their common scale in the clear, and both \
     depend on the data; one client rescales all, so that the sensitivity counted here is (K+1)·C. Fixed clipping has no \
     such gap";

/// Allowed deviations of the radio from the model between pilot and payload. The default allows none.
///
/// With pilot noise `ρ·s`, weights and noise are those of a receiver with the level `c/ρ` and the sensitivity `ρ·Δ`, in units of the
/// pilot's noise: `u = max(|t + ρe|, c) = ρ·max(|t/ρ + e|, c/ρ)`. A channel that grows by a factor `κ` from pilot to payload multiplies
/// `μ` by `κ`. An unused sequence with a foreign pilot counts as one without noise.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Margins {
    /// `ρ`: standard deviation of the pilot noise relative to its nominal value, from 0.01 to 100. For the paper's pilot the nominal
    /// value is the payload noise.
    pub pilot_noise: f64,
    /// `κ`: the largest ratio of a client's channel in the payload to its channel in the pilot, from 1 to 1000.
    pub channel_growth: f64,
    /// Number of unused sequences on which another sender may transmit a pilot; at most all unused sequences.
    pub foreign_pilots: u64,
}

impl Default for Margins {
    fn default() -> Self {
        Self { pilot_noise: 1.0, channel_growth: 1.0, foreign_pilots: 0 }
    }
}

impl Margins {
    fn check(self, unused: u64) -> Result<(), PrivacyError> {
        let Self { pilot_noise, channel_growth, foreign_pilots } = self;
        let in_range = (0.01..=100.0).contains(&pilot_noise);
        require(
            in_range,
            "the pilot noise relative to the payload noise",
            "between 0.01 and 100",
            pilot_noise,
        )?;
        let in_range = (1.0..=1000.0).contains(&channel_growth);
        require(
            in_range,
            "the channel's growth from pilot to payload",
            "between 1 and 1000",
            channel_growth,
        )?;
        fits("the number of foreign pilots", foreign_pilots <= unused, foreign_pilots, || {
            format!("at most {unused}, the number of unused sequences")
        })
    }

    /// The radio assumptions of the any-channel view, and so of every view of the decoder.
    fn assumptions(self, receiver: Receiver, branches: u32, pilot: Pilot) -> Vec<String> {
        let ratio = self.pilot_noise * pilot.noise_ratio();
        let noise = match (receiver.regularisation().is_some(), ratio == 1.0) {
            (true, true) => "the payload noise is exactly as strong as the pilot noise".to_owned(),
            (true, false) => {
                format!("the pilot noise is exactly {ratio} times as strong as the payload noise")
            }
            (false, true) => "the payload noise is at least as strong as the pilot noise".to_owned(),
            (false, false) => {
                format!("the pilot noise is at most {ratio} times as strong as the payload noise")
            }
        };
        let growth = if self.channel_growth == 1.0 {
            "a client's channel does not grow between its pilot and the end of its payload".to_owned()
        } else {
            format!(
                "a client's channel grows at most {}-fold between its pilot and the end of its payload",
                self.channel_growth
            )
        };
        let silence = match self.foreign_pilots {
            0 => "only the clients transmit during the pilot".to_owned(),
            some => format!(
                "foreign pilots arrive on at most {some} of the unused sequences, and on none that a client uses"
            ),
        };
        let dead = "a client that stops after its pilot counts as a used sequence".to_owned();
        let chips = "sequences are orthonormal, and clients are synchronous to the chip".to_owned();
        let branches = (branches > 1)
            .then(|| format!("the noise of the {branches} branches is independent and equally strong"));
        [noise, growth, silence, dead, chips].into_iter().chain(branches).collect()
    }
}

/// The parameters of a federation that determine its privacy.
#[derive(Clone, Debug, PartialEq)]
pub struct Setting {
    /// `C`, the norm that every update is clipped to, above 0.
    pub clip: f64,
    /// `N`, the number of sequences, at least `per_round`.
    pub sequences: u64,
    /// `K`, the number of clients per round, at least 1.
    pub per_round: u64,
    /// `M`, the total number of clients, at least `per_round`.
    pub clients: u64,
    /// `δ`, at least 1e-30 and below 1.
    pub delta: f64,
    /// The unit of privacy: clients or items.
    pub unit: PrivacyUnit,
    /// The relation between populations that `ε` compares: one client replaced, or added or removed.
    pub neighbours: Neighbours,
    /// How updates are clipped or normalised to norm `C`.
    pub clipping: Clipping,
    /// The receiver, which determines the base station's weights.
    pub receiver: Receiver,
    /// `B`: number of real branches on which a sequence is received, from 1 to 128. See
    /// [`Modulation::branches`](floras_core::Modulation::branches).
    pub branches: u32,
    /// The distribution of the channels; without it there is no actual and no raw-signal view.
    pub channel: Option<Coefficients>,
    /// The pilot. Let `r = s_p/s` be its noise relative to the payload's, and let the weights suit estimates with errors of `s_p`.
    /// Then, in units of `s_p`, a round has the noise of a round with `r = 1`, and the sensitivity `r·Δ`. Every view of the decoder
    /// follows from that substitution.
    pub pilot: Pilot,
    /// Allowed deviations of the radio from the model.
    pub margins: Margins,
    /// The masks and the noise that clients add to their updates. The decoded sum's own bounds do not count this noise; the bound of
    /// masks does.
    pub masks: Option<Masks>,
}

impl Default for Setting {
    /// The paper's numbers: 20 of 20 clients, 25 sequences, `C = 1`, `δ = 1e-5`, an unknown channel.
    fn default() -> Self {
        Self {
            clip: 1.0,
            sequences: 25,
            per_round: 20,
            clients: 20,
            delta: 1e-5,
            unit: PrivacyUnit::default(),
            neighbours: Neighbours::default(),
            clipping: Clipping::default(),
            receiver: Receiver::default(),
            branches: 1,
            channel: None,
            pilot: Pilot::default(),
            margins: Margins::default(),
            masks: None,
        }
    }
}

impl Setting {
    /// Returns `Ok` if all numbers are in range and consistent.
    pub(crate) fn check(&self) -> Result<(), PrivacyError> {
        require_positive("the clip norm", self.clip)?;
        require_delta(self.delta)?;
        require_count("the number of clients", self.clients)?;
        require_count("the number of clients per round", self.per_round)?;
        require_count("the number of sequences", self.sequences)?;
        fits("the number of clients per round", self.per_round <= self.clients, self.per_round, || {
            format!("at most {}, the number of clients", self.clients)
        })?;
        fits("the number of sequences", self.sequences >= self.per_round, self.sequences, || {
            format!("at least {}, the number of clients per round", self.per_round)
        })?;
        if let PrivacyUnit::Item { batch, samples, .. } = self.unit {
            require_count("the mini-batch size", batch)?;
            require_count("the number of samples of a client", samples)?;
            fits("the mini-batch size", batch <= samples, batch, || {
                format!("at most {samples}, the number of samples of a client")
            })?;
        }
        require_branches(self.branches)?;
        if let Some(channel) = &self.channel {
            let (found, expected) = (channel.branches(), self.branches);
            fits("the number of branches of the channel", found == expected, found.into(), || {
                format!("{expected}, as many as the receiver has")
            })?;
        }
        self.margins.check(self.gamma())?;
        self.mask_bound()?;
        self.decoder()?;
        Ok(())
    }

    /// The bound of masks, which holds in every rigorous view; `None` without masks.
    pub(crate) fn mask_bound(&self) -> Result<Option<MaskBound>, PrivacyError> {
        match self.masks {
            None => Ok(None),
            Some(_) if self.clipping == Clipping::Paper => Err(PrivacyError::MaskedNormalisation),
            Some(masks) => MaskBound::new(masks, self.per_round, self.sensitivity()).map(Some),
        }
    }

    /// `γ = N − K`.
    pub fn gamma(&self) -> u64 {
        self.sequences.saturating_sub(self.per_round)
    }

    /// `Δ = 2C`: replacing a clipped update moves the sum by at most that. So does adding or removing a client, because `K` is fixed
    /// and another client takes its place. Under the paper's normalisation one client rescales all others: `Δ = (K + 1)·C`.
    pub fn sensitivity(&self) -> f64 {
        match self.clipping {
            Clipping::Each => 2.0 * self.clip,
            Clipping::Paper => (self.per_round as f64 + 1.0) * self.clip,
        }
    }

    /// The value around which the standard deviation of the noise in each parameter of the sum concentrates; `None` unless the receiver
    /// clips its weights. It counts the unused sequences, and the used ones if the channel is known.
    pub fn noise_std(&self) -> Option<f64> {
        let c = self.receiver.level()?;
        let ratio = self.pilot.noise_ratio();
        let used = self
            .channel
            .as_ref()
            .map_or(0.0, |channel| channel.scaled(1.0 / ratio).mean_square_weight(self.receiver));
        let unused = clipped_mean_of_branches(c, self.branches);
        Some((self.gamma() as f64 * unused + self.per_round as f64 * used).sqrt() / ratio)
    }

    /// `Δ·s_p/s`: the sensitivity in units in which pilot and payload have the same noise.
    pub fn decoded_sensitivity(&self) -> f64 {
        self.sensitivity() * self.pilot.noise_ratio()
    }

    /// How clients or items are sampled.
    pub fn sampling(&self) -> Sampling {
        self.unit.sampling(self.per_round, self.clients, self.neighbours)
    }

    /// The curve of one round in a rigorous view, or the reason why there is none.
    pub fn source(&self, view: View) -> Result<Source, PrivacyError> {
        Ok(views::of(self, view)?.0)
    }

    /// The source of a view of the decoder, with its assumptions about the radio.
    pub(crate) fn decoded(
        &self,
        source: impl FnOnce(Decoder) -> Result<Source, PrivacyError>,
    ) -> Result<Source, PrivacyError> {
        let Some(decoder) = self.decoder()? else {
            let reason =
                "an MMSE receiver has a bound only for pilots with exactly the noise that its weights assume";
            return Ok(Source::Nothing(reason.to_owned()));
        };
        Ok(source(decoder)?.assuming(self.margins.assumptions(self.receiver, self.branches, self.pilot)))
    }

    /// The source of a view that is an average over the channels; absent if their distribution is unknown.
    pub(crate) fn averaged(
        &self,
        distribution: impl FnOnce(&Coefficients) -> Result<MuDistribution, PrivacyError>,
    ) -> Result<Source, PrivacyError> {
        let Some(channel) = &self.channel else { return Ok(Source::Absent) };
        Source::or_reason(distribution(channel).map(boxed))
    }

    /// The decoder in units of the pilot's noise; `None` if the receiver's weights do not scale with that noise.
    pub(crate) fn decoder(&self) -> Result<Option<Decoder>, PrivacyError> {
        let Margins { pilot_noise, channel_growth, foreign_pilots } = self.margins;
        if self.receiver.regularisation().is_some() && pilot_noise != 1.0 {
            return Ok(None);
        }
        Ok(Some(Decoder {
            receiver: self.receiver.in_units_of(pilot_noise)?,
            branches: self.branches,
            unused: self.gamma().saturating_sub(foreign_pilots),
            sensitivity: self.decoded_sensitivity() * pilot_noise * channel_growth,
            channel_scale: 1.0 / (pilot_noise * self.pilot.noise_ratio()),
        }))
    }

    /// One round as published, for either meaning of `p`.
    pub fn published(&self, participation: Participation) -> Result<PublishedRound, PrivacyError> {
        if self.branches > 1 {
            return Err(PrivacyError::SeveralBranches { branches: self.branches });
        }
        let p = participation.rate(self.per_round, self.clients)?;
        let weight = match self.unit {
            PrivacyUnit::Client => Weight::client(p)?,
            PrivacyUnit::Item { batch, samples, .. } => Weight::item(batch_ratio(batch, samples)?, p)?,
        };
        PublishedRound::new(weight, self.clip * self.pilot.noise_ratio(), self.gamma() as f64)
    }
}

/// A decoder in units of the pilot's noise.
pub(crate) struct Decoder {
    pub(crate) receiver: Receiver,
    pub(crate) branches: u32,
    pub(crate) unused: u64,
    pub(crate) sensitivity: f64,
    /// Factor for a channel coefficient in units of the payload's noise.
    pub(crate) channel_scale: f64,
}

/// Maximum number of branches: 64 antennas with two branches each.
const MAX_BRANCHES: u32 = 128;

pub(crate) fn require_branches(branches: u32) -> Result<(), PrivacyError> {
    let holds = (1..=MAX_BRANCHES).contains(&branches);
    require(holds, "the number of branches", "between 1 and 128", branches.into())
}

fn require_count(name: &'static str, value: u64) -> Result<(), PrivacyError> {
    require((1..=MAX_COUNT).contains(&value), name, "between 1 and 1e9", value as f64)
}

fn fits(
    name: &'static str,
    holds: bool,
    value: u64,
    allowed: impl Fn() -> String,
) -> Result<(), PrivacyError> {
    if holds { Ok(()) } else { Err(PrivacyError::Inconsistent { name, allowed: allowed(), value }) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn item(local: LocalWork) -> Setting {
        let unit = PrivacyUnit::Item { batch: 20, samples: 200, local };
        Setting { clients: 200, unit, ..Setting::default() }
    }

    fn probability(setting: &Setting) -> f64 {
        setting.sampling().probability()
    }

    #[test]
    fn item_participation_depends_on_the_local_steps() {
        let steps = |n: u32| probability(&item(LocalWork::steps(n).unwrap()));
        assert_eq!(steps(1), 0.1 * 20.0 / 200.0);
        for n in 1..10 {
            assert!((steps(n) / (f64::from(n) * steps(1)) - 1.0).abs() < 1e-14, "{n} steps");
            assert!(steps(n) < steps(n + 1), "{n} steps");
        }
        let client = probability(&Setting { unit: PrivacyUnit::Client, ..item(LocalWork::Epochs) });
        for whole in [steps(10), steps(11), steps(1_000_000), probability(&item(LocalWork::Epochs))] {
            assert_eq!(whole, client);
        }
        let added = Setting { neighbours: Neighbours::AddRemove, ..item(LocalWork::ONE_STEP) };
        assert_eq!(probability(&added), 0.1 * 20.0 / 201.0);
    }

    #[test]
    fn the_published_item_round_counts_one_batch() {
        let at = |local| crate::Account::of(&item(local)).unwrap().published_divergence(8.0).unwrap();
        // q = 20/181, p = 0.1, w = qp/(1 + qp), C = 1, γ = 5: ε(α) = α·u²/2.
        let w = (2.0 / 181.0) / (1.0 + 2.0 / 181.0);
        let u = (1.0_f64 + w * (2.0 * 26.0_f64.sqrt() + 2.0) / 25.0).ln();
        let by_hand = 8.0 * u * u / 2.0;
        for local in [LocalWork::ONE_STEP, LocalWork::steps(3).unwrap(), LocalWork::Epochs] {
            let found = at(local).unwrap().as_printed();
            assert!((found / by_hand - 1.0).abs() < 1e-12, "{found}, not {by_hand}");
        }
    }
}
