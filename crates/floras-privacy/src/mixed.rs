//! Rounds that differ: one statement for a federation whose rounds have accounts of their own.
//!
//! Where clients die, rounds differ in the number `K` of those who answered, and with it in `γ = N − K` and in the chance of
//! taking part. Each kind of round has its own [`Account`]; together they are composed as
//! [`Composition::mixed`](crate::Composition::mixed) does it. How many rounds there are of which kind must not depend on
//! anyone's data.
//!
//! The published view adds up the paper's Rényi divergences at a common order, and takes the best one:
//!
//! ```text
//! min_α [α·U/2 + ln(1/δ)/(α − 1)] = √(2U·ln(1/δ)) + U/2,     U = Σ T_i·u_i²
//! ```
//!
//! ```
//! use floras_privacy::mixed::Mixed;
//! use floras_privacy::{Account, Level, Neighbours, Receiver, Scaling, Setting, View};
//!
//! let all = Setting {
//!     clip: 1.0,
//!     sequences: 40,
//!     per_round: 20,
//!     clients: 20,
//!     delta: 1e-5,
//!     level: Level::Client,
//!     neighbours: Neighbours::ReplaceOne,
//!     scaling: Scaling::Fixed,
//!     receiver: Receiver::Clipped(1.0),
//!     channel: None,
//! };
//! // In 3 of 10 rounds two clients did not answer: their sequences made noise instead.
//! let most = Setting { per_round: 18, ..all.clone() };
//! let (all, most) = (Account::of(&all)?, Account::of(&most)?);
//! let epsilon = Mixed::new(&[(&all, 7), (&most, 3)])?.epsilon(View::Idealised)?;
//! assert!(most.epsilon(View::Idealised, 10)? < epsilon && epsilon < all.epsilon(View::Idealised, 10)?);
//! # Ok::<(), floras_privacy::PrivacyError>(())
//! ```
//!
//! # Citations
//! The paper's Theorems 2 and 3 for one kind of round; Mironov, *Rényi differential privacy*, CSF 2017, proposition 1, for
//! divergences that add up.

use std::collections::BTreeMap;

use crate::account::{Account, FAR_OUT, Source};
use crate::compose::{Bounds, Composition, Part, common_directions};
use crate::error::PrivacyError;
use crate::published;
use crate::sampling::Sampling;
use crate::view::{Statement, View, Views};

/// Rounds with accounts of their own.
pub struct Mixed<'a> {
    parts: Vec<(&'a Account, u64)>,
    delta: f64,
}

/// What all rounds of a view have to offer.
enum Sources<'a> {
    /// Some rounds have nothing to look at.
    Absent,
    /// Some rounds have no guarantee, for this reason.
    Nothing(String),
    /// A curve of each kind of round, and the first caveat.
    Curves(Vec<Part<'a>>, Option<String>),
}

