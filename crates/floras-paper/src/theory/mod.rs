//! The convergence theory of the paper (Theorem 4, section VI and appendix B): its claims for an experiment, and what can
//! be proved.
//!
//! | module item | contents |
//! |---|---|
//! | [`Truncation`] | the noise after clamping: exact second moment and bias, and `D(γ)` as printed |
//! | [`Problem`], [`Limits`] | the theorem's condition and bound with any `D`; which `γ` or `K` would meet the condition |
//! | [`RoundMap`] | what can be proved instead: a neighbourhood of the optimum that training reaches |
//! | [`Constants`] | `μ`, `L`, `H`, `Γ`, `w*` of an experiment's own data |
//! | [`Theory`] | all of it for one experiment |
//! | [`notes`] | where the printed proof fails |

mod bound;
mod conditions;
mod constants;
pub mod notes;
mod objective;
mod recursion;
mod report;
mod truncation;

pub use bound::{Bound, Limits, Problem};
pub use conditions::Condition;
pub use constants::{Constants, MAX_CLIENTS, MAX_TRAININGS};
pub use recursion::{RelativeNoise, RoundMap, limit_floor};
pub use report::{Answer, Evaluation, NoiseMoments, Reached, Sizes, Theory};
pub use truncation::{TheoryError, Truncation};
