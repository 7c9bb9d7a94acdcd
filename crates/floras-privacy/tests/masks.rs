//! Masks bound every rigorous view: statements, curves, exports, calibration, mixed rounds.

#![expect(clippy::unwrap_used, reason = "tests")]

use floras_core::{Clipping, Masks, Neighbours, Receiver, View};
use floras_privacy::calibrate::{self, Target};
use floras_privacy::mixed::Mixed;
use floras_privacy::{
    Account, Coefficients, DeltaCurve, Fading, JointLoss, LossFile, MaskBound, Modulation, MuDistribution,
    PrivacyError, RenyiCurve, Sampling, Setting, Source, Statement, gaussian, ledger,
};

/// Clipped at 1, γ = 20, Rayleigh at s = 0.1: idealised 1.95, any channel 6.0, actual between, raw signal above 10⁵.
fn setting(masks: Option<Masks>) -> Setting {
    Setting {
        sequences: 40,
        receiver: Receiver::clipped(1.0).unwrap(),
        channel: Some(Coefficients::of(Fading::Rayleigh, Modulation::Real, 0.02).unwrap()),
        masks,
        ..Setting::default()
    }
}

/// Masks whose bound after one round is `μ`, for K = 20 and Δ = 2.
fn with_mu(mu: f64) -> Masks {
    let at = |noise_std: f64| Masks::new(20.0 * noise_std, noise_std, 0).unwrap();
    let unit = MaskBound::new(at(1.0), 20, 2.0).unwrap().mu();
    at(unit / mu)
}

fn statement(account: &Account, view: View, rounds: u64) -> Statement {
    account.statement(view, rounds).unwrap().unwrap()
}

#[test]
fn caveats_stay_where_epsilon_is_out_of_reach() {
    let mut account = Account::of(&setting(None)).unwrap();
    let proven = statement(&account, View::RawSignal, 10);
    assert_eq!((proven.epsilon, proven.epsilon_above), (None, Some(1e5)));
    assert!(proven.is_proven() && !proven.guarantee);
    account.add_caveat("the noise has a seed");
    let unproven = statement(&account, View::RawSignal, 10);
    assert!(unproven.reason.as_ref().unwrap().ends_with("; the noise has a seed"));
    assert!(!unproven.is_proven());
}

#[test]
fn each_view_is_the_smaller_bound() {
    let own = Account::of(&setting(None)).unwrap();
    let exact = gaussian::epsilon(1e-5, 0.9).unwrap();
    let masked = Account::of(&setting(Some(with_mu(0.9)))).unwrap();
    let mut before = 0.0;
    for view in View::RIGOROUS {
        let (without, with) = (statement(&own, view, 1), statement(&masked, view, 1));
        let bound = without.epsilon.unwrap_or(f64::INFINITY).min(exact);
        assert!((with.epsilon.unwrap() / bound - 1.0).abs() < 1e-9, "{view}: {:?}", with.epsilon);
        assert!(with.guarantee && with.epsilon >= Some(before), "{view}");
        assert_eq!(with.from_masks, without.epsilon.is_none_or(|own| own > exact), "{view}");
        assert!((with.details["masks"] / exact - 1.0).abs() < 1e-9);
        assert_eq!(with.epsilon_lower, None);
        before = with.epsilon.unwrap();
    }
    let (idealised, raw) = (statement(&masked, View::Idealised, 1), statement(&masked, View::RawSignal, 1));
    assert!(
        !idealised.from_masks && idealised.assumptions == statement(&own, View::Idealised, 1).assumptions
    );
    assert!(raw.from_masks && raw.adversary.contains("every symbol that every client transmits"));
    let all = raw.assumptions.join("; ");
    for words in
        ["draws its noise", "ChaCha20", "at least 20 are honest", "enrols no more clients of its own"]
    {
        assert!(all.contains(words), "{all}");
    }
}

#[test]
fn the_published_view_knows_no_masks() {
    let [own, masked] = [None, Some(with_mu(0.01))].map(|masks| Account::of(&setting(masks)).unwrap());
    assert_eq!(own.statement(View::Published, 3).unwrap(), masked.statement(View::Published, 3).unwrap());
}

