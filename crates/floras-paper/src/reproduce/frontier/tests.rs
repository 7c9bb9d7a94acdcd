//! The frontier on a small grid.

use std::path::Path;

use floras_core::{Clipping, Fading, Modulation, Neighbours, PhaseError, Receiver, Snr, SnrConvention, View};
use floras_privacy::{Account, Coefficients, PrivacyUnit, Setting};

use super::contest::{Contender, Contest};
use super::{EPSILON, Grid};
use crate::reproduce::workbench::{Stage, Workbench};

const SMALL: Grid = Grid {
    clients: &[100],
    epsilons: &[],
    sweeps: &[],
    example: 100,
    contenders: &[Contender::Central, Contender::Inversion, Contender::Clipped, Contender::Paper],
    trials: 2,
};
const POINT: (u32, u32) = (100, EPSILON);

fn bench(directory: &Path, threads: usize) -> Workbench<'_> {
    Workbench { quick: true, directory, threads, watch: &|_: Stage<'_>| {} }
}

/// `ε` of a setting with so many sequences, from the accounting itself.
fn epsilon(receiver: Receiver, view: View, sequences: u64, length: u64) -> f64 {
    let noise_std = Snr::new(20.0, SnrConvention::Symbol).unwrap().despread_noise_std(length as usize);
    let channel = Coefficients::of(Fading::Rayleigh, Modulation::PhaseCorrected(PhaseError::None), noise_std);
    let setting = Setting {
        clip: 1.0,
        sequences,
        per_round: POINT.0.into(),
        clients: POINT.0.into(),
        delta: 1e-5,
        unit: PrivacyUnit::Client,
        neighbours: Neighbours::ReplaceOne,
        clipping: Clipping::Each,
        receiver,
        channel: Some(channel.unwrap()),
        ..Setting::default()
    };
    Account::of(&setting).unwrap().epsilon(view, 40).unwrap().unwrap()
}

/// What a run says of itself meets the `ε` that was asked for, and one sequence fewer would not.
#[test]
fn every_setting_meets_its_epsilon_with_nothing_to_spare_and_clipping_keeps_what_the_papers_receiver_loses() {
    let directory = tempfile::tempdir().unwrap();
    let contest = Contest::hold(&bench(directory.path(), 2), &SMALL).unwrap();
    for contender in SMALL.contenders {
        for view in [View::Idealised, View::Actual] {
            let measured = contest.get(*contender, view, POINT).unwrap();
            let views = &measured.record.summary.privacy.views;
            let told = |view| views.get(view).and_then(|statement| statement.epsilon);
            let Some(receiver) = contender.receiver() else {
                let told =
                    told(if *contender == Contender::Central { View::Actual } else { View::Idealised });
                let share = told.unwrap() / f64::from(EPSILON);
                assert!(share <= 1.0 && share > 0.999, "{contender:?}: {share}");
                continue;
            };
            let choice = measured.choice.unwrap();
            assert!(choice.sequences <= choice.length && choice.length.is_power_of_two());
            assert!(told(view).unwrap() <= f64::from(EPSILON), "{contender:?}, {view}");
            let fewer = epsilon(receiver, view, choice.sequences - 1, choice.length);
            assert!(fewer > f64::from(EPSILON), "{contender:?}, {view}: {fewer} with a sequence less");
        }
    }
    // Trials differ by one to two points; the paper's receiver is more than five away from the others.
    let accuracy = |contender, view| 100.0 * contest.accuracy(contender, view, POINT).unwrap().mean;
    for view in [View::Idealised, View::Actual] {
        let [central, inversion, clipped, paper] =
            [Contender::Central, Contender::Inversion, Contender::Clipped, Contender::Paper]
                .map(|contender| accuracy(contender, view));
        assert!(
            (central - clipped).abs() < 3.0 && (central - inversion).abs() < 3.0,
            "{clipped}, {inversion}"
        );
        assert!(clipped > paper + 4.0, "{view}: {clipped} and {paper}");
        assert!(contest.loss(Contender::Central, view, POINT).unwrap().mean > 0.0);
    }
    let [median, worst] = contest.noise_ratios(Contender::Clipped, View::Actual, POINT).unwrap();
    assert!(median < 1.05 && worst < 1.2, "{median}, {worst}");
    let [median, worst] = contest.noise_ratios(Contender::Paper, View::Actual, POINT).unwrap();
    assert!(median > 1.4 && worst > 20.0, "{median}, {worst}");

    // Everything is there already, and says the same.
    let again = Contest::hold(&bench(directory.path(), 1), &SMALL).unwrap();
    let words = [&contest, &again].map(|contest| super::words::paragraphs(&SMALL, contest));
    assert_eq!(words[0], words[1]);
}

#[test]
fn points_are_counted_once() {
    assert_eq!(super::FULL.points().len(), 17);
    assert_eq!(super::QUICK.points(), [(50, EPSILON), (500, EPSILON)]);
}
