//! The audit: attacks on our own air interface, and what they reveal.
//!
//! | attack | question |
//! |---|---|
//! | [`WorstCaseGame`] | is a claimed `ε` true? A client's worst update, distinguished from its opposite |
//! | membership | the same with real data, of a client or of one sample, over one round and over whole runs |
//! | sequences | which sequences are in use? From the pilot, the payload's energy, and both |
//! | despreading | what is each client's update, who sent it, and did the same client send two of them? |
//! | reconstruction | what do the clients' samples look like? |
//! | collusion | what changes if one client reveals its group key? |
//! | assumptions | what is `ε` if an assumption of the any-channel view is violated? |
//! | masks | what does an adversary learn from every symbol of masked rounds? Is a broken part of the masks detected? |
//!
//! An adversary's success yields a lower bound on `ε` ([`Scores::lower_bound`]), to compare with the accountant's upper bound.
//! A lower bound above a claim refutes it; one below a claim proves nothing.

mod assumptions;
mod bound;
mod collusion;
mod despreading;
mod directory;
mod effort;
mod game;
mod inner;
mod masks;
mod matching;
mod membership;
mod presentation;
mod reconstruction;
mod report;
mod sequences;
mod views;
mod words;

use floras_core::Level;
use floras_phy::UplinkError;
use floras_sim::{ExperimentError, Federation, Settings, SimError, VERSION};
use serde::{Deserialize, Serialize};

pub use assumptions::AssumptionAttack;
pub use bound::{LowerBound, Scores};
pub use collusion::CollusionAttack;
pub use despreading::{DespreadClient, DespreadingAttack};
pub use effort::Effort;
pub use game::{DecodedScores, WorstCaseGame};
pub use masks::{MaskAttack, MaskRow};
pub use membership::MembershipGame;
pub use presentation::{Cell, Part, Section};
pub use reconstruction::{ReconstructionAttack, ReconstructionRow};
pub use report::{AuditReport, AuditVerdict, Measured, Verdicts};
pub use sequences::{DetectorResult, SequenceAttack};
pub use views::{AuditedView, AuditedViews};

/// Number of rounds for despreading, linking and identifying clients.
const DESPREAD_ROUNDS: u32 = 20;
/// Number of samples that are reconstructed from updates.
const PORTRAITS: usize = 10;
/// Names of attacks that require training.
const DESPREADING: &str = "each client's own update";
const RECONSTRUCTION: &str = "pictures from updates";

/// The names of all plots and pictures of the attacks.
pub const PLOTS: [&str; 6] =
    ["sequences-roc", "sequences-snr", "sequences-d", "sequences-clip", "sequences-gamma", "reconstruction"];

/// The progress of an audit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Stage<'a> {
    /// A step begins.
    Begins {
        /// A description of the step.
        what: &'a str,
        /// Number of rounds to play, or of other units of work.
        units: u64,
    },
    /// Number of units finished since the last report.
    Done(u64),
}

