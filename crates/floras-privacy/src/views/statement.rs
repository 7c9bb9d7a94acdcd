//! The statements of the views.

use std::collections::BTreeMap;

use floras_core::verdict::Verdict;
use floras_core::{Receiver, Rounding, View};
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::engine::compose::Bounds;
use crate::engine::sampling::Sampling;
use crate::error::PrivacyError;
use crate::numerics::parallel::in_parallel;

/// A value for each view, in the order of [`View::ALL`], computed in parallel.
pub(crate) fn for_each_view<T: Send>(of: impl Fn(View) -> T + Sync) -> [T; View::ALL.len()] {
    in_parallel(View::ALL, of)
}

/// A lower bound needs an explanation if it is below `ε` by more than this, relatively.
const GAP: f64 = 0.01;

/// The statement of one view.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct Statement {
    /// `ε` at the account's `δ`, an upper bound; `None` if no finite `ε` is established.
    pub epsilon: Option<f64>,
    /// A lower bound on the true `ε`, which shows the maximum error of the upper bound.
    pub epsilon_lower: Option<f64>,
    /// No `ε` up to this value is established. Present instead of an `epsilon` that would be too large to be useful.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub epsilon_above: Option<f64>,
    /// Whether `ε` is a guarantee.
    pub guarantee: bool,
    /// Whether `ε` is the bound of masks, because it is below the view's own bound or the view has no bound of its
    /// own.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub from_masks: bool,
    /// Whether `ε` also holds against a base station that keeps its raw samples, in a view whose usual adversary does not have
    /// them.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub covers_raw_samples: bool,
    /// Description of the adversary.
    pub adversary: String,
    /// The reason why there is no `ε`, or why it is not a guarantee.
    pub reason: Option<String>,
    /// Assumptions of `ε` about the radio and the adversary.
    #[serde(default)]
    pub assumptions: Vec<String>,
    /// Additional numbers of the same view, by name.
    #[serde(flatten)]
    pub details: BTreeMap<String, f64>,
}

impl Statement {
    /// A statement without details. If there is a number, `reason` explains why it is not a guarantee.
    pub(crate) fn new(
        view: View,
        bounds: Option<Bounds>,
        reason: Option<String>,
        epsilon_above: Option<f64>,
    ) -> Self {
        Self {
            epsilon: bounds.map(|bounds| bounds.upper),
            epsilon_lower: bounds.map(|bounds| bounds.lower),
            epsilon_above,
            guarantee: bounds.is_some() && reason.is_none(),
            from_masks: false,
            covers_raw_samples: false,
            adversary: view.adversary().to_owned(),
            reason,
            assumptions: Vec::new(),
            details: BTreeMap::new(),
        }
    }

    /// Whether the numbers of the view are proven, for fewer rounds as well. A statement without `ε`, because no `ε` up to
    /// `epsilon_above` is established, counts as proven unless its reason contains a further caveat.
    pub fn is_proven(&self) -> bool {
        let is_out_of_reach = |above: f64| {
            self.reason.as_ref() == Some(&PrivacyError::EpsilonOutOfReach { most: above }.to_string())
        };
        self.guarantee || (self.epsilon.is_none() && self.epsilon_above.is_some_and(is_out_of_reach))
    }

    /// Whether the adversary of the statement, which is of this view, has the raw samples of the base station.
    pub fn has_raw_samples(&self, view: View) -> bool {
        view == View::RawSignal || self.covers_raw_samples || self.from_masks
    }

    /// How much the statement guarantees.
    pub fn verdict(&self) -> Verdict {
        Verdict::of(self.epsilon, self.guarantee)
    }
}

/// A statement in JSON. Its verdict is written for readers, and computed again when the file is read.
#[derive(Deserialize, Serialize)]
struct Judged<S> {
    #[serde(default)]
    verdict: Option<Verdict>,
    #[serde(flatten)]
    statement: S,
}

/// The statements of the views. In JSON, every view has a field, which is `null` if the federation has no such view.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Views {
    statements: BTreeMap<View, Statement>,
}

impl Serialize for Views {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let judged = |statement: &Statement| Judged {
            verdict: Some(statement.verdict()),
            statement: statement.clone(),
        };
        serializer.collect_map(View::ALL.map(|view| (view.field(), self.get(view).map(judged))))
    }
}

impl<'de> Deserialize<'de> for Views {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut statements = BTreeMap::new();
        for (field, statement) in BTreeMap::<String, Option<Judged<Statement>>>::deserialize(deserializer)? {
            let view = View::ALL.into_iter().find(|view| view.field() == field);
            let view = view.ok_or_else(|| D::Error::custom(format!("there is no view {field}")))?;
            statements.extend(statement.map(|judged| (view, judged.statement)));
        }
        Ok(Self { statements })
    }
}

impl FromIterator<(View, Statement)> for Views {
    fn from_iter<I: IntoIterator<Item = (View, Statement)>>(statements: I) -> Self {
        Self { statements: statements.into_iter().collect() }
    }
}