impl<'a> Mixed<'a> {
    /// So many rounds of each account. All must have the same `δ`, and neighbours of the same kind.
    pub fn new(parts: &[(&'a Account, u64)]) -> Result<Self, PrivacyError> {
        common_directions(parts.iter().map(|(account, rounds)| (account.sampling(), *rounds)))?;
        let [(first, _), others @ ..] = parts else { return Err(PrivacyError::NoRounds) };
        let delta = first.delta();
        match others.iter().find(|(account, _)| account.delta() != delta) {
            Some((other, _)) => Err(PrivacyError::DifferentDeltas { one: delta, other: other.delta() }),
            None => Ok(Self { parts: parts.to_vec(), delta }),
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

    /// The `ε` of a view; `None` if there is none. For one account alone, that of [`Account::epsilon`].
    pub fn epsilon(&self, view: View) -> Result<Option<f64>, PrivacyError> {
        if let [(account, rounds)] = self.parts[..] {
            return account.epsilon(view, rounds);
        }
        if view == View::Published {
            return Ok(self.published()?.and_then(Result::ok));
        }
        let Sources::Curves(parts, _) = self.sources(view) else { return Ok(None) };
        let epsilon = or_reason(Composition::mixed(&parts)?.epsilon_upper(self.delta))?.ok();
        epsilon.map(|epsilon| self.far_out(view, epsilon)).transpose()
    }

    /// The statement of a view; `None` if some rounds have nothing to look at. It is a guarantee if it is one for all rounds.
    /// For one account alone, that of [`Account::statement`]; otherwise its details are `in_every_round` alone.
    pub fn statement(&self, view: View) -> Result<Option<Statement>, PrivacyError> {
        if let [(account, rounds)] = self.parts[..] {
            return account.statement(view, rounds);
        }
        let (epsilon, lower, caveat) = if view == View::Published {
            let Some(epsilon) = self.published()? else { return Ok(None) };
            (epsilon, None, Some(published::WHY_NOT_A_GUARANTEE.to_owned()))
        } else {
            let (bounds, caveat) = match self.sources(view) {
                Sources::Absent => return Ok(None),
                Sources::Nothing(reason) => (Err(reason), None),
                Sources::Curves(parts, caveat) => (self.bounds(view, &parts)?, caveat),
            };
            let lower = bounds.as_ref().ok().map(|bounds| bounds.lower);
            (bounds.map(|bounds| bounds.upper), lower, caveat)
        };
        Ok(Some(Statement {
            epsilon: epsilon.as_ref().ok().copied(),
            epsilon_lower: lower,
            guarantee: epsilon.is_ok() && caveat.is_none(),
            adversary: view.adversary().to_owned(),
            reason: epsilon.err().or(caveat),
            details: self.in_every_round(view)?,
        }))
    }

    /// For someone who is known to be in every round, if some take part by chance.
    fn in_every_round(&self, view: View) -> Result<BTreeMap<String, f64>, PrivacyError> {
        let mut details = BTreeMap::new();
        let by_chance = self.parts.iter().any(|(account, _)| account.sampling() != Sampling::Everyone);
        if by_chance && let Sources::Curves(parts, _) = self.sources(view) {
            let known: Vec<Part<'_>> =
                parts.into_iter().map(|part| Part { sampling: Sampling::Everyone, ..part }).collect();
            if let Ok(epsilon) = or_reason(Composition::mixed(&known)?.epsilon_upper(self.delta))? {
                details.insert("in_every_round".to_owned(), epsilon);
            }
        }
        Ok(details)
    }

    /// The statements of all views.
    pub fn views(&self) -> Result<Views, PrivacyError> {
        Ok(Views {
            published: self.statement(View::Published)?,
            idealised: self.statement(View::Idealised)?,
            actual: self.statement(View::Actual)?,
            any_channel: self.statement(View::AnyChannel)?,
            raw_signal: self.statement(View::RawSignal)?,
        })
    }

    fn sources(&self, view: View) -> Sources<'a> {
        let (mut parts, mut nothing, mut first_caveat) = (Vec::new(), None, None);
        for &(account, rounds) in &self.parts {
            match account.source(view) {
                None | Some(Source::Absent) => return Sources::Absent,
                Some(Source::Nothing(reason)) => nothing = nothing.or(Some(reason)),
                Some(Source::Curve { curve, caveat }) => {
                    first_caveat = first_caveat.or(caveat.as_ref());
                    parts.push(Part { curve: curve.as_ref(), sampling: account.sampling(), rounds });
                }
            }
        }
        match nothing {
            Some(reason) => Sources::Nothing(reason.clone()),
            None => Sources::Curves(parts, first_caveat.cloned()),
        }
    }

    fn bounds(&self, view: View, parts: &[Part<'a>]) -> Result<Result<Bounds, String>, PrivacyError> {
        Ok(match or_reason(Composition::mixed(parts)?.epsilon(self.delta))? {
            Ok(Bounds { lower, upper }) => Ok(Bounds { lower, upper: self.far_out(view, upper)? }),
            Err(reason) => Err(reason),
        })
    }

    /// At least a strong client's `ε`, where the any-channel curves may fall short.
    fn far_out(&self, view: View, epsilon: f64) -> Result<f64, PrivacyError> {
        if view != View::AnyChannel || epsilon <= FAR_OUT {
            return Ok(epsilon);
        }
        Ok(epsilon.max(self.epsilon(View::Idealised)?.unwrap_or(0.0)))
    }

    /// The paper's number, or why there is none; `None` if some rounds have nothing to look at.
    fn published(&self) -> Result<Option<Result<f64, String>>, PrivacyError> {
        let mut squares = Ok(0.0);
        for (account, rounds) in &self.parts {
            let Some(round) = account.published_round() else { return Ok(None) };
            squares = match (squares, or_reason(round)?) {
                (Ok(sum), Ok(round)) => Ok(sum + *rounds as f64 * round.pure().as_printed().powi(2)),
                (Err(reason), _) | (Ok(_), Err(reason)) => Err(reason),
            };
        }
        Ok(Some(squares.map(|sum: f64| (-2.0 * sum * self.delta.ln()).sqrt() + 0.5 * sum)))
    }
}

/// A number, or in words why there is none, if the reason is not in the input.
fn or_reason<T>(number: Result<T, PrivacyError>) -> Result<Result<T, String>, PrivacyError> {
    match number {
        Ok(number) => Ok(Ok(number)),
        Err(error) if error.is_no_guarantee() => Ok(Err(error.to_string())),
        Err(error) => Err(error),
    }
}
