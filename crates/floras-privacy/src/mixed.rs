//! The statements about rounds, of one account or of several: for one view, one `δ` and every kind of sampling.
//!
//! If clients drop out, rounds differ in the number `K` of participants, and so in the probability of taking part. Each kind of round has
//! its own [`Account`]. Together they are composed by [`Composition::mixed`](crate::Composition::mixed). The number of rounds of each kind
//! must not depend on anyone's data.
//!
//! Under sampling, a view has three numbers:
//!
//! | number | adversary |
//! |---|---|
//! | sampled | does not know who takes part in a round |
//! | participation known | sees who takes part; in a round, the loss is `L` with probability `p` and 0 otherwise |
//! | in every round | sees who takes part; the client takes part in every round |
//!
//! The first is at most the second, so the smaller of the two bounds is stated. The any-channel adversary sees from the pilot who takes
//! part: its number is the second one.
//!
//! A strong client is one of the channels, and [`simple_bound`](crate::simple_bound) holds for all channels. So the any-channel number is
//! at least the idealised one and at most the simple bound. Only this module enforces that.
//!
//! Masks bound every rigorous view ([`MaskBound`]): the smaller of that bound and the view's own is stated. A view without a bound of its
//! own, or with an estimate only, has the bound of the masks. Its adversary sees who transmits. The views' own bounds do not count the
//! noise that masks add, so with masks there is no lower bound.
//!
//! The published view adds up the paper's Rényi divergences at a common order, and uses the best order:
//!
//! ```text
//! min_α [α·U/2 + ln(1/δ)/(α − 1)] = √(2U·ln(1/δ)) + U/2,     U = Σ T_i·u_i²
//! ```
//!
//! ```
//! use floras_privacy::mixed::Mixed;
//! use floras_privacy::{Account, PrivacyUnit, Neighbours, Receiver, Clipping, Setting, View};
//!
//! let all = Setting {
//!     clip: 1.0,
//!     sequences: 40,
//!     per_round: 20,
//!     clients: 20,
//!     delta: 1e-5,
//!     unit: PrivacyUnit::Client,
//!     neighbours: Neighbours::ReplaceOne,
//!     clipping: Clipping::Each,
//!     receiver: Receiver::clipped(1.0)?,
//!     channel: None,
//!     ..Setting::default()
//! };
//! // In 3 of 10 rounds two sequences less were assigned.
//! let fewer = Setting { per_round: 18, ..all.clone() };
//! let (all, fewer) = (Account::of(&all)?, Account::of(&fewer)?);
//! let epsilon = Mixed::new(&[(&all, 7), (&fewer, 3)])?.epsilon(View::Idealised)?;
//! assert!(fewer.epsilon(View::Idealised, 10)? < epsilon && epsilon < all.epsilon(View::Idealised, 10)?);
//! # Ok::<(), floras_privacy::PrivacyError>(())
//! ```
//!
//! # Citations
//! The paper's Theorems 2 and 3 for one kind of round; Mironov, *Rényi differential privacy*, CSF 2017, proposition 1, for
//! divergences that add up.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use floras_core::View;

use crate::account::{Account, Source};
use crate::engine::compose::{Bounds, Composition, MAX_EPSILON, Part};
use crate::engine::sampling::Sampling;
use crate::error::{PrivacyError, require_epsilon, require_rounds};
use crate::numerics::parallel::both;
use crate::published;
use crate::published::rdp::Conversion;
use crate::published::theorems::PublishedRound;
use crate::views::DetailSource;
use crate::views::masks::{self, MaskBound};
use crate::views::statement::{Statement, Views, for_each_view};

/// Rounds of one or several accounts.
pub struct Mixed<'a> {
    parts: Vec<(&'a Account, u64)>,
    delta: f64,
    /// Numbers that are already composed: several statements and their details use the same numbers.
    known: Mutex<BTreeMap<(Rounds, Exposure), Shared>>,
}

/// The curves that are composed.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Rounds {
    /// The curves of a view.
    Of(View),
    /// The other curves that bound a view.
    Bounding(View),
    /// The curves of the masks.
    Masked,
}

/// The adversary's knowledge of who takes part.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Exposure {
    /// As in the accounts: no knowledge under sampling.
    Sampled,
    /// The rounds in which the client takes part.
    Known,
    /// The same knowledge, for a client that takes part in every round.
    EveryRound,
}

