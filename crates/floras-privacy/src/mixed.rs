//! The statements about rounds, of one account or of several: for one view, one `δ` and every way to take part.
//!
//! Where clients do not answer, rounds differ in the number `K` of those who do, and with it in the probability of taking
//! part. Each kind of round has its own [`Account`]; together they are composed as
//! [`Composition::mixed`](crate::Composition::mixed) does it. How many rounds there are of which kind must not depend on
//! anyone's data.
//!
//! Three numbers belong to a view under sampling:
//!
//! | number | adversary |
//! |---|---|
//! | sampled | does not know who takes part in a round |
//! | participation known | sees who takes part; a client takes part with probability `p`, so a round has the loss `L` with probability `p` and 0 otherwise |
//! | in every round | as before, for a client that takes part in every round |
//!
//! The first is at most the second, so that the smaller of the two bounds is stated. The any-channel adversary sees from the
//! pilot who takes part: its number is the second one.
//!
//! A strong client is one of the channels, and [`simple_bound`](crate::simple_bound) holds for all of them. So the any-channel
//! number is kept between the idealised one and the simple bound, here and nowhere else.
//!
//! Masks bound every rigorous view ([`MaskBound`]): the smaller of that bound and the view's own is stated. A
//! view that has no bound of its own, or an estimate only, has the masks' bound. Its adversary sees who transmits. Masks add
//! noise that the own bounds do not count, so that nothing is known from below.
//!
//! The published view adds up the paper's Rényi divergences at a common order, and takes the best one:
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
use crate::published;
use crate::published::rdp::Conversion;
use crate::published::theorems::PublishedRound;
use crate::views::Beside;
use crate::views::masks::{self, MaskBound};
use crate::views::statement::{Statement, Views, for_each_view};

/// Rounds with accounts of their own.
pub struct Mixed<'a> {
    parts: Vec<(&'a Account, u64)>,
    delta: f64,
    /// What is composed already: views are compared with one another, and a statement has numbers in common with its details.
    known: Mutex<BTreeMap<(Rounds, Exposure), Shared>>,
}

/// Which curves are composed.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Rounds {
    /// Those of a view.
    Of(View),
    /// The others that bound it.
    Bounding(View),
    /// Those of the masks.
    Masked,
}

/// What an adversary knows of who takes part.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Exposure {
    /// As the accounts say: nothing, under sampling.
    Sampled,
    /// In which rounds the client takes part.
    Known,
    /// The same, for a client that takes part in all of them.
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

    /// What the adversary of a view knows.
    fn in_view(view: View) -> Self {
        if view == View::AnyChannel { Self::Known } else { Self::Sampled }
    }
}

/// Why there is no number: in words, and with the `ε` that is exceeded if that is the reason.
#[derive(Clone)]
struct NoBound {
    reason: String,
    above: Option<f64>,
}

/// A number, or why there is none.
type Answer<T> = Result<T, NoBound>;

/// An answer that the first thread that asks for it computes.
type Shared = Arc<OnceLock<Result<Answer<f64>, PrivacyError>>>;

/// What all rounds of a view have to offer.
struct Curves<'a> {
    /// The view's own curves; `None` if only masks bound it.
    own: Option<Vec<Part<'a>>>,
    caveat: Option<&'a String>,
    assumptions: &'a [String],
}

/// The bound of masks in all rounds.
struct Masked<'a> {
    parts: Vec<Part<'a>>,
    bound: &'a MaskBound,
}

/// Rounds whose curve bounds a view.
pub(crate) struct Bounding<'a> {
    pub(crate) parts: Vec<Part<'a>>,
    /// Rounds whose curve the bound is not below.
    pub(crate) at_least: Option<Vec<Part<'a>>>,
}

