//! Loss distributions as values: one round of a view on a grid, to be exported, imported and composed with others.
//!
//! A [`LossFile`] holds what dp-accounting calls a `PrivacyLossDistribution`: the masses of the privacy loss of one round at
//! `step·(first + i)`, the mass of an infinite loss, and the number of rounds. The masses connect the dots of the round's
//! curve, so the estimate is pessimistic: every composition of them yields an upper bound.
//!
//! Several trainings on the same clients compose: their losses add up, as those of rounds of several kinds do. They must be
//! about the same neighbours and the same level, and no training's settings may depend on another's results other than
//! through its released model (adaptive composition covers that).
//!
//! # Citations
//! Doroshenko, Ghazi, Kamath, Kumar, Manurangsi, *Connect the dots: tighter discrete approximations of privacy loss
//! distributions*, PoPETs 2022. Google, *dp-accounting*, `pld/privacy_loss_distribution.py`.

use floras_core::View;
use serde::{Deserialize, Serialize};

use crate::engine::compose::Composition;
use crate::engine::distribution::Side;
use crate::engine::loss::{LossDistribution, Sketch};
use crate::engine::sampling::Direction;
use crate::engine::tilt::Tilts;
use crate::engine::window::Composed;
use crate::error::{PrivacyError, require_composed, require_delta, require_rounds};
use crate::mixed::Mixed;

/// The value of `format`.
const FORMAT: &str = "floras-loss-distribution";
/// The version that this crate writes and reads.
const VERSION: u32 = 1;
/// Maximum number of grid points of one round's loss.
const MAX_POINTS: f64 = (1_u32 << 17) as f64;
/// Maximum number of points of a file that is read.
const MAX_POINTS_READ: usize = 1 << 24;
/// Number of points in a window of the composition.
const WINDOW: f64 = (1_u32 << 20) as f64;
/// Number of points in a window of the coarse search.
const ROUGH: f64 = (1_u32 << 14) as f64;
/// Probability that is cut off all rounds together, relative to `δ`.
const CUT: f64 = 1e-5;
/// Probability that a composition cuts off, relative to its `δ`.
const CUT_OF_COMPOSITION: f64 = 1e-7;
/// Approximate relative error of `ε` because of the grid.
const ACCURACY: f64 = 1e-6;
/// Maximum number of tilts that are tried.
const MAX_TILTS: usize = 30;

/// The privacy loss of one round of a view, and how many rounds there are.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct LossFile {
    /// Name of the format, always `floras-loss-distribution`.
    pub format: String,
    /// Version of the format; this crate reads and writes version 1.
    pub version: u32,
    /// Name of the view, or another source of the distribution.
    pub view: String,
    /// Whether statements that follow from this distribution are guarantees.
    pub guarantee: bool,
    /// `replace-one` or `add-remove`.
    pub neighbours: String,
    /// `client` or `item`.
    pub level: String,
    /// Number of rounds.
    pub rounds: u64,
    /// Number of independent parts of a round, such as coordinates, each with this loss; at least 1.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub parts: u64,
    /// Step of the grid, in nats; from 1e-12 to 10.
    pub step: f64,
    /// Always `true`: the masses describe a mechanism that leaks at least as much.
    pub pessimistic: bool,
    /// One distribution that holds for both directions, or one per direction.
    pub losses: Vec<RoundLoss>,
    /// What the guarantee of the view assumes, one phrase each.
    #[serde(default)]
    pub assumptions: Vec<String>,
}

fn one() -> u64 {
    1
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_one(parts: &u64) -> bool {
    *parts == 1
}

/// Masses of the loss of one round, or of one of its parts.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct RoundLoss {
    /// The direction: which of the neighbours the outcome is drawn from.
    pub direction: LossDirection,
    /// Index of the first mass, whose loss is `step·first`.
    pub first: i64,
    /// Mass of each grid point, at least 0. With `infinity` they sum to 1.
    pub masses: Vec<f64>,
    /// Probability of an infinite loss.
    pub infinity: f64,
}

/// Which of the neighbours the outcome is drawn from.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum LossDirection {
    /// Either neighbour: the loss has the same distribution.
    Both,
    /// The neighbour with the data; the other lacks them.
    Remove,
    /// The neighbour without the data; the other has them.
    Add,
}