impl Exposure {
    fn of(self, sampling: Sampling) -> Sampling {
        match self {
            Self::Sampled => sampling,
            Self::Known => Sampling::Known(sampling.probability()),
            Self::EveryRound => Sampling::Everyone,
        }
    }
}

/// The reason why there is no number, and the `ε` that is exceeded if that is the reason.
#[derive(Clone)]
struct NoBound {
    reason: String,
    above: Option<f64>,
}

/// A number, or the reason why there is none.
type Answer<T> = Result<T, NoBound>;

/// An answer that is computed by the first thread that requests it.
type Shared = Arc<OnceLock<Result<Answer<f64>, PrivacyError>>>;

/// The bounds of a view in all rounds.
struct Curves<'a> {
    /// The view's own curves; `None` if only masks bound it.
    own: Option<Vec<Part<'a>>>,
    caveat: Option<&'a String>,
    assumptions: &'a [String],
}

impl Curves<'_> {
    /// Whether lower bounds are known for all rounds.
    fn have_lower(&self) -> bool {
        self.own.iter().flatten().all(|part| part.curve.has_lower())
    }
}

/// The bound of masks in all rounds.
struct Masked<'a> {
    parts: Vec<Part<'a>>,
    bound: &'a MaskBound,
}

/// Rounds whose curve is an upper bound for a view.
pub(crate) struct Bounding<'a> {
    pub(crate) parts: Vec<Part<'a>>,
    /// Rounds whose curve is a lower limit of the bound: the larger of both counts.
    pub(crate) at_least: Option<Vec<Part<'a>>>,
}

