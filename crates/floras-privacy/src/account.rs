//! The account of a federation: every view, for any number of rounds.
//!
//! ```
//! use floras_privacy::{Account, PrivacyUnit, Neighbours, Receiver, Clipping, Setting, View};
//!
//! let setting = Setting {
//!     clip: 1.0,
//!     sequences: 25,
//!     per_round: 20,
//!     clients: 20,
//!     delta: 1e-5,
//!     unit: PrivacyUnit::Client,
//!     neighbours: Neighbours::ReplaceOne,
//!     clipping: Clipping::Each,
//!     receiver: Receiver::Paper,
//!     channel: None,
//!     ..Setting::default()
//! };
//! let account = Account::of(&setting)?;
//! let views = account.views(1)?;
//! let epsilon = |view: View| views.get(view).and_then(|statement| statement.epsilon);
//! assert!((epsilon(View::Published).unwrap_or(0.0) - 1.9858).abs() < 1e-4);
//! assert!((epsilon(View::Idealised).unwrap_or(0.0) - 4.1026).abs() < 1e-4);
//! # Ok::<(), floras_privacy::PrivacyError>(())
//! ```

use std::collections::BTreeMap;
use std::sync::Arc;

use floras_core::{Clipping, View};

use crate::engine::distribution::MuDistribution;
use crate::engine::sampling::{Curve, Sampling};
use crate::error::{PrivacyError, require_delta};
use crate::mixed::Mixed;
use crate::numerics::solve::largest_integer;
use crate::published::theorems::PublishedBound;
use crate::setting::{NORMALISED, Setting};
use crate::views::masks::MaskBound;
use crate::views::statement::{Statement, Views, for_each_view};
use crate::views::{self, DetailSource};

/// The source of a view's numbers.
#[derive(Clone)]
pub enum Source {
    /// The account has no such view.
    Absent,
    /// No guarantee exists; the text is the reason.
    Nothing(String),
    /// A curve of one round.
    Curve {
        /// The privacy curve `δ₁(ε)` of one round, or of each of its parts.
        curve: Arc<dyn Curve>,
        /// Number of independent parts of a round that have this curve, at least 1.
        parts: u64,
        /// The reason why numbers from this curve are not a guarantee; `None` if they are one.
        caveat: Option<String>,
        /// The assumptions of the bound.
        assumptions: Vec<String>,
    },
}

impl Source {
    /// A curve whose bounds are a guarantee.
    pub fn of(curve: impl Curve + 'static) -> Self {
        Self::Curve { curve: Arc::new(curve), parts: 1, caveat: None, assumptions: Vec::new() }
    }

    /// The same curve for each of several independent parts of a round, such as coordinates; times the rounds at most 1e12. The parts
    /// compose. A client enters all of them or none, so that sampling does not amplify: the number is that of a client that takes
    /// part in every round.
    pub fn in_parts(mut self, count: u64) -> Self {
        if let Self::Curve { parts, .. } = &mut self {
            *parts = count;
        }
        self
    }

    /// The same upper bound, for a mechanism that may leak less than its curve: no lower bound is stated.
    pub fn without_lower(mut self) -> Self {
        if let Self::Curve { curve, .. } = &mut self {
            *curve = Arc::new(UpperOnly(Arc::clone(curve)));
        }
        self
    }

    /// A curve, or the reason why no guarantee exists. Invalid input is an error.
    pub(crate) fn or_reason(curve: Result<Box<dyn Curve>, PrivacyError>) -> Result<Self, PrivacyError> {
        match curve {
            Ok(curve) => {
                Ok(Self::Curve { curve: curve.into(), parts: 1, caveat: None, assumptions: Vec::new() })
            }
            Err(error) if error.is_no_guarantee() => Ok(Self::Nothing(error.to_string())),
            Err(error) => Err(error),
        }
    }

    /// Marks the curve as no guarantee, with the reason. An earlier reason is kept.
    pub fn with_caveat(mut self, words: &str) -> Self {
        if let Self::Curve { caveat: caveat @ None, .. } = &mut self {
            *caveat = Some(words.to_owned());
        }
        self
    }

    /// Adds the assumptions of the bound.
    pub fn assuming(mut self, words: impl IntoIterator<Item = impl Into<String>>) -> Self {
        if let Self::Curve { assumptions, .. } = &mut self {
            assumptions.extend(words.into_iter().map(Into::into));
        }
        self
    }
}

/// A curve whose lower bound does not hold for the mechanism.
struct UpperOnly(Arc<dyn Curve>);

impl Curve for UpperOnly {
    fn upper(&self, epsilon: f64) -> f64 {
        self.0.upper(epsilon)
    }

    fn lower(&self, _: f64) -> f64 {
        0.0
    }

    fn has_lower(&self) -> bool {
        false
    }

    fn infinite(&self) -> f64 {
        self.0.infinite()
    }

    fn composed(&self, rounds: u64) -> Option<MuDistribution> {
        self.0.composed(rounds)
    }

    fn simpler(&self) -> Option<&MuDistribution> {
        self.0.simpler()
    }

    fn tolerance(&self) -> f64 {
        self.0.tolerance()
    }

    fn for_composition(&self, least: f64) -> Option<&dyn Curve> {
        self.0.for_composition(least)
    }
}

/// The privacy account of a federation: sampling, `δ`, and the curve of each view.
pub struct Account {
    delta: f64,
    sampling: Sampling,
    sources: BTreeMap<View, Source>,
    /// Sources of additional numbers per view, for a FLORAS federation.
    pub(crate) detail_sources: BTreeMap<View, DetailSource>,
    /// The bound of masks, which holds in every rigorous view.
    masks: Option<MaskBound>,
}

