//! The account of a federation: every view, for any number of rounds.
//!
//! ```
//! use floras_privacy::{Account, Level, Neighbours, Receiver, Scaling, Setting, View};
//!
//! let setting = Setting {
//!     clip: 1.0,
//!     sequences: 25,
//!     per_round: 20,
//!     clients: 20,
//!     delta: 1e-5,
//!     level: Level::Client,
//!     neighbours: Neighbours::ReplaceOne,
//!     scaling: Scaling::Fixed,
//!     receiver: Receiver::Paper,
//!     channel: None,
//! };
//! let account = Account::of(&setting)?;
//! let views = account.views(1)?;
//! let epsilon = |view: View| views.get(view).and_then(|statement| statement.epsilon);
//! assert!((epsilon(View::Published).unwrap_or(0.0) - 1.9858).abs() < 1e-4);
//! assert!((epsilon(View::Idealised).unwrap_or(0.0) - 4.1026).abs() < 1e-4);
//! # Ok::<(), floras_privacy::PrivacyError>(())
//! ```

use std::collections::BTreeMap;

use crate::actual::Coefficients;
use crate::any_channel::{AnyChannel, idealised, simple_bound};
use crate::compose::{Bounds, Composition};
use crate::error::{PrivacyError, require, require_delta, require_epsilon, require_positive, require_rounds};
use crate::law::Law;
use crate::published::{self, Participation, PublishedRound, Weight, batch_ratio};
use crate::rdp::{Conversion, RenyiRound};
use crate::receiver::{Receiver, clipped_mean};
use crate::sampling::{Curve, Sampling};
use crate::tabulated::Tabulated;
use crate::view::{Statement, View, Views};

/// Beyond this `ε` the any-channel curve, which is joined from a table, may fall short; a strong client, whose curve is exact,
/// is one of its channels.
pub(crate) const FAR_OUT: f64 = 1e5;

/// The largest `K`, `M` and `N`.
const MOST: u64 = 1_000_000_000;

/// What has to stay hidden.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Level {
    /// All data of a client.
    #[default]
    Client,
    /// One sample of a client. All clients hold the same number.
    Item {
        /// `b`, samples in a mini-batch.
        batch: u64,
        /// `D`, samples of a client.
        samples: u64,
        /// How much of them a round touches.
        local: Local,
    },
}

/// What a client does in a round.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Local {
    /// One step on one mini-batch.
    #[default]
    OneStep,
    /// Whole epochs, which touch every sample.
    Epochs,
}

/// Which populations are neighbours.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Neighbours {
    /// One client (or item) has other data.
    #[default]
    ReplaceOne,
    /// One client (or item) more, or one less.
    AddOrRemove,
}

/// How updates are brought to norm `C`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Scaling {
    /// Each on its own, by a norm that is fixed beforehand.
    #[default]
    Fixed,
    /// All together, by the longest of them, with their means and the scale sent in the clear.
    PaperNormalisation,
}

/// Why there is no guarantee under the paper's normalisation.
pub const NORMALISED: &str = "the paper's normalisation sends the updates' means and their common scale in the clear, and both \
     depend on the data; one client rescales all, so that the sensitivity counted here is (K+1)·C. Fixed clipping has no \
     such gap";

/// A federation, as far as its privacy is concerned.
#[derive(Clone, Debug, PartialEq)]
pub struct Setting {
    /// `C`, the norm that every update is clipped to.
    pub clip: f64,
    /// `N`, sequences.
    pub sequences: u64,
    /// `K`, clients in a round.
    pub per_round: u64,
    /// `M`, clients in all.
    pub clients: u64,
    /// `δ`.
    pub delta: f64,
    /// Clients or items.
    pub level: Level,
    /// What neighbours are.
    pub neighbours: Neighbours,
    /// How updates are brought to norm `C`.
    pub scaling: Scaling,
    /// The base station's weights.
    pub receiver: Receiver,
    /// The law of the channels, without which there is no actual and no raw-signal view.
    pub channel: Option<Coefficients>,
}