impl<'a> Mixed<'a> {
    /// `T_i` rounds of each account. All accounts must have the same `δ` and the same kind of neighbours.
    pub fn new(parts: &[(&'a Account, u64)]) -> Result<Self, PrivacyError> {
        crate::engine::compose::common_directions(
            parts.iter().map(|(account, rounds)| (account.sampling(), *rounds)),
            require_rounds,
        )?;
        let [(first, _), others @ ..] = parts else { return Err(PrivacyError::NoRounds) };
        let delta = first.delta();
        match others.iter().find(|(account, _)| account.delta() != delta) {
            Some((other, _)) => Err(PrivacyError::DifferentDeltas { one: delta, other: other.delta() }),
            None => Ok(Self { parts: parts.to_vec(), delta, known: Mutex::default() }),
        }
    }

    /// Failure probability `δ` of all statements, at least 1e-30 and below 1.
    pub fn delta(&self) -> f64 {
        self.delta
    }

    /// Total number of rounds of all accounts.
    pub fn rounds(&self) -> u64 {
        self.parts.iter().map(|(_, rounds)| rounds).sum()
    }

    /// `ε` of a view; `None` if no finite `ε` is established.
    pub fn epsilon(&self, view: View) -> Result<Option<f64>, PrivacyError> {
        if view == View::Published {
            return Ok(self.published()?.and_then(Result::ok));
        }
        let Some(Ok(curves)) = self.curves(view) else { return Ok(None) };
        Ok(self.upper(view, &curves, self.exposure(view))?.ok())
    }

    /// What a view's adversary knows of who takes part. Masks need a list of participants, which the base station announces, and
    /// colluding clients know when they take part themselves.
    fn exposure(&self, view: View) -> Exposure {
        let shows = |account: &Account| account.masks().is_some_and(|masks| masks.shows_participants);
        let is_shown = view == View::AnyChannel || self.parts.iter().any(|(account, _)| shows(account));
        if is_shown { Exposure::Known } else { Exposure::Sampled }
    }

    /// An upper bound on the `δ` of a view for an `ε`; `None` if the view has no curve.
    pub fn delta_at(&self, view: View, epsilon: f64) -> Result<Option<f64>, PrivacyError> {
        require_epsilon(epsilon)?;
        let Some(Ok(curves)) = self.curves(view) else { return Ok(None) };
        let at = |parts: &[Part<'_>]| match Composition::of_parts(parts)?.delta_upper(epsilon) {
            // δ is at most 1.
            Err(error) if error.is_no_guarantee() => Ok(1.0),
            other => other,
        };
        let exposure = self.exposure(view);
        let mut delta = 1.0_f64;
        if let Some(own) = &curves.own {
            delta = at(&exposed(own, exposure))?;
            if exposure == Exposure::Sampled && self.is_sampled() {
                delta = delta.min(at(&exposed(own, Exposure::Known))?);
            }
            if let Some(strong) = self.strong(view) {
                delta = delta.max(at(&exposed(&strong, exposure))?);
            }
            if let Some((_, bound)) = self.other_bound(view) {
                delta = delta.min(at(&exposed(&bound, exposure))?);
            }
        }
        if let Some(masked) = self.masked() {
            delta = delta.min(at(&exposed(&masked.parts, Exposure::Known))?);
        }
        Ok(Some(delta))
    }

    /// The statement of a view; `None` if some rounds have no such view. It is a guarantee if the view is one in all rounds.
    pub fn statement(&self, view: View) -> Result<Option<Statement>, PrivacyError> {
        if view == View::Published {
            return self.published_statement();
        }
        let curves = match self.curves(view) {
            None => return Ok(None),
            Some(Err(reason)) => {
                let no_bound = NoBound { reason, above: None };
                return Ok(Some(Statement::new(view, None, Some(no_bound.reason), no_bound.above)));
            }
            Some(Ok(curves)) => curves,
        };
        let exposure = self.exposure(view);
        let upper = self.upper(view, &curves, exposure)?;
        // The view's own curves omit the masks' noise, so the true ε may be below their lower bounds.
        let has_lower = upper.is_ok() && self.masked().is_none() && curves.have_lower();
        let lower = || if has_lower { self.lower(&curves, exposure) } else { Ok(0.0) };
        let (details, lower) = both(|| self.details(view, &curves), lower);
        let lower = lower?;
        let bounds = upper.map(|upper| Bounds { lower: lower.min(upper), upper });
        let (bounds, reason, above) = match bounds {
            Ok(bounds) => (Some(bounds), curves.caveat.cloned(), None),
            Err(NoBound { reason, above }) => {
                // A caveat also applies to the `ε` of fewer rounds, which may be within reach.
                let caveat = curves.caveat.map_or_else(String::new, |caveat| format!("; {caveat}"));
                (None, Some(reason + &caveat), above)
            }
        };
        let mut statement = Statement::new(view, bounds, reason, above);
        statement.assumptions = curves.assumptions.to_vec();
        statement.details = details?;
        if !curves.have_lower() {
            statement.epsilon_lower = None;
        }
        if let Some(masked) = self.masked() {
            self.mask(view, &curves, &masked, &mut statement)?;
        }
        Ok(Some(statement))
    }

    /// Adds to a statement the effect of the masks.
    fn mask(
        &self,
        view: View,
        curves: &Curves<'_>,
        masked: &Masked<'_>,
        statement: &mut Statement,
    ) -> Result<(), PrivacyError> {
        statement.epsilon_lower = None;
        let bound = self.composed(Rounds::Masked, &masked.parts, Exposure::Known)?.ok();
        if let Some(bound) = bound {
            statement.details.insert("masks".to_owned(), bound);
        }
        let own = match &curves.own {
            None => None,
            Some(own) => self.own_upper(view, own, self.exposure(view))?.ok(),
        };
        statement.from_masks = match (own, bound) {
            (_, None) => false,
            (None, Some(_)) => true,
            (Some(own), Some(bound)) => bound < own,
        };
        let MaskBound { assumptions, adversary, .. } = masked.bound;
        if statement.from_masks {
            statement.adversary = (*adversary).to_owned();
            statement.assumptions.clone_from(assumptions);
            if self.is_sampled() {
                statement.assumptions.push(masks::RANDOM_SELECTION.to_owned());
            }
        } else if self.is_sampled() {
            // With known participation, the numbers may come from the masks.
            statement.assumptions.extend(assumptions.iter().cloned());
        }
        Ok(())
    }

    /// The statements of all views.
    pub fn views(&self) -> Result<Views, PrivacyError> {
        let statements = for_each_view(|view| self.statement(view));
        let of = |(view, statement): (View, Result<Option<Statement>, PrivacyError>)| {
            statement.map(|statement| statement.map(|statement| (view, statement))).transpose()
        };
        View::ALL.into_iter().zip(statements).filter_map(of).collect()
    }

    /// Whether statements that follow from a view's curve are guarantees.
    pub fn is_guarantee(&self, view: View) -> bool {
        matches!(self.curves(view), Some(Ok(Curves { caveat: None, .. })))
    }

    /// Whether clients are sampled at random.
    fn is_sampled(&self) -> bool {
        self.parts.iter().any(|(account, _)| account.sampling() != Sampling::Everyone)
    }

    /// The curves of a view, or the reason why there is no guarantee; `None` if some rounds have no such view.
    fn curves(&self, view: View) -> Option<Result<Curves<'a>, String>> {
        let own = self.own_curves(view);
        match (&own, self.masked()) {
            (Some(Ok(Curves { caveat: None, .. })), _) | (_, None) => own,
            (_, Some(_)) if view == View::Published => own,
            (_, Some(_)) => Some(Ok(Curves { own: None, caveat: None, assumptions: &[] })),
        }
    }

    /// The view's own curves, without masks.
    fn own_curves(&self, view: View) -> Option<Result<Curves<'a>, String>> {
        let (mut parts, mut no_bound) = (Vec::new(), None);
        let mut curves = Curves { own: None, caveat: None, assumptions: &[] };
        for &(account, rounds) in &self.parts {
            match account.source(view) {
                None | Some(Source::Absent) => return None,
                Some(Source::Nothing(reason)) => no_bound = no_bound.or(Some(reason)),
                Some(Source::Curve { curve, parts: in_round, caveat, assumptions }) => {
                    curves.caveat = curves.caveat.or(caveat.as_ref());
                    if curves.assumptions.is_empty() {
                        curves.assumptions = assumptions;
                    }
                    // A round with a client has all of its parts with the client.
                    let sampling = match in_round {
                        1 => account.sampling(),
                        _ => account.sampling().of_every_round(),
                    };
                    let rounds = rounds.saturating_mul(*in_round);
                    parts.push(Part { curve: curve.as_ref(), sampling, rounds });
                }
            }
        }
        Some(no_bound.map_or(Ok(Curves { own: Some(parts), ..curves }), |reason| Err(reason.clone())))
    }

