//! What an audit finds: plain numbers with their names, written as `audit.json`. Whoever draws it needs nothing else.

use floras_sim::figure::Panel;
use serde::{Deserialize, Serialize};

use super::views::AuditedViews;

/// What `floras audit` leaves behind.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct AuditReport {
    /// Version of the program.
    pub version: String,
    /// The experiment's name.
    pub name: String,
    /// Where all randomness comes from.
    pub seed: u64,
    /// `d`, parameters of the model.
    pub parameters: usize,
    /// The rounds that the statements are about.
    pub rounds: u32,
    /// `δ` of all statements.
    pub delta: f64,
    /// All lower bounds of `views` together hold with this probability.
    pub confidence: f64,
    /// The settings that decide, in words.
    pub settings: Vec<(String, String)>,
    /// What is claimed, and what was measured, for each adversary.
    pub views: AuditedViews,
    /// What each attack came to.
    pub attacks: Attacks,
    /// What a reader should know.
    pub notes: Vec<String>,
}

/// Both verdicts of a row; `None` where nothing is claimed, and where a number that is no guarantee is exceeded.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, Serialize)]
pub struct Verdicts {
    /// On the paper's `ε`.
    pub published: Option<AuditVerdict>,
    /// On the accounting's `ε`.
    pub rigorous: Option<AuditVerdict>,
}

/// What a lower bound says about a claim.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum AuditVerdict {
    /// The lower bound does not exceed the claim. That is no proof of the claim.
    Consistent,
    /// The lower bound exceeds the claim.
    Violated,
}

/// What a row is held against.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Claims {
    pub(super) published: Option<f64>,
    pub(super) rigorous: Option<f64>,
    pub(super) is_guarantee: bool,
}

impl Claims {
    /// Both verdicts on a lower bound.
    pub(super) fn judge(self, lower_bound: f64) -> Verdicts {
        let on = |claim: Option<f64>| claim.map(|claim| AuditVerdict::on(claim, lower_bound));
        // Exceeding an estimate refutes nothing.
        let refutes = |verdict: &AuditVerdict| self.is_guarantee || *verdict == AuditVerdict::Consistent;
        Verdicts { published: on(self.published), rigorous: on(self.rigorous).filter(refutes) }
    }
}

impl AuditVerdict {
    /// On a claim, given a lower bound.
    pub fn on(claim: f64, lower_bound: f64) -> Self {
        if lower_bound > claim { Self::Violated } else { Self::Consistent }
    }

    /// In words.
    pub fn words(self) -> &'static str {
        match self {
            Self::Consistent => "consistent",
            Self::Violated => "violated",
        }
    }
}

/// The counts behind a lower bound: how often the adversary said "the canary", in each world.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Serialize)]
pub struct Measured {
    /// Games that were counted in each of the two worlds; a third as many came before them and chose the threshold.
    pub games: u64,
    /// How often the adversary was right in the one world,
    pub right: u64,
    /// and how often it said the same in the other, where it is wrong.
    pub wrong: u64,
    /// The largest lower bound that so many games can give.
    pub ceiling: f64,
}

/// What each attack came to; `None` where it does not apply.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct Attacks {
    /// Which sequences are in use?
    pub sequences: Option<SequenceAttack>,
    /// The updates of single clients.
    pub despreading: Option<DespreadingAttack>,
    /// What the updates show.
    pub reconstruction: Option<ReconstructionAttack>,
    /// Who, or what, took part?
    pub membership: Vec<MembershipGame>,
    /// One client that hands over its group key.
    pub collusion: Option<CollusionAttack>,
    /// What the any-channel view assumes, broken. Empty where there is no such view, and in files of older versions.
    #[serde(default)]
    pub assumptions: Vec<AssumptionAttack>,
}

/// Which sequences are in use?
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct SequenceAttack {
    /// Rounds that were drawn.
    pub rounds: u32,
    /// `N`.
    pub sequences: usize,
    /// `K`.
    pub in_use: usize,
    /// What each detector reached under the experiment's own settings.
    pub detectors: Vec<DetectorResult>,
    /// The receiver operating characteristics, and the rate of exact recovery over SNR, `d`, `C` and `γ`.
    pub panels: Vec<Panel>,
}

/// How well one detector does.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct DetectorResult {
    /// `pilot`, `energy` or `both`.
    pub detector: String,
    /// Whether it knows the distribution of the fading.
    pub knows_fading: bool,
    /// Area under the curve of detections over false alarms.
    pub area: f64,
    /// Detections at one false alarm in a hundred.
    pub detections: f64,
    /// The same in theory, where there is a closed form.
    pub detections_in_theory: Option<f64>,
    /// How often the `K` highest scores are exactly the sequences in use.
    pub exact_set: f64,
}