impl<'a> Mixed<'a> {
    /// `T_i` rounds of each account. All must have the same `δ`, and neighbours of the same kind.
    pub fn new(parts: &[(&'a Account, u64)]) -> Result<Self, PrivacyError> {
        crate::engine::compose::common_directions(
            parts.iter().map(|(account, rounds)| (account.sampling(), *rounds)),
        )?;
        let [(first, _), others @ ..] = parts else { return Err(PrivacyError::NoRounds) };
        let delta = first.delta();
        match others.iter().find(|(account, _)| account.delta() != delta) {
            Some((other, _)) => Err(PrivacyError::DifferentDeltas { one: delta, other: other.delta() }),
            None => Ok(Self { parts: parts.to_vec(), delta, known: Mutex::default() }),
        }
    }

    /// `δ`.
    pub fn delta(&self) -> f64 {
        self.delta
    }

    /// All rounds.
    pub fn rounds(&self) -> u64 {
        self.parts.iter().map(|(_, rounds)| rounds).sum()
    }

    /// The `ε` of a view; `None` if there is none.
    pub fn epsilon(&self, view: View) -> Result<Option<f64>, PrivacyError> {
        if view == View::Published {
            return Ok(self.published()?.and_then(Result::ok));
        }
        let Some(Ok(curves)) = self.curves(view) else { return Ok(None) };
        Ok(self.upper(view, &curves, Exposure::in_view(view))?.ok())
    }

    /// An upper bound on the `δ` of a view for an `ε`; `None` if the view has no curve.
    pub fn delta_at(&self, view: View, epsilon: f64) -> Result<Option<f64>, PrivacyError> {
        require_epsilon(epsilon)?;
        let Some(Ok(curves)) = self.curves(view) else { return Ok(None) };
        let at = |parts: &[Part<'_>]| match Composition::mixed(parts)?.delta_upper(epsilon) {
            // No δ is larger.
            Err(error) if error.is_no_guarantee() => Ok(1.0),
            other => other,
        };
        let exposure = Exposure::in_view(view);
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

    /// The statement of a view; `None` if some rounds have no such view. It is a guarantee if it is one for all rounds.
    pub fn statement(&self, view: View) -> Result<Option<Statement>, PrivacyError> {
        if view == View::Published {
            return self.published_statement();
        }
        let curves = match self.curves(view) {
            None => return Ok(None),
            Some(Err(reason)) => {
                let nothing = NoBound { reason, above: None };
                return Ok(Some(Statement::new(view, None, Some(nothing.reason), nothing.above)));
            }
            Some(Ok(curves)) => curves,
        };
        let exposure = Exposure::in_view(view);
        let upper = self.upper(view, &curves, exposure)?;
        let bounds = match upper {
            Err(nothing) => Err(nothing),
            // Own curves count none of the masks' noise, so that the truth may be below their lower bounds.
            Ok(upper) if self.masked().is_some() => Ok(Bounds { lower: 0.0, upper }),
            Ok(upper) => Ok(Bounds { lower: self.lower(&curves, exposure)?.min(upper), upper }),
        };
        let (bounds, reason, above) = match bounds {
            Ok(bounds) => (Some(bounds), curves.caveat.cloned(), None),
            Err(NoBound { reason, above }) => (None, Some(reason), above),
        };
        let mut statement = Statement::new(view, bounds, reason, above);
        statement.assumptions = curves.assumptions.to_vec();
        statement.details = self.details(view, &curves)?;
        if let Some(masked) = self.masked() {
            self.mask(view, &curves, &masked, &mut statement)?;
        }
        Ok(Some(statement))
    }

    /// Says of a statement what masks contribute to it.
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
            Some(own) => self.own_upper(view, own, Exposure::in_view(view))?.ok(),
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
            // The numbers for known participation may be the masks'.
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

    /// Whether what is derived from a view's curve is a guarantee.
    pub fn is_guarantee(&self, view: View) -> bool {
        matches!(self.curves(view), Some(Ok(Curves { caveat: None, .. })))
    }

    /// Whether some clients take part at random.
    fn is_sampled(&self) -> bool {
        self.parts.iter().any(|(account, _)| account.sampling() != Sampling::Everyone)
    }

    /// The curves of a view, or why there is no guarantee; `None` if some rounds have no such view.
    fn curves(&self, view: View) -> Option<Result<Curves<'a>, String>> {
        let own = self.own_curves(view);
        match (&own, self.masked()) {
            (Some(Ok(Curves { caveat: None, .. })), _) | (_, None) => own,
            (_, Some(_)) if view == View::Published => own,
            (_, Some(_)) => Some(Ok(Curves { own: None, caveat: None, assumptions: &[] })),
        }
    }

    /// The same without masks.
    fn own_curves(&self, view: View) -> Option<Result<Curves<'a>, String>> {
        let (mut parts, mut nothing) = (Vec::new(), None);
        let mut curves = Curves { own: None, caveat: None, assumptions: &[] };
        for &(account, rounds) in &self.parts {
            match account.source(view) {
                None | Some(Source::Absent) => return None,
                Some(Source::Nothing(reason)) => nothing = nothing.or(Some(reason)),
                Some(Source::Curve { curve, caveat, assumptions }) => {
                    curves.caveat = curves.caveat.or(caveat.as_ref());
                    if curves.assumptions.is_empty() {
                        curves.assumptions = assumptions;
                    }
                    parts.push(Part { curve: curve.as_ref(), sampling: account.sampling(), rounds });
                }
            }
        }
        Some(nothing.map_or(Ok(Curves { own: Some(parts), ..curves }), |reason| Err(reason.clone())))
    }

    /// The bound of masks, if all rounds have one. Rounds that differ are described by those with the fewest honest clients.
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

    /// The rounds whose curves bound a view, each of which is enough; empty if there is no guarantee.
    pub(crate) fn bounding(&self, view: View) -> Vec<Bounding<'a>> {
        let Some(Ok(curves)) = self.curves(view) else { return Vec::new() };
        let exposure = Exposure::in_view(view);
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

    /// The accounts and their rounds.
    pub(crate) fn parts(&self) -> &[(&'a Account, u64)] {
        &self.parts
    }

    /// The curves that those of a view are not below: a strong client is one of the channels.
    fn strong(&self, view: View) -> Option<Vec<Part<'a>>> {
        if view == View::AnyChannel { self.own_curves(View::Idealised)?.ok()?.own } else { None }
    }

    /// The other curves that bound a view, if all rounds have one, and the name of their number.
    fn other_bound(&self, view: View) -> Option<(&'static str, Vec<Part<'a>>)> {
        let mut number = "";
        let of_part = |&(account, rounds): &(&'a Account, u64)| {
            let Beside::Bound(name, curve) = account.beside.get(&view)? else { return None };
            number = name;
            Some(Part { curve: curve.as_ref(), sampling: account.sampling(), rounds })
        };
        let parts: Option<Vec<Part<'a>>> = self.parts.iter().map(of_part).collect();
        Some((number, parts?))
    }

    /// The upper bound of a view for an adversary that knows this much.
    fn upper(
        &self,
        view: View,
        curves: &Curves<'_>,
        exposure: Exposure,
    ) -> Result<Answer<f64>, PrivacyError> {
        let masked = match self.masked() {
            None => None,
            Some(masked) => {
                // Who transmits is seen.
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

    /// The same without masks.
    fn own_upper(
        &self,
        view: View,
        own: &[Part<'_>],
        exposure: Exposure,
    ) -> Result<Answer<f64>, PrivacyError> {
        let mut upper = self.composed(Rounds::Of(view), own, exposure)?;
        if exposure == Exposure::Sampled && self.is_sampled() {
            upper = smaller(upper, self.composed(Rounds::Of(view), own, Exposure::Known)?);
        }
        if let Some(strong) = self.strong(view) {
            upper = larger(upper, self.composed(Rounds::Of(View::Idealised), &strong, exposure)?);
        }
        if let Some((_, bound)) = self.other_bound(view) {
            upper = smaller(upper, self.composed(Rounds::Bounding(view), &bound, exposure)?);
        }
        // Someone who takes part in every round shows at least as much.
        if upper.is_err() && exposure != Exposure::EveryRound && self.is_sampled() {
            upper = smaller(upper, self.own_upper(view, own, Exposure::EveryRound)?);
        }
        Ok(upper)
    }

    /// The upper bound of some curves alone, which are always the same ones for the same `rounds`.
    fn composed(
        &self,
        rounds: Rounds,
        parts: &[Part<'_>],
        exposure: Exposure,
    ) -> Result<Answer<f64>, PrivacyError> {
        // Without sampling, everyone takes part in every round.
        let exposure = if self.is_sampled() { exposure } else { Exposure::EveryRound };
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let answer = known.entry((rounds, exposure)).or_default().clone();
        // Other threads may look up other answers meanwhile.
        drop(known);
        let compose = || or_reason(Composition::mixed(&exposed(parts, exposure))?.epsilon_upper(self.delta));
        answer.get_or_init(compose).clone()
    }

    /// What the true `ε` is not below; 0 if nothing is known.
    fn lower(&self, curves: &Curves<'_>, exposure: Exposure) -> Result<f64, PrivacyError> {
        let Some(own) = &curves.own else { return Ok(0.0) };
        let parts = exposed(own, exposure);
        Ok(or_reason(Composition::mixed(&parts)?.epsilon_lower(self.delta))?.unwrap_or(0.0))
    }

    /// Other numbers of a view.
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
            add(name, self.composed(Rounds::Bounding(view), &bound, Exposure::in_view(view))?);
        }
        if let [(account, rounds)] = self.parts[..]
            && let (Some(Beside::Renyi(round)), Sampling::Everyone) =
                (account.beside.get(&view), account.sampling())
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
            && let Some(Beside::Published(Ok((round, plus_one)))) = account.beside.get(&View::Published)
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

    /// The paper's number, or why there is none; `None` if some rounds have no such view.
    fn published(&self) -> Result<Option<Result<f64, String>>, PrivacyError> {
        if let [(account, rounds)] = self.parts[..]
            && let Some(Beside::Published(Ok((round, _)))) = account.beside.get(&View::Published)
        {
            return Ok(Some(Ok(round
                .epsilon(published::PublishedComposition::Renyi, rounds, self.delta)?
                .as_printed())));
        }
        let mut squares = Ok(0.0);
        for (account, rounds) in &self.parts {
            require_rounds(*rounds)?;
            let Some(Beside::Published(published)) = account.beside.get(&View::Published) else {
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

/// The smaller of two bounds, of which one is enough.
fn smaller(one: Answer<f64>, other: Answer<f64>) -> Answer<f64> {
    match (one, other) {
        (Ok(one), Ok(other)) => Ok(one.min(other)),
        (Ok(only), Err(_)) | (Err(_), Ok(only)) => Ok(only),
        (Err(nothing), Err(_)) => Err(nothing),
    }
}

/// The larger of two bounds, both of which are needed.
fn larger(one: Answer<f64>, other: Answer<f64>) -> Answer<f64> {
    Ok(one?.max(other?))
}

/// A number, or in words why there is none, if the reason is not in the input.
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