    /// The bound of masks, if all rounds have one. Among different rounds, those with the largest `μ` provide the description.
    fn masked(&self) -> Option<Masked<'a>> {
        let mut weakest: Option<&MaskBound> = None;
        let mut parts = Vec::new();
        for &(account, rounds) in &self.parts {
            let bound = account.masks()?;
            if weakest.is_none_or(|weakest| bound.mu() > weakest.mu()) {
                weakest = Some(bound);
            }
            parts.push(Part { curve: &bound.curve, sampling: account.sampling(), rounds });
        }
        Some(Masked { parts, bound: weakest? })
    }

    /// The rounds whose curves bound a view; each entry alone is a valid bound. Empty if there is no guarantee.
    pub(crate) fn bounding(&self, view: View) -> Vec<Bounding<'a>> {
        let Some(Ok(curves)) = self.curves(view) else { return Vec::new() };
        let exposure = self.exposure(view);
        let alone = |parts| Bounding { parts, at_least: None };
        let mut bounding = Vec::new();
        if let Some(own) = &curves.own {
            let at_least = self.strong(view).map(|strong| exposed(&strong, exposure));
            bounding.push(Bounding { parts: exposed(own, exposure), at_least });
            if exposure == Exposure::Sampled && self.is_sampled() {
                bounding.push(alone(exposed(own, Exposure::Known)));
            }
            if let Some((_, bound)) = self.other_bound(view) {
                bounding.push(alone(exposed(&bound, exposure)));
            }
        }
        bounding.extend(self.bounding_masks());
        bounding
    }

    /// The rounds whose curves bound every rigorous view, if there are masks.
    pub(crate) fn bounding_masks(&self) -> Option<Bounding<'a>> {
        let masked = self.masked()?;
        Some(Bounding { parts: exposed(&masked.parts, Exposure::Known), at_least: None })
    }

    /// The accounts and their numbers of rounds.
    pub(crate) fn parts(&self) -> &[(&'a Account, u64)] {
        &self.parts
    }

    /// Curves that a view's curves are at least as large as: a strong client is one of the channels.
    fn strong(&self, view: View) -> Option<Vec<Part<'a>>> {
        if view == View::AnyChannel { self.own_curves(View::Idealised)?.ok()?.own } else { None }
    }

    /// The other curves that bound a view, if all rounds have one, and the name of their number.
    fn other_bound(&self, view: View) -> Option<(&'static str, Vec<Part<'a>>)> {
        let mut number = "";
        let of_part = |&(account, rounds): &(&'a Account, u64)| {
            let DetailSource::Bound(name, curve) = account.detail_sources.get(&view)? else { return None };
            number = name;
            Some(Part { curve: curve.as_ref(), sampling: account.sampling(), rounds })
        };
        let parts: Option<Vec<Part<'a>>> = self.parts.iter().map(of_part).collect();
        Some((number, parts?))
    }

    /// The upper bound of a view against an adversary with this knowledge.
    fn upper(
        &self,
        view: View,
        curves: &Curves<'_>,
        exposure: Exposure,
    ) -> Result<Answer<f64>, PrivacyError> {
        let masked = match self.masked() {
            None => None,
            Some(masked) => {
                // The adversary of the masks sees who transmits.
                let exposure = if exposure == Exposure::Sampled { Exposure::Known } else { exposure };
                Some(self.composed(Rounds::Masked, &masked.parts, exposure)?)
            }
        };
        let own = match &curves.own {
            None => None,
            Some(own) => Some(self.own_upper(view, own, exposure)?),
        };
        Ok(match (own, masked) {
            (Some(own), Some(masked)) => smaller(own, masked),
            (Some(only), None) | (None, Some(only)) => only,
            (None, None) => Err(NoBound { reason: "there is no curve".to_owned(), above: None }),
        })
    }

    /// The upper bound without masks.
    fn own_upper(
        &self,
        view: View,
        own: &[Part<'_>],
        exposure: Exposure,
    ) -> Result<Answer<f64>, PrivacyError> {
        let strong = match self.strong(view) {
            Some(strong) => Some(self.composed(Rounds::Of(View::Idealised), &strong, exposure)?),
            None => None,
        };
        let mut upper = match strong {
            // The curves are at least those of a strong client.
            Some(Err(none)) => Err(none),
            strong => {
                let mut upper = self.composed(Rounds::Of(view), own, exposure)?;
                if exposure == Exposure::Sampled && self.is_sampled() {
                    upper = smaller(upper, self.composed(Rounds::Of(view), own, Exposure::Known)?);
                }
                strong.into_iter().fold(upper, larger)
            }
        };
        if let Some((_, bound)) = self.other_bound(view) {
            upper = smaller(upper, self.composed(Rounds::Bounding(view), &bound, exposure)?);
        }
        // A client that takes part in every round loses at least as much.
        if upper.is_err() && exposure != Exposure::EveryRound && self.is_sampled() {
            upper = smaller(upper, self.own_upper(view, own, Exposure::EveryRound)?);
        }
        Ok(upper)
    }

    /// The upper bound of some curves. The same `rounds` always come with the same curves.
    fn composed(
        &self,
        rounds: Rounds,
        parts: &[Part<'_>],
        exposure: Exposure,
    ) -> Result<Answer<f64>, PrivacyError> {
        // Without sampling, every client takes part in every round.
        let exposure = if self.is_sampled() { exposure } else { Exposure::EveryRound };
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let answer = known.entry((rounds, exposure)).or_default().clone();
        // Other threads may read other answers in the meantime.
        drop(known);
        let compose =
            || or_reason(Composition::of_parts(&exposed(parts, exposure))?.epsilon_upper(self.delta));
        answer.get_or_init(compose).clone()
    }

    /// A lower bound on the true `ε`; 0 if none is known.
    fn lower(&self, curves: &Curves<'_>, exposure: Exposure) -> Result<f64, PrivacyError> {
        let Some(own) = &curves.own else { return Ok(0.0) };
        let parts = exposed(own, exposure);
        Ok(or_reason(Composition::of_parts(&parts)?.epsilon_lower(self.delta))?.unwrap_or(0.0))
    }

    /// Additional numbers of a view.
    fn details(&self, view: View, curves: &Curves<'_>) -> Result<BTreeMap<String, f64>, PrivacyError> {
        let mut details = BTreeMap::new();
        let mut add = |name: &str, answer: Answer<f64>| {
            if let Ok(value) = answer {
                details.insert(name.to_owned(), value);
            }
        };
        if self.is_sampled() {
            add("participation_known", self.upper(view, curves, Exposure::Known)?);
            add("in_every_round", self.upper(view, curves, Exposure::EveryRound)?);
        }
        if let (Some((name, bound)), Some(_)) = (self.other_bound(view), &curves.own) {
            add(name, self.composed(Rounds::Bounding(view), &bound, self.exposure(view))?);
        }
        if let [(account, rounds)] = self.parts[..]
            && let (Some(DetailSource::Renyi(round)), Sampling::Everyone) =
                (account.detail_sources.get(&view), account.sampling())
        {
            add("renyi", Ok(round.epsilon(rounds, self.delta, Conversion::Improved)?.epsilon));
        }
        Ok(details)
    }

    fn published_statement(&self) -> Result<Option<Statement>, PrivacyError> {
        let Some(epsilon) = self.published()? else { return Ok(None) };
        let bounds = epsilon.as_ref().ok().map(|&upper| Bounds { lower: upper, upper });
        let reason = epsilon.err().unwrap_or_else(|| published::WHY_NOT_A_GUARANTEE.to_owned());
        let mut statement = Statement::new(View::Published, bounds, Some(reason), None);
        statement.epsilon_lower = None;
        if let [(account, rounds)] = self.parts[..]
            && let Some(DetailSource::Published(Ok((round, plus_one)))) =
                account.detail_sources.get(&View::Published)
        {
            use published::PublishedComposition::{Advanced, Optimal, Renyi, Sequential};
            let epsilon = |round: &PublishedRound, composition| {
                Ok::<f64, PrivacyError>(round.epsilon(composition, rounds, self.delta)?.as_printed())
            };
            let details = [
                ("p_of_appendix", epsilon(plus_one, Renyi)?),
                ("sequential", epsilon(round, Sequential)?),
                ("advanced", epsilon(round, Advanced)?),
                ("optimal_pure", epsilon(round, Optimal)?),
                ("order", round.best_order(rounds, self.delta)?),
            ];
            statement.details = details.map(|(name, value)| (name.to_owned(), value)).into();
        }
        Ok(Some(statement))
    }

    /// The published number, or the reason why there is none; `None` if some rounds have no such view.
    fn published(&self) -> Result<Option<Result<f64, String>>, PrivacyError> {
        if let [(account, rounds)] = self.parts[..]
            && let Some(DetailSource::Published(Ok((round, _)))) =
                account.detail_sources.get(&View::Published)
        {
            return Ok(Some(Ok(round
                .epsilon(published::PublishedComposition::Renyi, rounds, self.delta)?
                .as_printed())));
        }
        let mut squares = Ok(0.0);
        for (account, rounds) in &self.parts {
            require_rounds(*rounds)?;
            let Some(DetailSource::Published(published)) = account.detail_sources.get(&View::Published)
            else {
                return Ok(None);
            };
            squares = match (squares, published) {
                (Ok(sum), Ok((round, _))) => Ok(sum + *rounds as f64 * round.pure().as_printed().powi(2)),
                (Err(reason), _) => Err(reason),
                (Ok(_), Err(error)) if error.is_no_guarantee() => Err(error.to_string()),
                (Ok(_), Err(error)) => return Err(error.clone()),
            };
        }
        Ok(Some(squares.map(|sum: f64| (-2.0 * sum * self.delta.ln()).sqrt() + 0.5 * sum)))
    }
}

fn exposed<'a>(parts: &[Part<'a>], exposure: Exposure) -> Vec<Part<'a>> {
    parts.iter().map(|&part| Part { sampling: exposure.of(part.sampling), ..part }).collect()
}

/// The smaller of two bounds, each of which is valid by itself.
fn smaller(one: Answer<f64>, other: Answer<f64>) -> Answer<f64> {
    match (one, other) {
        (Ok(one), Ok(other)) => Ok(one.min(other)),
        (Ok(only), Err(_)) | (Err(_), Ok(only)) => Ok(only),
        (Err(no_bound), Err(_)) => Err(no_bound),
    }
}

/// The larger of two numbers, both of which are required.
fn larger(one: Answer<f64>, other: Answer<f64>) -> Answer<f64> {
    Ok(one?.max(other?))
}

/// A number, or the reason why there is none. Invalid input is an error.
fn or_reason<T>(number: Result<T, PrivacyError>) -> Result<Answer<T>, PrivacyError> {
    match number {
        Ok(number) => Ok(Ok(number)),
        Err(error) if error.is_no_guarantee() => {
            let above = matches!(error, PrivacyError::EpsilonOutOfReach { .. }).then_some(MAX_EPSILON);
            Ok(Err(NoBound { reason: error.to_string(), above }))
        }
        Err(error) => Err(error),
    }
}