impl Setting {
    /// `Ok` if all numbers are in range and fit together.
    pub fn check(&self) -> Result<(), PrivacyError> {
        require_positive("the clip norm", self.clip)?;
        require_delta(self.delta)?;
        require_count("the number of clients", self.clients)?;
        require_count("the number of clients a round", self.per_round)?;
        require_count("the number of sequences", self.sequences)?;
        fits("the number of clients a round", self.per_round <= self.clients, self.per_round, || {
            format!("at most {}, the number of clients", self.clients)
        })?;
        fits("the number of sequences", self.sequences >= self.per_round, self.sequences, || {
            format!("at least {}, the number of clients a round", self.per_round)
        })?;
        if let Level::Item { batch, samples, .. } = self.level {
            require_count("the mini-batch size", batch)?;
            require_count("the number of samples of a client", samples)?;
            fits("the mini-batch size", batch <= samples, batch, || {
                format!("at most {samples}, the number of samples of a client")
            })?;
        }
        self.receiver.check()
    }

    /// `γ = N − K`.
    pub fn gamma(&self) -> u64 {
        self.sequences.saturating_sub(self.per_round)
    }

    /// `Δ = 2C`: replaced, a clipped update moves the sum by no more. Added or removed too, because `K` is fixed and someone
    /// else takes the place. Under the paper's normalisation one client rescales all others: `(K + 1)·C`.
    pub fn sensitivity(&self) -> f64 {
        match self.scaling {
            Scaling::Fixed => 2.0 * self.clip,
            Scaling::PaperNormalisation => (self.per_round as f64 + 1.0) * self.clip,
        }
    }

    /// The standard deviation around which the noise in every parameter of the sum concentrates, for weights that are bounded:
    /// of the unused sequences, and of the used ones if the channel is known.
    pub fn noise_std(&self) -> Option<f64> {
        let Receiver::Clipped(c) = self.receiver else { return None };
        let used = self.channel.as_ref().map_or(0.0, |channel| channel.mean_square_weight(self.receiver));
        Some((self.gamma() as f64 * clipped_mean(c) + self.per_round as f64 * used).sqrt())
    }

    /// The chance that a client's, or an item's, data enter a round.
    pub fn sampling(&self) -> Sampling {
        let one_more = f64::from(u8::from(self.neighbours == Neighbours::AddOrRemove));
        let chance = match self.level {
            Level::Client => self.per_round as f64 / (self.clients as f64 + one_more),
            Level::Item { batch, samples, local } => {
                let of_client = self.per_round as f64 / self.clients as f64;
                match local {
                    Local::OneStep => of_client * batch as f64 / (samples as f64 + one_more),
                    Local::Epochs => of_client,
                }
            }
        };
        match self.neighbours {
            Neighbours::ReplaceOne if chance >= 1.0 => Sampling::Everyone,
            Neighbours::ReplaceOne => Sampling::ReplaceOne(chance),
            Neighbours::AddOrRemove => Sampling::AddOrRemove(chance),
        }
    }

    /// The curve of one round in a rigorous view, or why there is none.
    pub fn source(&self, view: View) -> Result<Source, PrivacyError> {
        let (unused, sensitivity) = (self.gamma(), self.sensitivity());
        let of_channel = |law: &dyn Fn(&Coefficients) -> Result<Law, PrivacyError>| {
            self.channel
                .as_ref()
                .map_or(Ok(Source::Absent), |channel| Source::or_reason(law(channel).map(tabulated)))
        };
        match view {
            View::Published => Ok(Source::Absent),
            View::Idealised => {
                Source::or_reason(idealised(self.receiver, unused, sensitivity).map(tabulated))
            }
            View::AnyChannel => {
                let curve = AnyChannel::new(self.receiver, unused, sensitivity);
                Source::or_reason(curve.map(|curve| Box::new(curve) as Box<dyn Curve>))
            }
            View::Actual => {
                of_channel(&|channel| channel.actual(self.receiver, self.per_round, unused, sensitivity))
            }
            View::RawSignal => of_channel(&|channel| channel.raw_signal(sensitivity)),
        }
    }

    /// One round as published, for either meaning of `p`.
    pub fn published(&self, participation: Participation) -> Result<PublishedRound, PrivacyError> {
        let p = participation.rate(self.per_round, self.clients)?;
        let weight = match self.level {
            Level::Client => Weight::client(p)?,
            Level::Item { batch, samples, .. } => Weight::item(batch_ratio(batch, samples)?, p)?,
        };
        PublishedRound::new(weight, self.clip, self.gamma() as f64)
    }
}