/// Attacks an experiment, on the threads of the current `rayon` pool.
pub fn audit(
    federation: &Federation,
    effort: Effort,
    watch: &(dyn Fn(Stage<'_>) + Sync),
) -> Result<AuditReport, SimError> {
    let settings = federation.experiment().settings();
    if settings.privacy.level != Level::Client {
        let reason = "an audit attacks client-level statements: the level must be client";
        return Err(ExperimentError::refused("privacy.level", reason).into());
    }
    let game = game(federation)?;
    masks::check(settings)?;
    let bench = Bench { federation, settings, effort, game, watch };
    bench.begin("accounting", 0);
    federation.views(1)?;
    let views = views::audit(&bench)?;
    let (attacks, left_out) = Attacks::on(&bench)?;
    Ok(AuditReport {
        version: VERSION.to_owned(),
        name: settings.name.clone(),
        command: None,
        seed: settings.seed,
        parameters: federation.model().parameters(),
        rounds: federation.rounds(),
        delta: settings.privacy.delta,
        confidence: effort.confidence(),
        settings: words::settings(settings),
        notes: words::notes(settings, &views, &left_out),
        views,
        attacks,
    })
}

/// The results of all attacks; `None` where an attack does not apply.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct Attacks {
    /// Detection of the sequences in use.
    pub sequences: Option<SequenceAttack>,
    /// Despread updates of single clients.
    pub despreading: Option<DespreadingAttack>,
    /// Pictures reconstructed from updates.
    pub reconstruction: Option<ReconstructionAttack>,
    /// Results of the membership games, one per canary, adversary and number of rounds.
    pub membership: Vec<MembershipGame>,
    /// One client that reveals its group key.
    pub collusion: Option<CollusionAttack>,
    /// Violated assumptions of the any-channel view. Empty without such a view, and in files of older versions.
    #[serde(default)]
    pub assumptions: Vec<AssumptionAttack>,
    /// Rounds with masks. Absent in files of older versions.
    #[serde(default)]
    pub masks: Option<MaskAttack>,
}

impl Attacks {
    /// Runs every attack; also returns the names of those that could not run because training diverges.
    fn on(bench: &Bench<'_>) -> Result<(Self, Vec<String>), SimError> {
        let federation = bench.federation;
        bench.begin("which sequences are in use", 0);
        let sequences = sequences_in_use(federation, bench.effort)?;
        let mut left_out = Vec::new();
        bench.begin(DESPREADING, 0);
        let despreading = unless_diverged(despreading::attack(federation, DESPREAD_ROUNDS))?;
        left_out.extend(despreading.is_none().then(|| DESPREADING.to_owned()));
        bench.begin(RECONSTRUCTION, 0);
        let reconstruction = unless_diverged(pictures_from_updates(federation))?;
        left_out.extend(reconstruction.is_none().then(|| RECONSTRUCTION.to_owned()));
        let (membership, diverged) = membership::attack(bench)?;
        left_out.extend(diverged);
        let attacks = Self {
            sequences,
            despreading: despreading.flatten(),
            reconstruction: reconstruction.flatten(),
            membership,
            collusion: collusion::attack(bench)?,
            assumptions: assumptions::attack(bench)?,
            masks: masks::attack(bench)?,
        };
        Ok((attacks, left_out))
    }

    /// The results of all attacks, in display order.
    fn sections(&self) -> impl Iterator<Item = Section<'_>> {
        let sections = [
            self.reconstruction.as_ref().map(ReconstructionAttack::section),
            self.sequences.as_ref().map(SequenceAttack::section),
            self.despreading.as_ref().map(DespreadingAttack::section),
            membership::section(&self.membership),
            self.collusion.as_ref().map(CollusionAttack::section),
            assumptions::section(&self.assumptions),
            self.masks.as_ref().map(MaskAttack::section),
        ];
        sections.into_iter().flatten()
    }

    /// The same without curves and pictures.
    fn brief(&self) -> Self {
        let mut brief = self.clone();
        if let Some(sequences) = &mut brief.sequences {
            sequences.panels.clear();
        }
        if let Some(reconstruction) = &mut brief.reconstruction {
            reconstruction.originals.clear();
            reconstruction.rows.iter_mut().for_each(|row| row.images.clear());
        }
        brief
    }
}

/// `None` if training diverged.
fn unless_diverged<T>(result: Result<T, SimError>) -> Result<Option<T>, SimError> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(SimError::Uplink(UplinkError::NotFinite { .. } | UplinkError::Overflow { .. })) => Ok(None),
        Err(other) => Err(other),
    }
}

/// Sequence detection alone; `None` if the scheme has no sequences, with masks, and for a receiver with several branches.
pub fn sequences_in_use(federation: &Federation, effort: Effort) -> Result<Option<SequenceAttack>, SimError> {
    match branches(federation.experiment().settings()) {
        1 => sequences::attack(federation, effort.detection_rounds()),
        _ => Ok(None),
    }
}

