//! Simulated rounds for the detectors: pilots and energies of all `N` sequences, without the `d` values behind them.
//!
//! Given its channel, a payload's energy follows `χ'²_d(t²C²) = (tC + n)² + χ²_{d−1}`, so that two draws replace `d`. Channels,
//! pilots and the assignment of sequences are those of the air interface. Every update has norm `C`, the maximum that clipping
//! allows and the worst case for the client.

use floras_core::random::{Domain, StreamName};
use floras_phy::{Floras, Round};
use floras_sim::{SimError, purpose};
use rand_distr::{ChiSquared, Distribution, StandardNormal};
use rayon::prelude::*;

use super::detector::{Payload, Seen};

/// The setting of the adversary.
#[derive(Clone, Debug)]
pub(super) struct Scene {
    /// The air interface.
    pub(super) floras: Floras,
    /// The clients of each round; after the last round the list starts again.
    pub(super) clients: Vec<Vec<u32>>,
    /// The assumed update.
    pub(super) payload: Payload,
    /// Seed of all randomness.
    pub(super) seed: u64,
}

/// A round: the observation of every sequence, those in use first.
pub(super) struct DrawnRound {
    pub(super) seen: Vec<Seen>,
    pub(super) in_use: usize,
}

impl Scene {
    /// Number of sequences in use, `K`.
    pub(super) fn in_use(&self) -> usize {
        self.clients.first().map_or(0, Vec::len)
    }

    /// `s_p`, the estimation error.
    pub(super) fn noise_std(&self) -> f64 {
        let settings = self.floras.settings();
        settings.snr.despread_noise_std(settings.sequences.length()) * settings.pilot.noise_ratio()
    }

    /// Draws `rounds` rounds; the result does not depend on the number of threads.
    pub(super) fn draw(&self, rounds: u32) -> Result<Vec<DrawnRound>, SimError> {
        let clients = |round: u32| self.clients[round as usize % self.clients.len()].as_slice();
        (0..rounds).into_par_iter().map(|round| self.draw_round(round, clients(round))).collect()
    }

    fn draw_round(&self, number: u32, clients: &[u32]) -> Result<DrawnRound, SimError> {
        let air =
            self.floras.despread(&Round::new(self.seed, Domain::Detection.trial(0), number + 1, clients)?)?;
        let mut unused = vec![true; air.estimates.len()];
        air.assigned.iter().for_each(|&sequence| unused[sequence] = false);
        let used = air.assigned.iter().copied().zip(air.amplitudes.iter().copied());
        let idle = (0..unused.len()).filter(|&sequence| unused[sequence]).map(|sequence| (sequence, 0.0));
        let mut energies = Energies::new(self.payload, self.seed, number);
        let noise_std = self.noise_std();
        let seen = used.chain(idle).map(|(sequence, amplitude)| Seen {
            pilot: air.estimates[sequence] / noise_std,
            energy: energies.draw(amplitude / noise_std),
        });
        Ok(DrawnRound { seen: seen.collect(), in_use: air.assigned.len() })
    }
}

/// The energies of one round.
struct Energies {
    stream: floras_core::random::Stream,
    norm: f64,
    /// Distribution of the energy in the other `d − 1` dimensions; `None` for `d = 1`.
    rest: Option<ChiSquared<f64>>,
}

impl Energies {
    fn new(payload: Payload, seed: u64, round: u32) -> Self {
        let stream =
            StreamName::new(seed, purpose::ENERGIES).trial(Domain::Detection.trial(0)).round(round).stream();
        Self { stream, norm: payload.norm, rest: ChiSquared::new(payload.dimensions - 1.0).ok() }
    }

    fn draw(&mut self, t: f64) -> f64 {
        let along: f64 = StandardNormal.sample(&mut self.stream);
        let rest = self.rest.map_or(0.0, |distribution| distribution.sample(&mut self.stream));
        (t * self.norm + along).powi(2) + rest
    }
}

#[cfg(test)]
mod tests {
    use floras_core::{Fading, Modulation, Pilot, Receiver, Snr, SnrConvention};
    use floras_phy::{FlorasSettings, SequenceSet};

    use super::*;

    const PARAMETERS: usize = 6;
    const LENGTH: usize = 8;
    const CLIENTS: [u32; 4] = [0, 1, 2, 3];

