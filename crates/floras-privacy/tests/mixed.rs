//! Accounts of rounds that differ, and the curve of an account.

#![expect(clippy::unwrap_used, reason = "tests")]

use floras_privacy::mixed::Mixed;
use floras_privacy::published::{Participation, WHY_NOT_A_GUARANTEE};
use floras_privacy::{
    Account, Clipping, Coefficients, MuDistribution, NORMALISED, Neighbours, PrivacyUnit, Receiver, Sampling,
    Setting, Source, Statement, View, gaussian,
};

fn setting() -> Setting {
    Setting {
        clip: 1.0,
        sequences: 40,
        per_round: 20,
        clients: 100,
        delta: 1e-5,
        unit: PrivacyUnit::Client,
        neighbours: Neighbours::ReplaceOne,
        clipping: Clipping::Each,
        receiver: Receiver::clipped(1.0).unwrap(),
        channel: Some(Coefficients::normal(0.1 / 8.0, 0.5_f64.sqrt()).unwrap()),
        ..Setting::default()
    }
}

/// The account of rounds with `per_round` participants.
fn answered(per_round: u64) -> Account {
    Account::of(&Setting { per_round, ..setting() }).unwrap()
}

/// An account with one view, of a Gaussian mechanism.
fn gaussian_account(mu: f64) -> Account {
    let mut account = Account::new(Sampling::Everyone, 1e-5).unwrap();
    account.set(View::Actual, Source::of(MuDistribution::Constant(mu)));
    account
}

fn statement(parts: &[(&Account, u64)], view: View) -> Statement {
    Mixed::new(parts).unwrap().statement(view).unwrap().unwrap()
}

#[test]
fn one_account_alone_is_itself() {
    let account = answered(20);
    let mixed = Mixed::new(&[(&account, 7)]).unwrap();
    assert_eq!(mixed.views().unwrap(), account.views(7).unwrap());
    for view in View::ALL {
        assert_eq!(mixed.epsilon(view).unwrap(), account.epsilon(view, 7).unwrap(), "{view}");
        assert_eq!(mixed.statement(view).unwrap(), account.statement(view, 7).unwrap(), "{view}");
    }
    assert_eq!((mixed.rounds(), mixed.delta()), (7, 1e-5));
}

/// Every view agrees to the width of a grid step, with the same texts.
#[test]
fn equal_accounts_compose_to_their_total_rounds() {
    let account = answered(20);
    let mixed = Mixed::new(&[(&account, 3), (&account, 4)]).unwrap();
    let (views, whole) = (mixed.views().unwrap(), account.views(7).unwrap());
    assert_eq!(views.iter().count(), View::ALL.len());
    for (view, found) in views.iter() {
        let whole = whole.get(view).unwrap();
        let (Some(epsilon), Some(exact)) = (found.epsilon, whole.epsilon) else {
            assert_eq!((found.epsilon, &found.reason), (whole.epsilon, &whole.reason), "{view}");
            continue;
        };
        assert!((epsilon / exact - 1.0).abs() < 1e-5, "{view}: {epsilon} is not {exact}");
        assert_eq!(mixed.epsilon(view).unwrap(), Some(epsilon), "{view}");
        assert!(found.epsilon_lower.is_none_or(|lower| lower <= epsilon), "{found:?}");
        assert_eq!((found.guarantee, &found.reason), (whole.guarantee, &whole.reason), "{view}");
        assert_eq!(found.adversary, whole.adversary);
        let known = |statement: &Statement| statement.details.get("in_every_round").copied();
        match (known(found), known(whole)) {
            (Some(found), Some(whole)) => assert!((found / whole - 1.0).abs() < 1e-5, "{view}"),
            (found, whole) => assert_eq!(found, whole, "{view}"),
        }
    }
}

/// Two clients that drop out leave two more unused sequences, which add noise, and reduce the sampling probability.
#[test]
fn rounds_with_dropouts_spend_less_than_full_ones() {
    let (all, fewer) = (answered(20), answered(18));
    for view in [View::Published, View::Idealised, View::Actual, View::AnyChannel] {
        let mixed = Mixed::new(&[(&all, 25), (&fewer, 15)]).unwrap().epsilon(view).unwrap();
        let of = |account: &Account, rounds| account.epsilon(view, rounds).unwrap();
        assert!(of(&fewer, 40) < mixed && mixed < of(&all, 40), "{view}: {mixed:?}");
        assert!(mixed > of(&all, 25), "{view}: {mixed:?}");
    }
}