#[test]
fn views_without_a_bound_take_the_masks() {
    let mut account = Account::new(Sampling::Everyone, 1e-5).unwrap();
    account.set(View::Actual, Source::of(MuDistribution::Constant(0.1)).with_caveat("an estimate"));
    account.set(View::AnyChannel, Source::Nothing("no bound".to_owned()));
    account.set(View::RawSignal, Source::Absent);
    account.set_masks(MaskBound::new(with_mu(0.5), 20, 2.0).unwrap());
    let exact = gaussian::epsilon(1e-5, 1.0).unwrap();
    for view in View::RIGOROUS {
        let statement = statement(&account, view, 4);
        assert!((statement.epsilon.unwrap() / exact - 1.0).abs() < 1e-9, "{view}");
        assert!(statement.guarantee && statement.from_masks && statement.reason.is_none(), "{view}");
        let delta = account.delta_at(view, 4, exact).unwrap().unwrap();
        assert!((delta / 1e-5 - 1.0).abs() < 1e-6, "{view}: {delta}");
    }
    assert_eq!(ledger::of_one_round(&account).unwrap().len(), 4);
    assert_eq!(account.most_rounds(View::RawSignal, exact * 1.000_001, 100).unwrap(), 4);
}

/// `K = 20` of `M = 200`: the number of rounds of a client is binomial; the composition at this μ is computed
/// directly.
#[test]
fn sampling_amplifies_nothing_under_masks() {
    let (mu, rounds, p) = (0.5, 10_u32, 0.1_f64);
    let masked = Setting { clients: 200, channel: None, ..setting(Some(with_mu(mu))) };
    let raw = statement(&Account::of(&masked).unwrap(), View::RawSignal, rounds.into());
    let delta = |epsilon: f64| -> f64 {
        let mut probability = (1.0 - p).powi(rounds as i32);
        let mut delta = 0.0;
        for count in 1..=rounds {
            probability *= f64::from(rounds - count + 1) / f64::from(count) * p / (1.0 - p);
            delta += probability * gaussian::delta(epsilon, mu * f64::from(count).sqrt());
        }
        delta
    };
    let epsilon = raw.epsilon.unwrap();
    assert!((delta(epsilon) / 1e-5 - 1.0).abs() < 1e-3, "{}", delta(epsilon));
    assert_eq!(raw.details["participation_known"], epsilon);
    let always = gaussian::epsilon(1e-5, mu * 10.0_f64.sqrt()).unwrap();
    assert!((raw.details["in_every_round"] / always - 1.0).abs() < 1e-9);
}

#[test]
fn curves_and_exports_follow_the_masks() {
    let account = Account::of(&setting(Some(with_mu(0.1)))).unwrap();
    let rounds = Mixed::new(&[(&account, 25)]).unwrap();
    let view = View::RawSignal;
    let curve = DeltaCurve::new(&rounds, view).unwrap().unwrap();
    for epsilon in [0.5, 1.0, 2.0] {
        assert!((curve.delta(epsilon) / gaussian::delta(epsilon, 0.5) - 1.0).abs() < 1e-6);
    }
    assert!(rounds.is_guarantee(view));
    let renyi = RenyiCurve::new(&rounds, view, &[2.0, 8.0]).unwrap().unwrap();
    for (order, epsilon) in [2.0, 8.0].iter().zip(renyi.epsilons) {
        assert!((epsilon / (0.5 * order * 0.25) - 1.0).abs() < 1e-9);
    }
    let file = LossFile::of_view(&rounds, view, "client", "replace-one").unwrap().unwrap();
    assert!(file.guarantee && file.assumptions.iter().any(|words| words.contains("honest")));
    let composed = JointLoss::new(&[file]).unwrap().epsilon_upper(1e-5).unwrap();
    assert!((composed / gaussian::epsilon(1e-5, 0.5).unwrap() - 1.0).abs() < 1e-4, "{composed}");
}

#[test]
fn the_rényi_form_of_the_paper_is_capped() {
    let setting = Setting { masks: Some(with_mu(0.1)), ..Setting::default() };
    let account = Account::of(&setting).unwrap();
    let rounds = Mixed::new(&[(&account, 1)]).unwrap();
    let curve = RenyiCurve::new(&rounds, View::Idealised, &[64.0]).unwrap().unwrap();
    assert!((curve.epsilons[0] / (0.5 * 64.0 * 0.01) - 1.0).abs() < 1e-9, "{curve:?}");
}

#[test]
fn rounds_of_different_size_add_their_squares() {
    let masks = Masks::new(5.0, 1.0, 0).unwrap();
    let of = |per_round: u64| {
        let setting =
            Setting { per_round, clients: 100, sequences: 100, masks: Some(masks), ..Setting::default() };
        Account::of(&setting).unwrap().with_sampling(Sampling::Everyone).unwrap()
    };
    let mu = |per_round: u64| MaskBound::new(masks, per_round, 2.0).unwrap().mu();
    let (few, many) = (of(20), of(50));
    let mixed = Mixed::new(&[(&few, 3), (&many, 4)]).unwrap();
    let exact = gaussian::epsilon(1e-5, (3.0 * mu(20).powi(2) + 4.0 * mu(50).powi(2)).sqrt()).unwrap();
    assert!((mixed.epsilon(View::RawSignal).unwrap().unwrap() / exact - 1.0).abs() < 1e-9);
    let words = mixed.statement(View::RawSignal).unwrap().unwrap().assumptions.join("; ");
    assert!(words.contains("at least 20 are honest"), "{words}");
}

