//! The experiments whose rounds are timed: every scheme at the benchmark's reference point.

use floras_sim::schemes;
use floras_sim::{Experiment, ExperimentError};

use super::candidate::Candidate;
use super::grid;

/// Rounds of a timed experiment: more than anyone measures.
const ROUNDS: u32 = 1_000_000;

/// The unprotected experiments of all files of the benchmark, with `clients` clients, and of every other scheme that an experiment can
/// name, with its default keys. FLORAS is the first. They test the model at the end only.
pub fn timed_experiments(clients: u32) -> Result<Vec<Experiment>, ExperimentError> {
    let candidates = Candidate::built_in()?;
    let point = floras_sim::benchmark::Point { clients, ..grid::FULL.reference() };
    let at_point = |candidate: &Candidate| {
        let builder = grid::FULL.experiment(candidate, &point)?.rounds(ROUNDS);
        builder.set_to("record.test_every", ROUNDS)?.set_to("record.train_every", ROUNDS)
    };
    let mut builders = candidates.iter().map(at_point).collect::<Result<Vec<_>, _>>()?;
    let plain = builders.last().cloned();
    for entry in schemes::all() {
        let is_covered = candidates.iter().any(|candidate| candidate.scheme().name() == entry.name());
        if let (false, Some(plain)) = (is_covered, &plain) {
            builders.push(plain.clone().set("uplink.scheme", entry.name())?.set("name", entry.name())?);
        }
    }
    builders.iter().map(|builder| builder.build()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_scheme_is_timed() {
        let experiments = timed_experiments(20).unwrap();
        assert_eq!(experiments[0].settings().uplink.scheme.name(), "floras");
        for entry in schemes::all() {
            assert!(experiments.iter().any(|one| one.settings().uplink.scheme.name() == entry.name()));
        }
        assert!(experiments.iter().all(|one| one.settings().clients.per_round == 20));
    }
}