impl Account {
    /// The account of a FLORAS federation.
    pub fn of(setting: &Setting) -> Result<Self, PrivacyError> {
        setting.check()?;
        let mut account = Self::new(setting.sampling(), setting.delta)?;
        for (view, seen) in View::ALL.into_iter().zip(for_each_view(|view| views::of(setting, view))) {
            account.add(setting, view, seen?);
        }
        account.masks = setting.mask_bound()?;
        Ok(account)
    }

    /// An account of one view of a FLORAS federation. The any-channel view is accompanied by the idealised one, which bounds it
    /// from below.
    pub(crate) fn of_view(setting: &Setting, view: View) -> Result<Self, PrivacyError> {
        let mut account = Self::new(setting.sampling(), setting.delta)?;
        if view == View::AnyChannel {
            account.add(setting, View::Idealised, views::of(setting, View::Idealised)?);
        }
        account.add(setting, view, views::of(setting, view)?);
        account.masks = setting.mask_bound()?;
        Ok(account)
    }

    /// Adds one view of a setting.
    fn add(&mut self, setting: &Setting, view: View, (source, details): (Source, DetailSource)) {
        let is_fixed = setting.clipping == Clipping::Each;
        self.set(view, if is_fixed { source } else { source.with_caveat(NORMALISED) });
        self.detail_sources.insert(view, details);
    }

    /// An account without views yet.
    pub fn new(sampling: Sampling, delta: f64) -> Result<Self, PrivacyError> {
        sampling.check()?;
        require_delta(delta)?;
        Ok(Self { delta, sampling, sources: BTreeMap::new(), detail_sources: BTreeMap::new(), masks: None })
    }

    /// Sets the source of a view.
    pub fn set(&mut self, view: View, source: Source) {
        self.sources.insert(view, source);
        // The additional numbers belonged to the previous source.
        self.detail_sources.remove(&view);
    }

    /// Sets the bound of masks. The smaller of this bound and a rigorous view's own bound is stated. A view without a bound of
    /// its own has this bound.
    pub fn set_masks(&mut self, bound: MaskBound) {
        self.masks = Some(bound);
    }

    /// The bound of masks, if there are any.
    pub fn masks(&self) -> Option<&MaskBound> {
        self.masks.as_ref()
    }

    /// Adds a caveat to the source of every rigorous view.
    pub fn add_caveat(&mut self, words: &str) {
        let sources = std::mem::take(&mut self.sources);
        self.sources = sources.into_iter().map(|(view, source)| (view, source.with_caveat(words))).collect();
    }

    /// Failure probability `δ` of all statements, at least 1e-30 and below 1.
    pub fn delta(&self) -> f64 {
        self.delta
    }

    /// The same account with another sampling, such as [`Sampling::Everyone`] against an adversary who knows the participants.
    /// The published numbers keep the sampling of the setting.
    pub fn with_sampling(self, sampling: Sampling) -> Result<Self, PrivacyError> {
        sampling.check()?;
        Ok(Self { sampling, ..self })
    }

    /// How clients are sampled, and the neighbouring relation.
    pub fn sampling(&self) -> Sampling {
        self.sampling
    }

    /// The source of a view; `None` if it was not set.
    pub(crate) fn source(&self, view: View) -> Option<&Source> {
        self.sources.get(&view)
    }

    fn rounds(&self, rounds: u64) -> Result<Mixed<'_>, PrivacyError> {
        Mixed::new(&[(self, rounds)])
    }

    /// The statements of all views after some rounds.
    pub fn views(&self, rounds: u64) -> Result<Views, PrivacyError> {
        self.rounds(rounds)?.views()
    }

    /// The statement of a view after some rounds; `None` if the account has no such view.
    pub fn statement(&self, view: View, rounds: u64) -> Result<Option<Statement>, PrivacyError> {
        self.rounds(rounds)?.statement(view)
    }

    /// `ε` of a view after `rounds` rounds; `None` if no finite `ε` is established.
    pub fn epsilon(&self, view: View, rounds: u64) -> Result<Option<f64>, PrivacyError> {
        self.rounds(rounds)?.epsilon(view)
    }

    /// The published `ε(α)` of one round (Theorem 1 for items, Theorem 3 for clients), with `order = α` above 1 and at most 1e6;
    /// `None` if the account has no published view.
    pub fn published_divergence(&self, order: f64) -> Result<Option<PublishedBound>, PrivacyError> {
        match self.detail_sources.get(&View::Published) {
            Some(DetailSource::Published(Ok((round, _)))) => round.divergence(order).map(Some),
            Some(DetailSource::Published(Err(error))) => Err(error.clone()),
            _ => Ok(None),
        }
    }

    /// An upper bound on the `δ` of a view for any `ε`, after some rounds; `None` if the view has no curve, such as the published
    /// view. A caveat of the view also applies to this number.
    pub fn delta_at(&self, view: View, rounds: u64, epsilon: f64) -> Result<Option<f64>, PrivacyError> {
        self.rounds(rounds)?.delta_at(view, epsilon)
    }

    /// The largest number of rounds, up to `limit`, that a view's `ε` allows; 0 if not even one.
    pub fn most_rounds(&self, view: View, epsilon: f64, limit: u64) -> Result<u64, PrivacyError> {
        let holds = |rounds: u64| -> Result<bool, PrivacyError> {
            Ok(self.epsilon(view, rounds)?.is_some_and(|spent| spent <= epsilon))
        };
        // Often all rounds are allowed; then this evaluation is enough.
        if limit > 0 && holds(1)? && holds(limit)? {
            return Ok(limit);
        }
        largest_integer(limit, holds)
    }
}