/// The same curve, quicker to ask often.
fn tabulated(law: Law) -> Box<dyn Curve> {
    Box::new(Tabulated::new(law))
}

fn require_count(name: &'static str, value: u64) -> Result<(), PrivacyError> {
    require((1..=MOST).contains(&value), name, "between 1 and 1e9", value as f64)
}

fn fits(
    name: &'static str,
    holds: bool,
    value: u64,
    allowed: impl Fn() -> String,
) -> Result<(), PrivacyError> {
    if holds { Ok(()) } else { Err(PrivacyError::Inconsistent { name, allowed: allowed(), value }) }
}

/// Where a view's numbers come from.
pub enum Source {
    /// There is nothing to look at.
    Absent,
    /// There is no guarantee, for this reason.
    Nothing(String),
    /// A curve of one round.
    Curve {
        /// The curve.
        curve: Box<dyn Curve>,
        /// Why what comes of it is no guarantee, if it is none.
        caveat: Option<String>,
    },
}

impl Source {
    /// A curve that holds.
    pub fn of(curve: impl Curve + 'static) -> Self {
        Self::Curve { curve: Box::new(curve), caveat: None }
    }

    /// A curve, or the reason why there is none, if the reason is not in the input.
    fn or_reason(curve: Result<Box<dyn Curve>, PrivacyError>) -> Result<Self, PrivacyError> {
        match curve {
            Ok(curve) => Ok(Self::Curve { curve, caveat: None }),
            Err(error) if error.is_no_guarantee() => Ok(Self::Nothing(error.to_string())),
            Err(error) => Err(error),
        }
    }

    /// The same with a caveat: whatever comes of it is no guarantee.
    pub fn with_caveat(self, words: &str) -> Self {
        match self {
            Self::Curve { curve, caveat: None } => Self::Curve { curve, caveat: Some(words.to_owned()) },
            other => other,
        }
    }
}

/// The curves of all views.
pub struct Account {
    delta: f64,
    sampling: Sampling,
    published: Option<Result<(PublishedRound, PublishedRound), PrivacyError>>,
    /// The RDP form, for the paper's receiver without sampling.
    renyi: Option<RenyiRound>,
    /// The simple bound for every channel, for the clipped projector.
    simple: Option<Law>,
    sources: BTreeMap<View, Source>,
}

impl Account {
    /// The account of a FLORAS federation.
    pub fn of(setting: &Setting) -> Result<Self, PrivacyError> {
        setting.check()?;
        let mut account = Self::new(setting.sampling(), setting.delta)?;
        if setting.receiver == Receiver::Paper && setting.gamma() > 0 && setting.scaling == Scaling::Fixed {
            account.renyi = Some(RenyiRound::new(setting.clip, setting.gamma() as f64)?);
        }
        if let Receiver::Clipped(c) = setting.receiver
            && setting.gamma() > 0
        {
            account.simple = Some(simple_bound(c, setting.gamma(), setting.sensitivity())?);
        }
        for view in View::ALL {
            account.look_at(setting, view)?;
        }
        Ok(account)
    }

    /// Adds one view of a setting.
    pub(crate) fn look_at(&mut self, setting: &Setting, view: View) -> Result<(), PrivacyError> {
        if view == View::Published {
            let [per_clients, plus_one] =
                [Participation::PerClients, Participation::PerClientsPlusOne].map(|p| setting.published(p));
            self.published = Some(per_clients.and_then(|round| Ok((round, plus_one?))));
            return Ok(());
        }
        let source = setting.source(view)?;
        self.set(
            view,
            if setting.scaling == Scaling::Fixed { source } else { source.with_caveat(NORMALISED) },
        );
        Ok(())
    }

    /// An account without views yet.
    pub fn new(sampling: Sampling, delta: f64) -> Result<Self, PrivacyError> {
        sampling.check()?;
        require_delta(delta)?;
        let sources = BTreeMap::new();
        Ok(Self { delta, sampling, published: None, renyi: None, simple: None, sources })
    }

    /// Sets the source of a view.
    pub fn set(&mut self, view: View, source: Source) {
        self.sources.insert(view, source);
    }

    /// Puts a caveat on every rigorous view.
    pub fn add_caveat(&mut self, words: &str) {
        let sources = std::mem::take(&mut self.sources);
        self.sources = sources.into_iter().map(|(view, source)| (view, source.with_caveat(words))).collect();
    }

