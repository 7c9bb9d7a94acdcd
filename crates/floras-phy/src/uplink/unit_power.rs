//! Unit power: all clients scale their symbols to power 1, and the base station scales back.
//!
//! A symbol `u` of a client has a mean square of at most
//!
//! ```text
//! P = (C²/d + c)·m,     c the variance of what clients add: artificial noise, and σ_m²·(1 − 1/K) + σ_z² of masks;
//!                       m parameters in a symbol
//! ```
//!
//! All send `β·u` with the public constant `β = 1/√P`, and the base station divides by `β`. So the receiver's noise is `1/β` times as
//! large relative to the updates; the relative size of the clients' additions does not change. Pilots keep their power.

use floras_core::{Fidelity, Masks, ParametersPerSymbol};

use super::{Signal, Uplink};
use crate::chip::ChipLink;
use crate::cost::Transmission;
use crate::effective::{Block, EffectiveChannel};
use crate::error::{UplinkError, require};
use crate::round::Round;

/// An uplink whose clients send symbols of unit power.
///
/// ```
/// use floras_phy::{CentralGaussian, Round, UnitPower, Uplink};
///
/// // C = 1 over d = 100 parameters: a symbol has power 0.01, and is sent 10 times larger.
/// let uplink = UnitPower::new(Box::new(CentralGaussian::new(0.3)?), 1.0, None)?;
/// let channel = uplink.realise(&Round::new(1, 0, 1, &[0, 1])?.with_parameters(100))?;
/// assert!((channel.noise_std() - 0.03).abs() < 1e-12);
/// # Ok::<(), floras_phy::UplinkError>(())
/// ```
pub struct UnitPower {
    inner: Box<dyn Uplink>,
    clip: f64,
    masks: Option<Masks>,
}

impl UnitPower {
    /// The uplink `inner` with updates of norm `clip = C` at most, from 1e-30 to 1e30, to which clients add masks.
    ///
    /// The masks count for the power only; [`Masked`](super::Masked) adds them.
    pub fn new(inner: Box<dyn Uplink>, clip: f64, masks: Option<Masks>) -> Result<Self, UplinkError> {
        require((1e-30..=1e30).contains(&clip), "the clip norm", "between 1e-30 and 1e30", clip)?;
        Ok(Self { inner, clip, masks })
    }

    /// `β` of a round, and the variance of the noise other than masks that clients add to a symbol.
    fn scale(&self, round: &Round<'_>) -> Result<(f64, f64), UplinkError> {
        let parameters = round.parameters().ok_or(UplinkError::UnitPowerWithoutParameters)?;
        let (added, packing) = match self.inner.transmission(round)? {
            Some(sent) => (sent.added_noise_power, sent.parameters_per_symbol),
            None => (0.0, ParametersPerSymbol::One),
        };
        let scale = unit_scale(self.clip, parameters, packing, added, self.masks, round.selected_count());
        Ok((scale, added))
    }
}

/// `β = 1/√((C²/d + c)·m)` for updates of norm `clip = C` with `parameters = d`, `m` in a symbol. `clients = K` clients add noise of
/// variance `added_noise_power` and masks.
pub fn unit_scale(
    clip: f64,
    parameters: usize,
    packing: ParametersPerSymbol,
    added_noise_power: f64,
    masks: Option<Masks>,
    clients: usize,
) -> f64 {
    let of_masks = masks.map_or(0.0, |masks| masks.symbol_power(clients));
    let of_update = clip * clip / parameters.max(1) as f64;
    let symbols = parameters.div_ceil(packing.get()).max(1);
    let in_symbol = parameters.max(1) as f64 / symbols as f64;
    1.0 / ((of_update + added_noise_power + of_masks) * in_symbol).sqrt()
}