#[test]
fn gaussian_accounts_add_up_their_squares() {
    let (one, other) = (gaussian_account(0.3), gaussian_account(0.4));
    let found = statement(&[(&one, 16), (&other, 9)], View::Actual);
    let exact = gaussian::epsilon(1e-5, (16.0 * 0.09 + 9.0 * 0.16_f64).sqrt()).unwrap();
    assert!((found.epsilon.unwrap() / exact - 1.0).abs() < 1e-9, "{found:?}");
    assert!(found.guarantee && found.reason.is_none());
}

/// No order is better than that of the formula, and one of a hundred thousand orders is nearly as good.
#[test]
fn published_divergences_add_up_at_a_common_order() {
    let settings = [20, 17, 12].map(|per_round| Setting { per_round, ..setting() });
    let rounds = [30, 8, 2];
    let accounts: Vec<Account> = settings.iter().map(|setting| Account::of(setting).unwrap()).collect();
    let parts: Vec<(&Account, u64)> = accounts.iter().zip(rounds).collect();
    let found = statement(&parts, View::Published);
    assert!(!found.guarantee && found.reason.as_deref() == Some(WHY_NOT_A_GUARANTEE));
    let at = |order: f64| {
        let divergence = |setting: &Setting| {
            let round = setting.published(Participation::PerClients).unwrap();
            round.divergence(order).unwrap().as_printed()
        };
        let sum: f64 = settings.iter().zip(rounds).map(|(setting, t)| t as f64 * divergence(setting)).sum();
        sum - 1e-5_f64.ln() / (order - 1.0)
    };
    let best = (1..100_000).map(|i| at(1.0 + f64::from(i) * 1e-3)).fold(f64::INFINITY, f64::min);
    let epsilon = found.epsilon.unwrap();
    assert!(epsilon <= best * (1.0 + 1e-12) && best < epsilon * (1.0 + 1e-6), "{epsilon} and {best}");
    assert_eq!(Mixed::new(&parts).unwrap().epsilon(View::Published).unwrap(), Some(epsilon));
}

#[test]
fn a_guarantee_needs_guarantees_in_all_rounds() {
    let whole = answered(20);
    let normalised = Account::of(&Setting { clipping: Clipping::Paper, ..setting() }).unwrap();
    let mut estimated = answered(18);
    estimated.add_caveat("an estimate");
    let both = statement(&[(&whole, 2), (&normalised, 1)], View::Idealised);
    assert!(!both.guarantee && both.epsilon.is_some() && both.reason.as_deref() == Some(NORMALISED));
    let three = statement(&[(&whole, 2), (&estimated, 1), (&normalised, 1)], View::Idealised);
    assert_eq!((three.guarantee, three.reason.as_deref()), (false, Some("an estimate")));
    // One round without unused sequences hides nothing, and so all rounds together hide nothing.
    let crowded = answered(40);
    let found = statement(&[(&estimated, 5), (&crowded, 1)], View::Idealised);
    assert!(!found.guarantee && found.epsilon.is_none() && found.epsilon_lower.is_none());
    assert!(found.reason.unwrap().contains("no guarantee without unused sequences"));
    let mixed = Mixed::new(&[(&whole, 5), (&crowded, 1)]).unwrap();
    assert_eq!(mixed.epsilon(View::Idealised).unwrap(), None);
    assert_eq!(mixed.epsilon(View::Published).unwrap(), None);
    let published = mixed.statement(View::Published).unwrap().unwrap();
    assert!(published.reason.unwrap().contains("no guarantee without unused sequences"));
}