    /// `δ`.
    pub fn delta(&self) -> f64 {
        self.delta
    }

    /// The same with another chance of taking part, such as [`Sampling::Everyone`] against someone who knows who took part. The
    /// published numbers keep the setting's.
    pub fn with_sampling(self, sampling: Sampling) -> Result<Self, PrivacyError> {
        sampling.check()?;
        Ok(Self { sampling, ..self })
    }

    /// Who takes part.
    pub fn sampling(&self) -> Sampling {
        self.sampling
    }

    /// Where a view's numbers come from, if it was set.
    pub(crate) fn source(&self, view: View) -> Option<&Source> {
        self.sources.get(&view)
    }

    /// One round as published, with the theorems' `p`, if it was looked at.
    pub(crate) fn published_round(&self) -> Option<Result<PublishedRound, PrivacyError>> {
        self.published.as_ref().map(|published| published.clone().map(|(per_clients, _)| per_clients))
    }

    /// The statements of all views after some rounds.
    pub fn views(&self, rounds: u64) -> Result<Views, PrivacyError> {
        Ok(Views {
            published: self.statement(View::Published, rounds)?,
            idealised: self.statement(View::Idealised, rounds)?,
            actual: self.statement(View::Actual, rounds)?,
            any_channel: self.statement(View::AnyChannel, rounds)?,
            raw_signal: self.statement(View::RawSignal, rounds)?,
        })
    }

    /// The statement of a view after some rounds; `None` if the view has nothing to look at.
    pub fn statement(&self, view: View, rounds: u64) -> Result<Option<Statement>, PrivacyError> {
        require_rounds(rounds)?;
        if view == View::Published {
            return self.published_statement(rounds);
        }
        let (epsilon, caveat) = match self.sources.get(&view) {
            None | Some(Source::Absent) => return Ok(None),
            Some(Source::Nothing(reason)) => (Err(reason.clone()), None),
            Some(Source::Curve { curve, caveat }) => {
                (self.composed(curve.as_ref(), self.sampling, rounds)?, caveat.clone())
            }
        };
        let epsilon = match epsilon {
            Ok(bounds) if view == View::AnyChannel && bounds.upper > FAR_OUT => {
                let strong_client = self.epsilon(View::Idealised, rounds)?;
                Ok(Bounds { upper: bounds.upper.max(strong_client.unwrap_or(0.0)), ..bounds })
            }
            other => other,
        };
        let mut statement = Statement {
            epsilon: epsilon.as_ref().ok().map(|bounds| bounds.upper),
            epsilon_lower: epsilon.as_ref().ok().map(|bounds| bounds.lower),
            guarantee: epsilon.is_ok() && caveat.is_none(),
            adversary: view.adversary().to_owned(),
            reason: epsilon.err().or(caveat),
            details: BTreeMap::new(),
        };
        self.add_details(view, rounds, &mut statement.details)?;
        Ok(Some(statement))
    }

    /// The `ε` of a view after some rounds; `None` if there is none.
    pub fn epsilon(&self, view: View, rounds: u64) -> Result<Option<f64>, PrivacyError> {
        match (view, self.sources.get(&view)) {
            (View::Published, _) => {
                Ok(self.published_statement(rounds)?.and_then(|statement| statement.epsilon))
            }
            (_, Some(Source::Curve { curve, .. })) => {
                match Composition::new(curve.as_ref(), self.sampling, rounds)?.epsilon_upper(self.delta) {
                    Ok(epsilon) => Ok(Some(epsilon)),
                    Err(error) if error.is_no_guarantee() => Ok(None),
                    Err(error) => Err(error),
                }
            }
            _ => Ok(None),
        }
    }

    /// An upper bound on the `δ` of a view for any `ε`, after some rounds; `None` if the view has no curve, as the published one.
    /// If the view has a caveat, it is about this number too.
    pub fn delta_at(&self, view: View, rounds: u64, epsilon: f64) -> Result<Option<f64>, PrivacyError> {
        require_rounds(rounds)?;
        require_epsilon(epsilon)?;
        let Some(Source::Curve { curve, .. }) = self.sources.get(&view) else { return Ok(None) };
        let delta = match Composition::new(curve.as_ref(), self.sampling, rounds)?.delta_upper(epsilon) {
            // No δ is larger.
            Err(error) if error.is_no_guarantee() => 1.0,
            other => other?,
        };
        let strong_client = if view == View::AnyChannel && epsilon > FAR_OUT {
            self.delta_at(View::Idealised, rounds, epsilon)?
        } else {
            None
        };
        Ok(Some(delta.max(strong_client.unwrap_or(0.0))))
    }