impl Uplink for UnitPower {
    fn name(&self) -> &'static str {
        self.inner.name()
    }

    fn realise(&self, round: &Round<'_>) -> Result<EffectiveChannel, UplinkError> {
        let (scale, added) = self.scale(round)?;
        self.inner.realise(round)?.map_blocks(|block| {
            let of_clients = added * block.squared_magnitudes();
            let of_receiver = (block.noise_std * block.noise_std - of_clients).max(0.0);
            let noise_std = match added > 0.0 {
                true => (of_receiver / (scale * scale) + of_clients).sqrt(),
                false => block.noise_std / scale,
            };
            Block { noise_std, ..block }
        })
    }

    fn link(&self, round: &Round<'_>) -> Result<ChipLink, UplinkError> {
        let (scale, added) = self.scale(round)?;
        let link = self.inner.link(round)?.with_scaled_noise(1.0 / scale);
        // Noise of the clients that is not relative to their updates keeps its power, as the receiver's does.
        Ok(if added > 0.0 { link } else { link.with_scaled_client_noise(1.0 / scale) })
    }

    fn sent(&self, round: &Round<'_>, updates: &[&[f32]]) -> Result<Option<Vec<Vec<f32>>>, UplinkError> {
        self.inner.sent(round, updates)
    }

    fn with_added_noise(
        &self,
        round: &Round<'_>,
        channel: EffectiveChannel,
    ) -> Result<EffectiveChannel, UplinkError> {
        self.inner.with_added_noise(round, channel)
    }

    fn transmission(&self, round: &Round<'_>) -> Result<Option<Transmission>, UplinkError> {
        let Some(mut transmission) = self.inner.transmission(round)? else { return Ok(None) };
        let (scale, _) = self.scale(round)?;
        transmission.factors.iter_mut().for_each(|factor| *factor *= scale);
        Ok(Some(transmission))
    }

    /// In units of an update: the noise of a symbol is divided by `β`, because the base station divides by it.
    fn signal(&self, round: &Round<'_>, fidelity: Fidelity) -> Result<Option<Signal>, UplinkError> {
        let Some(mut signal) = self.inner.signal(round, fidelity)? else { return Ok(None) };
        signal.symbol_noise_std /= self.scale(round)?.0;
        Ok(Some(signal))
    }
}

#[cfg(test)]
mod tests {
    use floras_core::{Admission, Fading, Modulation, NoiseReference, Pilot, PowerRule, Snr, SnrConvention};

    use super::*;
    use crate::aggregation::Aggregation;
    use crate::uplink::{ChannelInversion, ChannelInversionSettings, Floras, FlorasSettings, Masked};

    fn floras() -> Box<dyn Uplink> {
        let snr = Snr::new(20.0, SnrConvention::Symbol).unwrap();
        Box::new(Floras::new(FlorasSettings { snr, pilot: Pilot::default(), ..FlorasSettings::default() }))
    }