/// An error in a loss distribution.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum LossFileError {
    /// A field that is out of range.
    #[error("{field} must be {allowed}, not {value}")]
    Field {
        /// Name of the field.
        field: &'static str,
        /// Allowed values, for the message.
        allowed: &'static str,
        /// The rejected value.
        value: String,
    },
    /// Distributions of different neighbours or levels.
    #[error("distributions with {field} {one} and {other} do not compose: all must have the same")]
    Different {
        /// Name of the field that differs.
        field: &'static str,
        /// Its value in the first distribution.
        one: String,
        /// Its value in another distribution.
        other: String,
    },
    /// The list of distributions is empty.
    #[error("there is nothing to compose: give at least one loss distribution")]
    Nothing,
    /// An error of the accounting.
    #[error(transparent)]
    Privacy(#[from] PrivacyError),
}

impl LossFile {
    /// The loss of one round of a view, on a grid that is fine enough for the `ε` of all rounds at the accounts' `δ`. `None`
    /// if the view has no finite `ε`. All rounds must be of one kind.
    pub fn of_view(
        rounds: &Mixed<'_>,
        view: View,
        level: &str,
        neighbours: &str,
    ) -> Result<Option<Self>, PrivacyError> {
        // Rounds of one kind: the curve of the view may be that of a part of a round.
        let [(_, of_view)] = rounds.parts() else { return Ok(None) };
        let Some(statement) = rounds.statement(view)? else { return Ok(None) };
        let mut best = None;
        for bounding in rounds.bounding(view) {
            let composition = Composition::of_parts(&bounding.parts)?;
            match composition.epsilon_upper(rounds.delta()) {
                Ok(epsilon) if best.as_ref().is_none_or(|(smallest, _)| epsilon < *smallest) => {
                    best = Some((epsilon, composition));
                }
                Err(error) if !error.is_no_guarantee() => return Err(error),
                _ => {}
            }
        }
        let Some((epsilon, composition)) = best else { return Ok(None) };
        let [part] = &composition.parts[..] else { return Ok(None) };
        let times = part.rounds as f64;
        let delta = (CUT / CUT_OF_COMPOSITION * rounds.delta()).min(0.5);
        let mut losses = Vec::new();
        let prepared = composition
            .directions
            .iter()
            .map(|&direction| Ok((direction, composition.prepared(direction, Side::Upper, delta)?)))
            .collect::<Result<Vec<_>, PrivacyError>>()?;
        let reach = prepared.iter().map(|(_, prepared)| prepared.reach()).fold(0.0, f64::max);
        // Connecting the dots moves the sum by about T·h²/8.
        let fine = (8.0 * ACCURACY * epsilon.max(1e-3) / times).sqrt().min(1e-3 * epsilon.max(1e-3));
        let step = short(fine.min(reach / 4096.0).max(reach / MAX_POINTS));
        for (direction, prepared) in prepared {
            losses
                .extend(prepared.round_losses(step).into_iter().map(|loss| RoundLoss::new(direction, loss)));
        }
        Ok(Some(Self {
            format: FORMAT.to_owned(),
            version: VERSION,
            view: view.name().to_owned(),
            guarantee: statement.guarantee,
            neighbours: neighbours.to_owned(),
            level: level.to_owned(),
            rounds: *of_view,
            parts: part.rounds / of_view,
            step,
            pessimistic: true,
            losses,
            assumptions: statement.assumptions,
        }))
    }

    /// Number of losses that are composed: the parts of all rounds.
    fn composed(&self) -> u64 {
        self.rounds.saturating_mul(self.parts)
    }

    /// Returns `Ok` if all fields are in range and consistent.
    pub fn check(&self) -> Result<(), LossFileError> {
        let wrong = |field, allowed, value: String| Err(LossFileError::Field { field, allowed, value });
        if self.format != FORMAT {
            return wrong("format", FORMAT, self.format.clone());
        }
        if self.version != VERSION {
            return wrong("version", "1", self.version.to_string());
        }
        if !matches!(&self.neighbours[..], "replace-one" | "add-remove") {
            return wrong("neighbours", "replace-one or add-remove", self.neighbours.clone());
        }
        if !matches!(&self.level[..], "client" | "item") {
            return wrong("level", "client or item", self.level.clone());
        }
        require_rounds(self.rounds)?;
        require_composed(self.composed())?;
        if !(1e-12..=10.0).contains(&self.step) {
            return wrong("step", "between 1e-12 and 10", self.step.to_string());
        }
        if !self.pessimistic {
            return wrong("pessimistic", "true: an optimistic estimate bounds nothing", "false".to_owned());
        }
        let directions: Vec<LossDirection> = self.losses.iter().map(|loss| loss.direction).collect();
        use LossDirection::{Add, Both, Remove};
        if !matches!(directions[..], [Both] | [Remove, Add]) {
            let allowed = "one with the direction both, or two with remove and add";
            return wrong("losses", allowed, format!("{directions:?}").to_lowercase());
        }
        if directions != [Both] && self.neighbours == "replace-one" {
            return wrong(
                "losses",
                "one with the direction both for replace-one neighbours",
                "remove and add".to_owned(),
            );
        }
        self.losses.iter().try_for_each(RoundLoss::check)
    }
}