    /// The most rounds, up to `most`, that a view's `ε` allows; 0 if not even one.
    pub fn most_rounds(&self, view: View, epsilon: f64, most: u64) -> Result<u64, PrivacyError> {
        let holds = |rounds: u64| -> Result<bool, PrivacyError> {
            Ok(self.epsilon(view, rounds)?.is_some_and(|spent| spent <= epsilon))
        };
        if most == 0 || !holds(1)? {
            return Ok(0);
        }
        if holds(most)? {
            return Ok(most);
        }
        let (mut lower, mut upper) = (1, most);
        // Upwards in steps that double, because few rounds are cheaper to compose than many.
        while lower * 2 < upper && holds(lower * 2)? {
            lower *= 2;
        }
        upper = upper.min(lower * 2);
        while upper - lower > 1 {
            let middle = lower + (upper - lower) / 2;
            if holds(middle)? { lower = middle } else { upper = middle }
        }
        Ok(lower)
    }

    /// The composed `ε`, or in words why there is none.
    fn composed(
        &self,
        curve: &dyn Curve,
        sampling: Sampling,
        rounds: u64,
    ) -> Result<Result<Bounds, String>, PrivacyError> {
        match Composition::new(curve, sampling, rounds)?.epsilon(self.delta) {
            Ok(bounds) => Ok(Ok(bounds)),
            Err(error) if error.is_no_guarantee() => Ok(Err(error.to_string())),
            Err(error) => Err(error),
        }
    }

    fn published_statement(&self, rounds: u64) -> Result<Option<Statement>, PrivacyError> {
        let Some(published) = &self.published else { return Ok(None) };
        let mut statement = Statement {
            epsilon: None,
            epsilon_lower: None,
            guarantee: false,
            adversary: View::Published.adversary().to_owned(),
            reason: Some(published::WHY_NOT_A_GUARANTEE.to_owned()),
            details: BTreeMap::new(),
        };
        match published {
            Err(error) if error.is_no_guarantee() => statement.reason = Some(error.to_string()),
            Err(error) => return Err(error.clone()),
            Ok((round, plus_one)) => {
                use published::Composition::{Advanced, Optimal, Renyi, Sequential};
                let epsilon = |round: &PublishedRound, composition| {
                    Ok::<f64, PrivacyError>(round.epsilon(composition, rounds, self.delta)?.as_printed())
                };
                statement.epsilon = Some(epsilon(round, Renyi)?);
                let details = [
                    ("p_of_appendix", epsilon(plus_one, Renyi)?),
                    ("sequential", epsilon(round, Sequential)?),
                    ("advanced", epsilon(round, Advanced)?),
                    ("optimal_pure", epsilon(round, Optimal)?),
                    ("order", round.best_order(rounds, self.delta)?),
                ];
                statement.details = details.map(|(name, value)| (name.to_owned(), value)).into();
            }
        }
        Ok(Some(statement))
    }

    fn add_details(
        &self,
        view: View,
        rounds: u64,
        details: &mut BTreeMap<String, f64>,
    ) -> Result<(), PrivacyError> {
        let mut add = |name: &str, value: f64| details.insert(name.to_owned(), value);
        if let Some(Source::Curve { curve, .. }) = self.sources.get(&view)
            && self.sampling != Sampling::Everyone
            && let Ok(bounds) = self.composed(curve.as_ref(), Sampling::Everyone, rounds)?
        {
            add("in_every_round", bounds.upper);
        }
        if view == View::AnyChannel
            && let Some(simple) = &self.simple
            && let Ok(bounds) = self.composed(simple, self.sampling, rounds)?
        {
            add("simple_bound", bounds.upper);
        }
        if view == View::Idealised
            && let Some(renyi) = self.renyi
            && self.sampling == Sampling::Everyone
        {
            add("renyi", renyi.epsilon(rounds, self.delta, Conversion::Improved)?.epsilon);
        }
        Ok(())
    }
}