#[test]
fn calibration_counts_on_masks() {
    let target = Target { view: View::RawSignal, epsilon: 8.0, rounds: 1 };
    let masked = Setting { channel: None, ..setting(Some(with_mu(0.5))) };
    let fewest = calibrate::fewest_sequences(&masked, target, 64).unwrap();
    assert_eq!(fewest.setting.sequences, 20);
    let clip = calibrate::largest_clip(&masked, target).unwrap();
    let exact = gaussian::epsilon(1e-5, 0.5 * clip.setting.clip).unwrap();
    assert!((clip.epsilon / exact - 1.0).abs() < 1e-9 && clip.epsilon <= 8.0 && clip.epsilon > 7.9);
    let rounds = calibrate::most_rounds(&masked, Target { rounds: 1000, ..target }).unwrap().rounds;
    let at = |rounds: u64| gaussian::epsilon(1e-5, 0.5 * (rounds as f64).sqrt()).unwrap();
    assert!(at(rounds) <= 8.0 && at(rounds + 1) > 8.0);
}

#[test]
fn settings_that_cannot_be_masked_are_refused() {
    let refused = |setting: Setting| Account::of(&setting).err().unwrap();
    let masks = Some(with_mu(1.0));
    let error = refused(Setting { clipping: Clipping::Paper, masks, ..Setting::default() });
    assert_eq!(error, PrivacyError::MaskedNormalisation);
    let masks = Some(Masks::new(1.0, 1.0, 19).unwrap());
    assert!(refused(Setting { masks, ..Setting::default() }).to_string().contains("at most 18"));
}

#[test]
fn neighbours_of_either_kind_have_the_same_bound() {
    let of = |neighbours| {
        let setting = Setting { neighbours, clients: 200, channel: None, ..setting(Some(with_mu(0.5))) };
        let account = Account::of(&setting).unwrap();
        account.statement(View::RawSignal, 5).unwrap().unwrap().epsilon.unwrap()
    };
    let (replaced, added) = (of(Neighbours::ReplaceOne), of(Neighbours::AddRemove));
    // p = 20/200 and 20/201.
    assert!(added <= replaced && added > 0.99 * replaced, "{replaced} {added}");
}

/// Noise with a known minimum: a share `r` of the masks does not cancel, which leaves `σ_m²·r·K + σ_z²·K`.
#[test]
fn the_quietest_masks_are_found() {
    let (clients, mu, left) = (200.0_f64, 0.3, 0.004);
    let noise = |masks: Masks| clients * (left * masks.mask_std().powi(2) + masks.noise_std().powi(2));
    let found = calibrate::quietest_masks(mu, 2.0, 200, 3, noise).unwrap();
    let bound = |masks: Masks| MaskBound::new(masks, 200, 2.0).unwrap().mu();
    assert!((bound(found) / mu - 1.0).abs() < 1e-4 && bound(found) <= mu * (1.0 + 1e-9));
    // Larger and smaller masks, each with the noise that it needs, leave more noise.
    for factor in [0.5, 0.9, 1.1, 2.0] {
        let mask_std = factor * found.mask_std();
        let (mut low, mut high) = (1e-3, 1e3);
        for _ in 0..200 {
            let middle = 0.5 * (low + high);
            if bound(Masks::new(mask_std, middle, 3).unwrap()) > mu { low = middle } else { high = middle }
        }
        assert!(noise(Masks::new(mask_std, high, 3).unwrap()) > noise(found) * 0.9999, "{factor}");
    }
    // Masks that do not cancel at all are worse than none.
    let none =
        calibrate::quietest_masks(mu, 2.0, 200, 0, |masks| noise(masks) + 1e6 * masks.mask_std()).unwrap();
    assert_eq!(none.mask_std(), 0.0);
}

#[test]
fn the_mu_of_an_epsilon_meets_it() {
    for (rounds, sampling) in
        [(1, Sampling::Everyone), (40, Sampling::Everyone), (40, Sampling::ReplaceOne(0.1))]
    {
        let mu = calibrate::gaussian_mu(8.0, 1e-5, rounds, sampling).unwrap();
        let mut account = Account::new(sampling, 1e-5).unwrap();
        account.set_masks(MaskBound::new(Masks::new(0.0, 2.0 / mu, 0).unwrap(), 20, 2.0).unwrap());
        let epsilon = account.epsilon(View::RawSignal, rounds).unwrap().unwrap();
        assert!(epsilon <= 8.0 * (1.0 + 1e-9) && epsilon > 7.98, "{epsilon}");
    }
}