#[test]
fn views_missing_in_some_rounds_are_omitted() {
    let (with, without) = (answered(20), Account::of(&Setting { channel: None, ..setting() }).unwrap());
    let mixed = Mixed::new(&[(&with, 1), (&without, 1)]).unwrap();
    let views = mixed.views().unwrap();
    let stated: Vec<View> = views.iter().map(|(view, _)| view).collect();
    assert_eq!(stated, [View::Published, View::Idealised, View::AnyChannel]);
    assert_eq!(mixed.epsilon(View::Actual).unwrap(), None);
    // Neither account has a published round.
    let mixed = [gaussian_account(1.0), gaussian_account(2.0)];
    let mixed = Mixed::new(&[(&mixed[0], 1), (&mixed[1], 1)]).unwrap();
    assert!(mixed.statement(View::Published).unwrap().is_none());
}

/// Beyond the largest `ε`, no view has a number. An any-channel `δ` that is too small, here by design, is replaced by
/// that of a strong client.
#[test]
fn rounds_without_privacy_bound_a_strong_client() {
    let account = |any, strong| {
        let mut account = Account::new(Sampling::Everyone, 1e-5).unwrap();
        account.set(View::AnyChannel, Source::of(MuDistribution::Constant(any)));
        account.set(View::Idealised, Source::of(MuDistribution::Constant(strong)));
        account
    };
    let (one, other) = (account(446.0, 600.0), account(30.0, 20.0));
    let mixed = Mixed::new(&[(&one, 1), (&other, 1)]).unwrap();
    for view in [View::Idealised, View::AnyChannel] {
        assert_eq!(mixed.epsilon(view).unwrap(), None);
        assert_eq!(mixed.statement(view).unwrap().unwrap().epsilon, None);
    }
    let delta = |view, epsilon| one.delta_at(view, 1, epsilon).unwrap();
    assert_eq!(delta(View::AnyChannel, 1.2e5), delta(View::Idealised, 1.2e5));
    assert_eq!(delta(View::AnyChannel, 9.95e4), delta(View::Idealised, 9.95e4));
}

/// Round trip, up to the agreement of two windows; in closed form to the last digits.
#[test]
fn delta_at_is_the_inverse_of_epsilon() {
    let account = answered(20);
    for view in [View::Idealised, View::Actual, View::AnyChannel] {
        for rounds in [1, 30] {
            let epsilon = account.epsilon(view, rounds).unwrap().unwrap();
            let delta = account.delta_at(view, rounds, epsilon).unwrap().unwrap();
            assert!((delta / 1e-5 - 1.0).abs() < 1e-3, "{view}, T = {rounds}: {delta}");
            let further = account.delta_at(view, rounds, 1.5 * epsilon).unwrap().unwrap();
            assert!(further < delta, "{view}, T = {rounds}: {further}");
        }
    }
    let found = gaussian_account(0.3).delta_at(View::Actual, 16, 2.0).unwrap().unwrap();
    assert!((found / gaussian::delta(2.0, 1.2) - 1.0).abs() < 1e-12, "{found}");
}

#[test]
fn delta_at_says_nothing_without_a_curve() {
    let crowded = answered(40);
    for view in [View::Published, View::Idealised] {
        assert_eq!(crowded.delta_at(view, 1, 1.0).unwrap(), None, "{view}");
    }
    assert_eq!(answered(20).delta_at(View::Published, 1, 1.0).unwrap(), None);
    assert_eq!(gaussian_account(1.0).delta_at(View::Idealised, 1, 1.0).unwrap(), None);
    // A curve that never falls is not an error: δ is at most 1.
    let hopeless = gaussian_account(1e6);
    assert_eq!(hopeless.delta_at(View::Actual, 1, 1.0).unwrap(), Some(1.0));
    let hopeless = hopeless.with_sampling(Sampling::ReplaceOne(0.5)).unwrap();
    assert_eq!(hopeless.delta_at(View::Actual, 100, 1.0).unwrap(), Some(1.0));
}

#[test]
fn accounts_with_everyone_equal_known_participation() {
    let account = answered(20);
    let known = account.statement(View::Idealised, 9).unwrap().unwrap().details["in_every_round"];
    let everyone = account.with_sampling(Sampling::Everyone).unwrap();
    assert_eq!(everyone.epsilon(View::Idealised, 9).unwrap(), Some(known));
    assert_eq!(everyone.sampling(), Sampling::Everyone);
    assert!(everyone.with_sampling(Sampling::ReplaceOne(1.5)).is_err());
}
