//! Every reason for a missing number, and its message.

use floras_privacy::mixed::Mixed;
use floras_privacy::published::Participation;
use floras_privacy::{
    Account, AnyChannel, Composition, Curve, Grid, MuDistribution, Part, PrivacyError, Receiver, Sampling,
    View, idealised,
};

fn says(error: PrivacyError, message: &str) {
    assert!(error.to_string().contains(message), "{error}");
}

#[test]
fn numbers_out_of_range_are_named() {
    let distribution = MuDistribution::Constant(1.0);
    let compose = |sampling, rounds| Composition::new(&distribution, sampling, rounds).err().unwrap();
    says(
        compose(Sampling::ReplaceOne(1.5), 1),
        "the probability of taking part must be above 0 and at most 1, not 1.5",
    );
    says(compose(Sampling::Everyone, 0), "rounds must be between 1 and 1e9, not 0");
    let composition = || Composition::new(&distribution, Sampling::Everyone, 1).unwrap();
    says(composition().epsilon(0.0).unwrap_err(), "delta must be at least 1e-30 and below 1, not 0");
    says(composition().epsilon(f64::NAN).unwrap_err(), "not NaN");
    says(composition().delta(-1.0).unwrap_err(), "epsilon must be a finite number of at least 0, not -1");
    says(
        composition().on_grid(Grid::Step(2.0)).err().unwrap(),
        "the grid's step must be between 1e-12 and 1, not 2",
    );
    says(
        idealised(Receiver::Paper, 1, 0.0).unwrap_err(),
        "the sensitivity must be between 1e-30 and 1e30, not 0",
    );
}

#[test]
fn numbers_that_do_not_fit_together_are_named() {
    let error = Participation::PerClients.rate(20, 10).unwrap_err();
    assert!(matches!(error, PrivacyError::Inconsistent { value: 20, .. }), "{error:?}");
    says(error, "at most the 10");
}

#[test]
fn rounds_that_do_not_compose_are_refused() {
    let distribution = MuDistribution::Constant(1.0);
    let mixed = |kinds: &[(Sampling, u64)]| {
        let parts: Vec<Part<'_>> =
            kinds.iter().map(|&(sampling, rounds)| Part { curve: &distribution, sampling, rounds }).collect();
        Composition::mixed(&parts).err().unwrap()
    };
    let (everyone, some) = (Sampling::Everyone, Sampling::ReplaceOne(0.5));
    says(mixed(&[]), "give at least one kind of rounds");
    says(mixed(&[(everyone, 1), (some, 0)]), "rounds must be between 1 and 1e9, not 0");
    says(mixed(&[(everyone, 1), (Sampling::ReplaceOne(0.0), 1)]), "above 0 and at most 1, not 0");
    says(mixed(&[(everyone, 600_000_000), (some, 600_000_000)]), "between 1 and 1e9, not 1200000000");
    for other in [everyone, some] {
        let error = mixed(&[(Sampling::AddRemove(0.5), 1), (other, 1)]);
        assert_eq!(error, PrivacyError::MixedNeighbours);
        says(error, "do not compose");
    }
    let parts = [everyone, some].map(|sampling| Part { curve: &distribution, sampling, rounds: 1 });
    assert!(Composition::mixed(&parts).is_ok());
}

#[test]
fn accounts_that_do_not_compose_are_refused() {
    let account = |sampling, delta| Account::new(sampling, delta).unwrap();
    let first = account(Sampling::Everyone, 1e-5);
    let mixed = |other: &Account, rounds| Mixed::new(&[(&first, 1), (other, rounds)]).err().unwrap();
    says(Mixed::new(&[]).err().unwrap(), "give at least one kind of rounds");
    says(mixed(&first, 0), "rounds must be between 1 and 1e9, not 0");
    says(
        mixed(&account(Sampling::Everyone, 1e-6), 1),
        "all accounts must have the same delta, not 1e-5 and 1e-6",
    );
    assert_eq!(mixed(&account(Sampling::AddRemove(0.5), 1e-5), 1), PrivacyError::MixedNeighbours);
    says(first.delta_at(View::Idealised, 0, 1.0).unwrap_err(), "rounds must be");
    says(first.delta_at(View::Idealised, 1, f64::NAN).unwrap_err(), "epsilon must be");
}

#[test]
fn no_unused_sequence_is_no_guarantee() {
    let error = AnyChannel::new(Receiver::Paper, 0, 1.0).err().unwrap();
    assert_eq!(error, PrivacyError::NoUnusedSequences);
    says(error, "no guarantee without unused sequences");
}

/// A curve that leaks everything with some probability.
struct Leaky;

impl Curve for Leaky {
    fn upper(&self, _: f64) -> f64 {
        0.0
    }

    fn lower(&self, _: f64) -> f64 {
        0.0
    }

    fn infinite(&self) -> f64 {
        1e-6
    }

    fn tolerance(&self) -> f64 {
        1e-10
    }
}

#[test]
fn delta_below_the_leaked_mass_is_refused() {
    let composition = Composition::new(&Leaky, Sampling::ReplaceOne(0.5), 100).unwrap();
    let error = composition.epsilon(1e-5).unwrap_err();
    let PrivacyError::DeltaOutOfReach { delta, least } = error else { panic!("{error:?}") };
    assert!(delta == 1e-5 && (least / 5e-5 - 1.0).abs() < 1e-4, "{error:?}");
    says(error, "there is no epsilon for delta = 0.00001");
    // For a larger delta there is an ε, and 0 is enough.
    let one = Composition::new(&Leaky, Sampling::Everyone, 1).unwrap();
    assert_eq!(one.epsilon(1e-5).unwrap().upper, 0.0);
    assert_eq!(one.delta(3.0).unwrap().upper, 1e-6);
}

#[test]
fn noise_that_hides_no_one_has_no_epsilon() {
    let error = Composition::new(&MuDistribution::Constant(1e6), Sampling::Everyone, 1)
        .unwrap()
        .epsilon(1e-5)
        .unwrap_err();
    assert!(matches!(error, PrivacyError::EpsilonOutOfReach { .. }), "{error:?}");
    says(error, "no epsilon up to 1e5 is established");
}
