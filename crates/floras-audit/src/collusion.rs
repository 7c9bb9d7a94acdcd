//! A colluding client: one member of the group reveals its key to the base station.
//!
//! One key orders all sequences, so the base station then knows which `K` are in use, and by whom. It omits the unused ones
//! from its projector,
//!
//! ```text
//! v = Σ_{used} w(ĥ_k) a_k     instead of     v = Σ_{k≤N} w(ĥ_k) a_k
//! ```
//!
//! which removes the noise of the `γ` unused sequences: the decoded sum is that of a federation with `N = K`. Every despread
//! update is attributed to its client.

use floras_core::View;
use floras_core::random::Domain;
use floras_phy::assignment::{AssignmentError, Beacon, Epoch, GroupId, GroupKey, GroupMember, permutation};
use floras_phy::{Round, Uplink};
use floras_privacy::Views;
use floras_sim::inquiry::ExperimentAccount;
use floras_sim::number::share;
use floras_sim::{Experiment, ExperimentError, SimError};
use serde::{Deserialize, Serialize};

use super::presentation::{Cell, Part, Section};
use super::views::known_to_take_part;
use super::{Bench, WorstCaseGame};

/// Numbers of the tables of scores.
const WITHOUT_KEY: u8 = 210;
const WITH_KEY: u8 = 211;
/// Number of rounds for the median of the noise.
const ROUNDS: u32 = 2001;
/// Number of bounds that hold jointly.
const BOUNDS: f64 = 2.0;

/// One client reveals its group key to the base station.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct CollusionAttack {
    /// `ε` of the decoded sum without the key, for a client that is known to take part.
    pub rigorous_without: Option<f64>,
    /// `ε` of the decoded sum with the key: no sequence counts as unused.
    pub rigorous_with: Option<f64>,
    /// Lower bound measured on the decoded sum without the key.
    pub lower_bound_without: f64,
    /// Lower bound measured on the decoded sum with the key.
    pub lower_bound_with: f64,
    /// Joint confidence of both bounds.
    pub confidence: f64,
    /// Noise of the decoded sum without the key: standard deviation, median over rounds.
    pub noise_std_without: f64,
    /// Noise of the decoded sum with the key: standard deviation, median over rounds.
    pub noise_std_with: f64,
    /// Share of clients whose despread update is attributed to them.
    pub named: f64,
}

impl CollusionAttack {
    pub(crate) fn section(&self) -> Section<'_> {
        let explanation = "Every client knows the key that assigns the sequences. With this key, the base station knows which sequences are \
                           unused and which client uses each of the others. It omits the unused ones, and their noise.";
        let finding = format!(
            "Both measured numbers hold with a confidence of {}. With the key, {} of the despread updates are attributed \
             to their clients.",
            share(self.confidence),
            share(self.named)
        );
        let claimed = |epsilon| Cell::claim(epsilon, None, "none");
        let measured = |epsilon| Cell::AtLeast(epsilon, "");
        let noise = |std| Cell::Number(std, 3);
        let row = |what: &str, without, with| vec![Cell::text(what), without, with];
        let rows = vec![
            row("rigorous ε of the decoded sum", claimed(self.rigorous_without), claimed(self.rigorous_with)),
            row("measured ε", measured(self.lower_bound_without), measured(self.lower_bound_with)),
            row(
                "noise of the decoded sum (standard deviation, median)",
                noise(self.noise_std_without),
                noise(self.noise_std_with),
            ),
        ];
        Section {
            title: "One client reveals its key",
            parts: vec![
                Part::Explanation(explanation.to_owned()),
                Part::Table { heading: vec!["what", "without the key", "with the key"], rows },
                Part::Finding(finding),
            ],
        }
    }
}