/// Reconstruction alone; `None` if samples are not pictures, or the model does not reveal them.
pub fn pictures_from_updates(federation: &Federation) -> Result<Option<ReconstructionAttack>, SimError> {
    reconstruction::attack(federation, PORTRAITS)
}

/// `B`: real branches of the receiver. Some attacks on pilots, payloads and raw samples use one branch only.
pub(crate) fn branches(settings: &Settings) -> usize {
    let floras = settings.uplink.scheme.floras();
    floras.map_or(1, |floras| floras.modulation.branches(settings.uplink.radio.antennas))
}

fn game(federation: &Federation) -> Result<WorstCaseGame, SimError> {
    let settings = federation.experiment().settings();
    let Some(clip) = settings.privacy.clip else {
        let reason = "an audit needs a clip norm: without one, a client's influence is unbounded";
        return Err(ExperimentError::refused("privacy.clip", reason).into());
    };
    let clients = &settings.clients;
    if !clients.dropout.is_none() {
        let reason = "an audit needs rounds in which all selected clients send: set it to 0";
        return Err(ExperimentError::refused("clients.dropout", reason).into());
    }
    let is_traced = settings.uplink.radio().is_some_and(|radio| radio.trace().is_some());
    if is_traced && clients.per_round < clients.total {
        let reason = "an audit over a channel trace needs all clients in every round, because a trace may lack those who were not \
                      selected; set clients.per_round to clients.total";
        return Err(ExperimentError::refused("uplink.fading", reason).into());
    }
    let departures = settings
        .uplink
        .radio()
        .map(|radio| [("uplink.ageing", radio.ages()), ("uplink.path_loss", radio.is_unequal())]);
    if let Some((key, _)) = departures.into_iter().flatten().find(|(_, is_set)| *is_set) {
        let reason = "an audit needs channels that are constant over a round and equally distributed for all clients; remove this setting";
        return Err(ExperimentError::refused(key, reason).into());
    }
    Ok(WorstCaseGame {
        per_round: clients.per_round,
        probability: f64::from(clients.per_round) / f64::from(clients.total),
        participation_known: false,
        rounds: federation.rounds(),
        clip,
        parameters: federation.model().parameters(),
        truncate: settings.uplink.truncate,
        is_traced,
        seed: settings.seed,
    })
}

/// `C` in the units of sent updates; `None` if nothing bounds them.
pub(crate) fn sent_clip(settings: &Settings, parameters: usize) -> Option<f64> {
    Some(settings.privacy.clip? * settings.sent_scale(parameters)?)
}

/// The shared state of the attacks.
pub(crate) struct Bench<'a> {
    federation: &'a Federation,
    settings: &'a Settings,
    effort: Effort,
    game: WorstCaseGame,
    watch: &'a (dyn Fn(Stage<'_>) + Sync),
}

impl Bench<'_> {
    /// `C` in the units of sent updates.
    fn sent_clip(&self) -> Option<f64> {
        sent_clip(self.settings, self.game.parameters)
    }

    /// Reports the start of a step.
    fn begin(&self, what: &str, units: u64) {
        (self.watch)(Stage::Begins { what, units });
    }

    /// Reports the start of games, with the number in each world.
    fn begin_games(&self, what: &str, games: u32) {
        self.begin(what, 2 * u64::from(games) * u64::from(self.game.rounds));
    }

    fn tick(&self) -> impl Fn(u64) + Sync {
        |done| (self.watch)(Stage::Done(done * u64::from(self.game.rounds)))
    }

    /// Number of games in each world: a share of the effort, in which each round of a game counts.
    fn games(&self, share: f64) -> u32 {
        let rounds = f64::from(self.effort.games()) * share / 2.0;
        (rounds / f64::from(self.game.rounds)).max(200.0) as u32
    }
}

/// The example of the README, run as a documentation test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