impl Views {
    /// The statement of a view.
    pub fn get(&self, view: View) -> Option<&Statement> {
        self.statements.get(&view)
    }

    /// The statement of a view, for modification.
    pub fn get_mut(&mut self, view: View) -> Option<&mut Statement> {
        self.statements.get_mut(&view)
    }

    /// Sets the statement of a view, or removes it.
    pub fn set(&mut self, view: View, statement: Option<Statement>) {
        match statement {
            Some(statement) => self.statements.insert(view, statement),
            None => self.statements.remove(&view),
        };
    }

    /// All views with their statements, in the order of [`View::ALL`].
    pub fn iter(&self) -> impl Iterator<Item = (View, &Statement)> {
        self.statements.iter().map(|(&view, statement)| (view, statement))
    }

    /// One line that explains why the published number is smaller than a valid bound; `None` if it is not smaller.
    pub fn why_published_is_smaller(&self, receiver: Receiver) -> Option<String> {
        let published = self.get(View::Published)?.epsilon?;
        let smaller = |view: View| {
            let statement = self.get(view)?;
            let is_own = statement.guarantee && !statement.from_masks;
            let epsilon = statement.epsilon.filter(|&epsilon| is_own && published < epsilon)?;
            Some((view, epsilon))
        };
        let (view, epsilon) =
            [View::Idealised, View::Actual, View::AnyChannel].into_iter().find_map(smaller)?;
        let why = match (view, receiver) {
            (View::Idealised, Receiver::Paper) => crate::published::theorems::WHY_NOT_A_GUARANTEE,
            (View::Idealised, _) => "it counts on the noise of the paper's receiver, which this one bounds",
            _ => {
                "it leaves out clients whose channel fades: the receiver amplifies them, and the noise of the unused \
                 sequences does not hide them"
            }
        };
        Some(format!(
            "the published ε of {} is smaller than the {view} {} because {why}",
            shown(published, Rounding::Up),
            shown(epsilon, Rounding::Up)
        ))
    }

    /// One line of explanation per guarantee whose lower bound is more than 1% below its `ε` after some rounds, and one for all guarantees
    /// without a lower bound that have the same reason. An estimate of `ε` bounds nothing, and has no such line.
    pub fn why_bounds_differ(&self, sampling: Sampling, rounds: u64) -> Vec<String> {
        let line = |(view, statement): (View, &Statement)| {
            let (upper, lower) = (statement.epsilon?, statement.epsilon_lower?);
            if !statement.guarantee || lower >= (1.0 - GAP) * upper {
                return None;
            }
            let truth = if lower > 0.0 {
                format!("at least {}", shown(lower, Rounding::Down))
            } else {
                "not known".to_owned()
            };
            let why = match (view, sampling) {
                (View::AnyChannel, _) if rounds > 1 => {
                    "it admits another worst channel for every loss, and the lower bound has one channel in all rounds"
                }
                (View::Idealised | View::Actual | View::RawSignal, Sampling::ReplaceOne(_)) if rounds > 1 => {
                    "it bounds both directions of a replacement at once, and the lower bound is for the worst pair of \
                     populations that is known"
                }
                (View::AnyChannel, _) => {
                    "the weight of a client that fades and the noise of the unused sequences are bounded from one side"
                }
                (View::Actual, _) => "the noise of the other clients' sequences is bounded from one side",
                _ => "the noise of the unused sequences is bounded in cells, and little noise is rare",
            };
            let upper = shown(upper, Rounding::Up);
            Some(format!("the {view} ε of {upper} is an upper bound, and the truth is {truth}: {why}"))
        };
        let no_lower = [true, false].into_iter().filter_map(|is_masked| self.why_no_lower(is_masked));
        self.iter().filter_map(line).chain(no_lower).collect()
    }

    /// One line for the guarantees without a lower bound, with masks or without; `None` if there are none.
    fn why_no_lower(&self, is_masked: bool) -> Option<String> {
        let applies = |statement: &Statement| {
            let one_sided = statement.guarantee
                && statement.epsilon_lower.is_none()
                && statement.epsilon.is_some_and(|epsilon| epsilon > 0.0);
            one_sided && statement.details.contains_key("masks") == is_masked
        };
        let views = self.iter().filter(|(_, statement)| applies(statement)).map(|(view, _)| view.to_string());
        let views = views.collect::<Vec<_>>().join(", ");
        let why = if is_masked {
            "masks and noise also hide the symbols, which the views' own lower bounds do not count"
        } else {
            "the adversary may see less than the bound counts"
        };
        (!views.is_empty()).then(|| format!("{views}: ε is an upper bound without a lower one: {why}"))
    }
}

/// A bound on `ε` with four decimals, or with four significant digits if it is small.
fn shown(epsilon: f64, rounding: Rounding) -> String {
    if epsilon < 1e-3 && epsilon > 0.0 { rounding.scientific(epsilon, 3) } else { rounding.fixed(epsilon, 4) }
}