/// The effect of the key; `None` for schemes without sequences, and with masks, which do not depend on the key.
pub(super) fn attack(bench: &Bench<'_>) -> Result<Option<CollusionAttack>, SimError> {
    let floras = bench.settings.uplink.scheme.floras().filter(|_| bench.settings.masks.is_none());
    let Some(floras) = floras else { return Ok(None) };
    let used = bench.settings.clients.per_round as usize;
    let radio = &bench.settings.uplink.radio;
    let has_noise = radio.snr()?.despread_noise_std(radio.length) > 0.0;
    if floras.sequences == used || !has_noise || !floras.is_orthonormal(radio.length)? {
        return Ok(None);
    }
    let mut known = floras.clone();
    known.sequences = used;
    let with_key = bench.settings.at_power(Box::new(known.over_radio(radio, bench.settings.seed)?))?;
    let mut settings = bench.settings.clone();
    settings.uplink.scheme = known.into();
    let uplink = bench.federation.uplink();
    let games = bench.games(0.25);
    bench.begin_games("a colluding client", 2 * games);
    // A base station selects the clients, so it knows the participants.
    let game = WorstCaseGame { probability: 1.0, ..bench.game.clone() };
    let lower_bound = |uplink: &dyn Uplink, table: u8| -> Result<f64, SimError> {
        let scores = game.decoded_with(uplink, games, table, &bench.tick())?;
        let error = (1.0 - bench.effort.confidence()) / BOUNDS;
        Ok(scores.decoder.lower_bound(bench.settings.privacy.delta, error).epsilon)
    };
    let everyone = bench.game.probability >= 1.0;
    let known =
        |views: Views| views.get(View::Actual).and_then(|statement| known_to_take_part(statement, everyone));
    let without_key = bench.federation.views(bench.game.rounds)?;
    Ok(Some(CollusionAttack {
        rigorous_without: known(without_key),
        rigorous_with: known(ExperimentAccount::new(&Experiment::new(settings)?)?.views(bench.game.rounds)?),
        lower_bound_without: lower_bound(uplink, WITHOUT_KEY)?,
        lower_bound_with: lower_bound(with_key.as_ref(), WITH_KEY)?,
        confidence: bench.effort.confidence(),
        noise_std_without: median_noise(bench, uplink)?,
        noise_std_with: median_noise(bench, with_key.as_ref())?,
        named: named(bench, floras.sequences as u32)?,
    }))
}

fn median_noise(bench: &Bench<'_>, uplink: &dyn Uplink) -> Result<f64, SimError> {
    let rounds = if bench.game.is_traced { bench.game.rounds.min(ROUNDS) } else { ROUNDS };
    let clients: Vec<u32> = (0..bench.settings.clients.per_round).collect();
    let mut noise = Vec::new();
    for number in 0..rounds {
        let round = Round::new(bench.settings.seed, Domain::Collusion.trial(0), number + 1, &clients)?
            .with_parameters(bench.game.parameters);
        noise.push(uplink.realise(&round)?.noise_std());
    }
    noise.sort_by(f64::total_cmp);
    Ok(noise[noise.len() / 2])
}

/// The share of clients whose sequence the colluding client's key reveals. All members hold the same key; here it is not
/// secret.
fn named(bench: &Bench<'_>, sequences: u32) -> Result<f64, SimError> {
    let refused =
        |error: AssignmentError| SimError::from(ExperimentError::refused("uplink.sequences", error));
    let (group, epoch, slot) = (GroupId([0; 16]), Epoch(1), 1);
    let per_round = bench.settings.clients.per_round;
    let beacon = Beacon { group, epoch, slot, sequences, per_round };
    let dealt = || GroupKey::from_secret_bytes(group, epoch, &[7; 32]);
    let assigned = permutation(&dealt(), slot, sequences).map_err(refused)?;
    let mut named = 0;
    for (index, &sequence) in (1..=per_round).zip(assigned.iter()) {
        let own = GroupMember::new(dealt()).sequence_for(&beacon, index).map_err(refused)?;
        named += u32::from(own == sequence as usize);
    }
    Ok(f64::from(named) / f64::from(per_round))
}