impl RoundLoss {
    fn new(direction: Direction, mut loss: LossDistribution) -> Self {
        loss.remove_excess();
        let direction = match direction {
            Direction::Replace | Direction::Known => LossDirection::Both,
            Direction::Remove => LossDirection::Remove,
            Direction::Add => LossDirection::Add,
        };
        // Points without mass at the ends are dropped.
        let from = loss.masses.iter().position(|&mass| mass > 0.0).unwrap_or(0);
        let to = loss.masses.iter().rposition(|&mass| mass > 0.0).map_or(from, |last| last + 1);
        Self {
            direction,
            first: loss.first + from as i64,
            masses: loss.masses[from..to].to_vec(),
            infinity: loss.infinite,
        }
    }

    fn check(&self) -> Result<(), LossFileError> {
        let wrong = |field, allowed, value: String| Err(LossFileError::Field { field, allowed, value });
        if self.masses.is_empty() || self.masses.len() > MAX_POINTS_READ {
            return wrong("masses", "between 1 and 2^24 numbers", self.masses.len().to_string());
        }
        if self.first.unsigned_abs() > 1 << 40 {
            return wrong("first", "an index of at most 2^40", self.first.to_string());
        }
        let all = self.masses.iter().chain([&self.infinity]);
        if let Some(mass) = all.clone().find(|mass| !(mass.is_finite() && **mass >= 0.0)) {
            return wrong("masses", "finite and not negative", mass.to_string());
        }
        let total: f64 = all.sum();
        if (total - 1.0).abs() > 1e-9 {
            return wrong("masses", "numbers that add up to 1 with the infinite one", total.to_string());
        }
        Ok(())
    }

    fn distribution(&self, step: f64) -> LossDistribution {
        LossDistribution { step, first: self.first, masses: self.masses.clone(), infinite: self.infinity }
    }
}

/// Rounds down to two significant digits.
fn short(step: f64) -> f64 {
    let power = step.log10().floor() - 1.0;
    // A power of ten below 1 has no exact double; its reciprocal has.
    let scale = 10_f64.powf(-power);
    (step * scale).floor() / scale
}

/// The joint privacy loss of several trainings.
///
/// ```
/// use floras_privacy::mixed::Mixed;
/// use floras_privacy::{Account, JointLoss, MuDistribution, LossFile, Sampling, Source, View, gaussian};
///
/// let mut account = Account::new(Sampling::Everyone, 1e-5)?;
/// account.set(View::Actual, Source::of(MuDistribution::Constant(0.1)));
/// let rounds = Mixed::new(&[(&account, 50)])?;
/// let training = LossFile::of_view(&rounds, View::Actual, "client", "replace-one")?.expect("a finite view");
/// let both = JointLoss::new(&[training.clone(), training])?;
/// let exact = gaussian::epsilon(1e-5, 1.0)?;
/// assert!((both.epsilon_upper(1e-5)? / exact - 1.0).abs() < 1e-4);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct JointLoss {
    /// For each direction, the loss of a part of a round and the number of parts of all rounds of each training.
    directions: Vec<Vec<(LossDistribution, u64)>>,
    rounds: u64,
    guarantee: bool,
}

impl JointLoss {
    /// The joint loss of trainings with the same neighbours and level.
    pub fn new(files: &[LossFile]) -> Result<Self, LossFileError> {
        let [first, others @ ..] = files else { return Err(LossFileError::Nothing) };
        let (mut rounds, mut composed) = (0_u64, 0_u64);
        for file in files {
            file.check()?;
            rounds = rounds.saturating_add(file.rounds);
            composed = composed.saturating_add(file.composed());
        }
        require_rounds(rounds)?;
        require_composed(composed)?;
        for other in others {
            let pairs =
                [("neighbours", &first.neighbours, &other.neighbours), ("level", &first.level, &other.level)];
            if let Some((field, one, other)) = pairs.into_iter().find(|(_, one, other)| one != other) {
                return Err(LossFileError::Different { field, one: one.clone(), other: other.clone() });
            }
        }
        let is_symmetric = files.iter().all(|file| file.losses.len() == 1);
        let directions: &[usize] = if is_symmetric { &[0] } else { &[0, 1] };
        let of_direction = |&direction: &usize| {
            let of_file = |file: &LossFile| {
                // A distribution for both directions serves for each of them.
                let loss = file.losses.get(direction).unwrap_or(&file.losses[0]);
                (loss.distribution(file.step), file.composed())
            };
            files.iter().map(of_file).collect()
        };
        let guarantee = files.iter().all(|file| file.guarantee);
        Ok(Self { directions: directions.iter().map(of_direction).collect(), rounds, guarantee })
    }