/// The updates of single clients, despread.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct DespreadingAttack {
    /// Every client of the round that was looked at.
    pub clients: Vec<DespreadClient>,
    /// Share of clients whose whole payload the base station holds as one vector, because it found their sequence.
    pub linked_in_round: f64,
    /// Share of clients whose two halves of a payload would be put together again by their strength alone, were the sequences
    /// dealt anew half-way.
    pub linked_by_strength: f64,
    /// Share of clients that are put together again from one round to the next by what their updates look like.
    pub linked_across_rounds: f64,
    /// Share of clients that are called by name by someone who knows everybody's data.
    pub named: f64,
    /// What a guess would reach in the last three.
    pub by_chance: f64,
    /// Rounds that the shares are over.
    pub rounds: u32,
}

/// What despreading shows of one client.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Serialize)]
pub struct DespreadClient {
    /// The client.
    pub client: u32,
    /// `|h_k|`.
    pub amplitude: f64,
    /// Between the update that was sent and the one that was recovered.
    pub correlation: f64,
    /// `‖x̂ − x‖/‖x‖`.
    pub relative_error: f64,
}

/// Digits from updates.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct ReconstructionAttack {
    /// Pixels of a row.
    pub width: usize,
    /// Pixels of a column.
    pub height: usize,
    /// What the clients hold, from 0 (black) to 255 (white).
    pub originals: Vec<Vec<u8>>,
    /// What was made of it.
    pub rows: Vec<ReconstructionRow>,
    /// The settings, in words.
    pub settings: Vec<(String, String)>,
}

/// One way to look, at one SNR.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct ReconstructionRow {
    /// `despread update` or `decoded sum`.
    pub source: String,
    /// The signal-to-noise ratio; `None` where there is no channel.
    pub snr_db: Option<f64>,
    /// One for each original.
    pub images: Vec<Vec<u8>>,
    /// Between each original and what was made of it.
    pub correlations: Vec<f64>,
}

impl ReconstructionRow {
    /// The mean over all images.
    pub fn mean_correlation(&self) -> f64 {
        self.correlations.iter().sum::<f64>() / self.correlations.len().max(1) as f64
    }
}

/// One distinguishing game.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct MembershipGame {
    /// `client` or `item`: what is replaced.
    pub level: String,
    /// `worst-case` or `natural`.
    pub canary: String,
    /// The rounds that the adversary looked at.
    pub rounds: u32,
    /// Whose eyes.
    pub view: String,
    /// The paper's `ε` at this level and for these rounds.
    pub published: Option<f64>,
    /// What holds.
    pub rigorous: Option<f64>,
    /// Whether that is a bound that was proved, and not an estimate or a number with a caveat.
    pub is_guarantee: bool,
    /// No true `ε` is smaller, with `confidence`.
    pub lower_bound: f64,
    /// The probability with which this and all other games hold.
    pub confidence: f64,
    /// What follows.
    pub verdict: Verdicts,
    /// How often the adversary is right at its best threshold, with worlds equally likely.
    pub accuracy: f64,
    /// How the number was measured.
    pub measured: Measured,
}

/// One client hands its group key to the base station.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct CollusionAttack {
    /// What holds for the decoded sum without the key, for a client that is known to take part.
    pub rigorous_without: Option<f64>,
    /// What holds once the key is known: nothing is unused any more.
    pub rigorous_with: Option<f64>,
    /// Measured on the decoded sum without the key,
    pub lower_bound_without: f64,
    /// and with it.
    pub lower_bound_with: f64,
    /// The probability with which both hold.
    pub confidence: f64,
    /// Standard deviation of the decoded sum's noise, median over rounds, without the key,
    pub noise_std_without: f64,
    /// and with it.
    pub noise_std_with: f64,
    /// Share of clients whose despread update carries its owner's name.
    pub named: f64,
}

/// An assumption of the any-channel view, and what is measured where it does not hold.
///
/// All of them are attacked in one small federation: 20 clients, 40 sequences, the clipped projector with `c = 1`, `C = 1`, one
/// round.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct AssumptionAttack {
    /// What is assumed.
    pub assumption: String,
    /// What happens instead.
    pub attack: String,
    /// `δ` of all numbers.
    pub delta: f64,
    /// `ε` under the assumption.
    pub stated: Option<f64>,
    /// The setting or rule that allows for the attack; `None` if there is none.
    pub margin: Option<String>,
    /// `ε` with it; `None` also if no finite `ε` holds then.
    pub with_margin: Option<f64>,
    /// No true `ε` is smaller than this where the attack takes place, with the stated confidence.
    pub lower_bound: f64,
    /// The probability with which this and the other attacks' bounds hold.
    pub confidence: f64,
    /// What follows for the number under the assumption,
    pub stated_is: Option<AuditVerdict>,
    /// and for the one that allows for the attack.
    pub with_margin_is: Option<AuditVerdict>,
    /// How the number was measured.
    pub measured: Measured,
}

impl AuditReport {
    /// The same without curves and pictures.
    pub fn brief(&self) -> Self {
        let mut brief = self.clone();
        if let Some(sequences) = &mut brief.attacks.sequences {
            sequences.panels.clear();
        }
        if let Some(reconstruction) = &mut brief.attacks.reconstruction {
            reconstruction.originals.clear();
            reconstruction.rows.iter_mut().for_each(|row| row.images.clear());
        }
        brief
    }
}