    fn floras(pilot: Pilot) -> Floras {
        Floras::new(FlorasSettings {
            sequences: SequenceSet::walsh(6, LENGTH).unwrap(),
            modulation: Modulation::Real,
            receiver: Receiver::Paper,
            channels: Fading::Rayleigh.into(),
            snr: Snr::new(0.0, SnrConvention::Symbol).unwrap(),
            pilot,
            ..FlorasSettings::default()
        })
    }

    /// The direct way: every chip of every parameter is sent with noise and despread.
    fn chip_by_chip(floras: &Floras, round: u32, norm: f64) -> Vec<(bool, Seen)> {
        let name = Round::new(5, 1, round + 1, &CLIENTS).unwrap();
        let air = floras.despread(&name).unwrap();
        let set = &floras.settings().sequences;
        let mut stream = name.stream(purpose::DESPREAD_NOISE);
        let mut normal = || -> f64 { StandardNormal.sample(&mut stream) };
        let updates: Vec<Vec<f64>> = CLIENTS
            .iter()
            .map(|_| {
                let raw: Vec<f64> = (0..PARAMETERS).map(|_| normal()).collect();
                let size = raw.iter().map(|x| x * x).sum::<f64>().sqrt();
                raw.iter().map(|x| x * norm / size).collect()
            })
            .collect();
        let mut energies = vec![0.0; set.count()];
        for parameter in 0..PARAMETERS {
            let mut carried = vec![0.0; set.count()];
            for (client, update) in updates.iter().enumerate() {
                carried[air.assigned[client]] += air.amplitudes[client] * update[parameter];
            }
            let mut chips = set.spread(&carried).unwrap();
            chips.iter_mut().for_each(|chip| *chip += air.symbol_noise_std * normal());
            for (energy, z) in energies.iter_mut().zip(set.despread(&chips).unwrap()) {
                *energy += (z / air.symbol_noise_std).powi(2);
            }
        }
        let pilots = air.estimates.iter().map(|estimate| estimate / air.pilot_noise_std.unwrap());
        let seen = pilots.zip(energies).map(|(pilot, energy)| Seen { pilot, energy });
        seen.enumerate().map(|(sequence, seen)| (air.assigned.contains(&sequence), seen)).collect()
    }

    /// Two samples of the energies, and of products of pilot and energy, by Kolmogorov–Smirnov. With 12,000 or more on both
    /// sides `D·√(n/2)` exceeds 2.0 once in 1500 at random; energies without the factor `C` would reach 30.
    #[test]
    fn drawn_energies_agree_with_the_chip_level() {
        [Pilot::default(), Pilot::new(2.0, 3).unwrap()].into_iter().for_each(compare_with_chips);
    }

    fn compare_with_chips(pilot: Pilot) {
        let (floras, norm) = (floras(pilot), 1.7);
        let payload = Payload::over(&floras, PARAMETERS as f64, norm);
        let scene = Scene { floras: floras.clone(), clients: vec![CLIENTS.to_vec()], payload, seed: 9 };
        let short: Vec<(bool, Seen)> = scene
            .draw(6000)
            .unwrap()
            .into_iter()
            .flat_map(|round| {
                let in_use = round.in_use;
                round.seen.into_iter().enumerate().map(move |(place, seen)| (place < in_use, seen))
            })
            .collect();
        let long: Vec<(bool, Seen)> =
            (0..6000).flat_map(|round| chip_by_chip(&floras, round, norm)).collect();
        type Statistic = fn(&Seen) -> f64;
        let statistics: [(&str, Statistic); 2] =
            [("energy", |seen| seen.energy), ("product", |seen| seen.pilot.abs() * seen.energy)];
        for used in [true, false] {
            for (name, statistic) in statistics {
                let of = |all: &[(bool, Seen)]| {
                    let mut some: Vec<f64> = all
                        .iter()
                        .filter(|(is_used, _)| *is_used == used)
                        .map(|(_, seen)| statistic(seen))
                        .collect();
                    some.sort_by(f64::total_cmp);
                    some
                };
                let (short, long) = (of(&short), of(&long));
                let below = |all: &[f64], x: f64| all.partition_point(|&y| y <= x) as f64 / all.len() as f64;
                let far =
                    short.iter().map(|&x| (below(&short, x) - below(&long, x)).abs()).fold(0.0, f64::max);
                let statistic = far * (short.len() as f64 / 2.0).sqrt();
                assert!(statistic < 2.0, "{name}, used: {used}: {statistic}");
            }
        }
    }
}