    /// Total number of rounds of all trainings.
    pub fn rounds(&self) -> u64 {
        self.rounds
    }

    /// Whether the numbers of all trainings are guarantees.
    pub fn guarantee(&self) -> bool {
        self.guarantee
    }

    /// An upper bound on the smallest `ε` at a `δ`.
    pub fn epsilon_upper(&self, delta: f64) -> Result<f64, PrivacyError> {
        require_delta(delta)?;
        self.directions.iter().try_fold(0.0, |worst: f64, kinds| Ok(worst.max(epsilon_of(kinds, delta)?)))
    }
}

fn epsilon_of(kinds: &[(LossDistribution, u64)], delta: f64) -> Result<f64, PrivacyError> {
    let log_finite: f64 =
        kinds.iter().map(|(loss, rounds)| *rounds as f64 * (-loss.infinite.min(1.0)).ln_1p()).sum();
    let least = -log_finite.exp_m1();
    if least >= delta {
        return Err(PrivacyError::DeltaOutOfReach { delta, least });
    }
    let highest = kinds.iter().map(|(loss, _)| loss.highest()).fold(0.0, f64::max);
    let sketches = kinds.iter().map(|(loss, rounds)| (*rounds as f64, Sketch::of(loss)));
    let tilts = Tilts::new(sketches.collect(), highest.max(1e-12));
    let finest = kinds.iter().map(|(loss, _)| loss.step).fold(f64::INFINITY, f64::min);
    let around = |epsilon: f64, points: f64| {
        let theta = tilts.theta_at(epsilon);
        let window = tilts.window(theta, delta.ln());
        let step = finest.max((window.below + window.above) / points);
        let on_step = |(loss, rounds): &(LossDistribution, u64)| {
            let loss = if loss.step == step { loss.clone() } else { loss.with_step(step) };
            (loss, *rounds)
        };
        Composed::new(kinds.iter().map(on_step), step, window).epsilon_upper(delta)
    };
    // Every window yields an upper bound; the next window is tilted for the previous bound.
    let (mut epsilon, _) = tilts.quantile(delta.ln());
    for _ in 0..MAX_TILTS {
        let found = around(epsilon, ROUGH)?.min(epsilon);
        let moved = epsilon - found;
        epsilon = found;
        if moved <= 0.02 * epsilon {
            break;
        }
    }
    Ok(around(epsilon, WINDOW)?.min(epsilon))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::account::{Account, Source};
    use crate::engine::distribution::MuDistribution;
    use crate::engine::sampling::Sampling;
    use crate::numerics::gaussian;

    fn account(distribution: MuDistribution, sampling: Sampling) -> Account {
        let mut account = Account::new(sampling, 1e-5).unwrap();
        account.set(View::Actual, Source::of(distribution));
        account
    }

    fn file(distribution: MuDistribution, sampling: Sampling, rounds: u64) -> LossFile {
        let account = account(distribution, sampling);
        let neighbours = if let Sampling::AddRemove(_) = sampling { "add-remove" } else { "replace-one" };
        let rounds = Mixed::new(&[(&account, rounds)]).unwrap();
        LossFile::of_view(&rounds, View::Actual, "client", neighbours).unwrap().unwrap()
    }

    #[test]
    fn an_export_composes_to_the_account_s_epsilon() {
        let samplings =
            [Sampling::Everyone, Sampling::ReplaceOne(0.1), Sampling::AddRemove(0.1), Sampling::Known(0.1)];
        for sampling in samplings {
            for rounds in [1, 100] {
                let distribution = MuDistribution::HalfNormal { scale: 0.3 };
                let stated =
                    account(distribution.clone(), sampling).epsilon(View::Actual, rounds).unwrap().unwrap();
                let joint = JointLoss::new(&[file(distribution, sampling, rounds)]).unwrap();
                let ratio = joint.epsilon_upper(1e-5).unwrap() / stated;
                assert!((ratio - 1.0).abs() < 1e-4, "{sampling:?}, {rounds} rounds: {ratio}");
            }
        }
    }

    /// `μ = μ₁·√(T·d)`. The grid is coarse compared with the losses of very small parts, and the bound is then a few percent larger.
    #[test]
    fn exports_count_rounds_and_their_parts() {
        for (mu, parts, rounds, tolerance) in [(1e-2, 10_000, 1, 1e-4), (2e-5, 1_000_000, 3000, 0.2)] {
            let mut account = Account::new(Sampling::Everyone, 1e-5).unwrap();
            account.set(View::Actual, Source::of(MuDistribution::Constant(mu)).in_parts(parts));
            let mixed = Mixed::new(&[(&account, rounds)]).unwrap();
            let file = LossFile::of_view(&mixed, View::Actual, "client", "replace-one").unwrap().unwrap();
            assert_eq!((file.rounds, file.parts), (rounds, parts));
            let joint = JointLoss::new(&[file.clone(), file]).unwrap();
            assert_eq!(joint.rounds(), 2 * rounds);
            let exact = gaussian::epsilon(1e-5, ((2 * parts * rounds) as f64).sqrt() * mu).unwrap();
            let ratio = joint.epsilon_upper(1e-5).unwrap() / exact;
            assert!(1.0 - 1e-4 < ratio && ratio < 1.0 + tolerance, "{ratio}");
        }
    }

    #[test]
    fn trainings_on_different_grids_compose() {
        let files = [
            file(MuDistribution::Constant(0.3), Sampling::Everyone, 4),
            file(MuDistribution::Constant(0.05), Sampling::Everyone, 256),
        ];
        assert!(files[0].step != files[1].step);
        let exact = gaussian::epsilon(1e-5, 1.0).unwrap();
        let found = JointLoss::new(&files).unwrap().epsilon_upper(1e-5).unwrap();
        assert!((1.0 - 1e-9..1.0 + 1e-4).contains(&(found / exact)), "{found} and {exact}");
    }

    #[test]
    fn both_directions_of_added_neighbours_are_exported() {
        let file = file(MuDistribution::Constant(1.0), Sampling::AddRemove(0.2), 10);
        let directions: Vec<LossDirection> = file.losses.iter().map(|loss| loss.direction).collect();
        assert_eq!(directions, [LossDirection::Remove, LossDirection::Add]);
        assert!(file.check().is_ok());
    }

    #[test]
    fn damaged_files_are_refused() {
        let good = file(MuDistribution::Constant(1.0), Sampling::Everyone, 3);
        let damages: [fn(&mut LossFile); 11] = [
            |file| file.format = "another".to_owned(),
            |file| file.version = 2,
            |file| file.rounds = 0,
            |file| file.step = 0.0,
            |file| file.step = f64::NAN,
            |file| file.pessimistic = false,
            |file| file.neighbours = "friends".to_owned(),
            |file| file.losses.clear(),
            |file| file.losses[0].masses[0] = -1e-3,
            |file| file.losses[0].infinity = f64::INFINITY,
            |file| file.losses[0].masses.iter_mut().for_each(|mass| *mass *= 0.5),
        ];
        for (number, damage) in damages.iter().enumerate() {
            let mut bad = good.clone();
            damage(&mut bad);
            assert!(bad.check().is_err(), "damage {number}");
        }
        assert!(good.check().is_ok());
    }

    #[test]
    fn different_neighbours_do_not_compose() {
        let one = file(MuDistribution::Constant(1.0), Sampling::Everyone, 3);
        let other = file(MuDistribution::Constant(1.0), Sampling::AddRemove(0.5), 3);
        assert!(matches!(JointLoss::new(&[one, other]), Err(LossFileError::Different { .. })));
        assert!(matches!(JointLoss::new(&[]), Err(LossFileError::Nothing)));
    }

    #[test]
    fn delta_below_the_infinite_mass_has_no_epsilon() {
        let mut file = file(MuDistribution::Constant(1.0), Sampling::Everyone, 3);
        let loss = &mut file.losses[0];
        let middle = loss.masses.len() / 2;
        let moved = loss.masses[middle].min(1e-3);
        loss.masses[middle] -= moved;
        loss.infinity += moved;
        let joint = JointLoss::new(&[file]).unwrap();
        assert!(matches!(joint.epsilon_upper(1e-5), Err(PrivacyError::DeltaOutOfReach { .. })));
    }

    #[test]
    fn a_step_is_shortened_downwards() {
        for (step, shortened) in [(0.001_234, 0.0012), (1.0, 1.0), (0.099_9, 0.099)] {
            let found = short(step);
            assert!((found / shortened - 1.0).abs() < 1e-9 && found <= step * (1.0 + 1e-12), "{found}");
        }
    }
}