    fn round(clients: &[u32]) -> Round<'_> {
        Round::new(7, 0, 1, clients).unwrap().with_parameters(400)
    }

    #[test]
    fn gains_stay_and_noise_is_scaled_back() {
        let clients: Vec<u32> = (0..20).collect();
        let plain = floras().realise(&round(&clients)).unwrap();
        let scaled = UnitPower::new(floras(), 2.0, None).unwrap().realise(&round(&clients)).unwrap();
        assert_eq!(plain.gains(), scaled.gains());
        // P = 4/400.
        assert!((scaled.noise_std() / plain.noise_std() - 0.1).abs() < 1e-12);
    }

    #[test]
    fn symbols_of_full_norm_have_unit_power() {
        let clients: Vec<u32> = (0..20).collect();
        let masks = Masks::new(3.0, 0.5, 0).unwrap();
        let updates = crate::updates::random_updates(20, 400);
        for masks in [None, Some(masks)] {
            let scaled: Box<dyn Uplink> = Box::new(UnitPower::new(floras(), 2.0, masks).unwrap());
            let uplink = match masks {
                None => scaled,
                Some(masks) => Box::new(Masked::new(scaled, masks)),
            };
            let aggregation = Aggregation { clip: Some(2.0), ..Aggregation::default() };
            let aggregate = aggregation.run(uplink.as_ref(), round(&clients), &updates).unwrap();
            let cost = aggregate.cost(uplink.as_ref(), &round(&clients)).unwrap().unwrap();
            assert!((cost.power_mean - 1.0).abs() < 1e-6, "{masks:?}: {}", cost.power_mean);
            // 400 parameters of 32 chips from 20 clients, and a pilot of 32 chips of each.
            assert!((cost.energy / (20.0 * 32.0 * 401.0) - 1.0).abs() < 1e-6);
        }
    }

    #[test]
    fn two_parameters_share_the_power_of_a_symbol() {
        let uplink = |packing| -> Box<dyn Uplink> {
            Box::new(Floras::new(FlorasSettings {
                modulation: Modulation::Complex,
                parameters_per_symbol: packing,
                snr: Snr::new(20.0, SnrConvention::Symbol).unwrap(),
                ..FlorasSettings::default()
            }))
        };
        let clients: Vec<u32> = (0..20).collect();
        let masks = Masks::new(3.0, 0.5, 0).unwrap();
        let updates = crate::updates::random_updates(20, 400);
        let [noise, twice] = [ParametersPerSymbol::One, ParametersPerSymbol::Two].map(|packing| {
            let scaled = UnitPower::new(uplink(packing), 2.0, Some(masks)).unwrap();
            let noise = scaled.realise(&round(&clients)).unwrap().noise_std();
            let uplink = Masked::new(Box::new(scaled), masks);
            let aggregation = Aggregation { clip: Some(2.0), ..Aggregation::default() };
            let aggregate = aggregation.run(&uplink, round(&clients), &updates).unwrap();
            let cost = aggregate.cost(&uplink, &round(&clients)).unwrap().unwrap();
            assert!((cost.power_mean - 1.0).abs() < 1e-6, "{packing}: {}", cost.power_mean);
            noise
        });
        assert!((twice / noise - 2.0_f64.sqrt()).abs() < 1e-12, "{noise}, {twice}");
    }

    #[test]
    fn artificial_noise_is_charged_and_not_scaled_back() {
        let artificial_noise_std = 4.0;
        let uplink = |noiseless: bool| -> Box<dyn Uplink> {
            let snr = if noiseless { Snr::NOISELESS } else { Snr::new(20.0, SnrConvention::Symbol).unwrap() };
            Box::new(
                ChannelInversion::new(ChannelInversionSettings {
                    admission: Admission::at_amplitude(0.01).unwrap(),
                    power: PowerRule::WorstAdmitted,
                    noise: NoiseReference::PerSymbol,
                    length: 32,
                    channels: Fading::None.into(),
                    snr,
                    artificial_noise_std,
                })
                .unwrap(),
            )
        };
        let clients: Vec<u32> = (0..20).collect();
        let noise = |noiseless| {
            let uplink = UnitPower::new(uplink(noiseless), 2.0, None).unwrap();
            uplink.realise(&round(&clients)).unwrap().noise_std()
        };
        assert!((noise(true) - 4.0).abs() < 1e-12);
        // P = 4/400 + 16/20, and the receiver's noise is σ² = 0.01 over √η = 1.
        let expected = (16.0_f64 + 0.01 * 0.81).sqrt();
        assert!((noise(false) / expected - 1.0).abs() < 1e-12, "{}", noise(false));
    }

    #[test]
    fn the_number_of_parameters_must_be_known() {
        let uplink = UnitPower::new(floras(), 1.0, None).unwrap();
        let error = uplink.realise(&Round::new(1, 0, 1, &[0]).unwrap()).unwrap_err();
        assert_eq!(error, UplinkError::UnitPowerWithoutParameters);
        assert!(UnitPower::new(floras(), 0.0, None).is_err());
    }
}
